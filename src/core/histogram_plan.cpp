// How a histogram is counted: every way that the device can go, what each should take, and the least of them.
#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "sluice/histogram.hpp"

#include "core/check_histogram.hpp"
#include "core/histogram_config.hpp"

namespace sluice {
namespace {

// Measured on one H200, 22 November 2026: microseconds for 2^24 and 2^28 int32 samples, drawn evenly, each way in turn in one process. The
// slope between the two gives the clocks, and what is left the ending.

// Clocks that an SM takes for the samples of a warp, 32 of them, that it looks at.
constexpr double kClocksOfWords = 6.4;  // at most: memory hides it (2^28 into 256, 4096, 16,384 bins in 240, 241, 243 us)
constexpr double kClocksOfSplitWords =
    3.8;                                // several ranges, so that few lanes add: 65,536 bins, 2 ranges, 296 us; 262,144, 8 ranges, 1177
constexpr double kClocksOfBytes = 1.7;  // 8-bit samples, 32 copies of each counter: 2^30 in 251 us
// Fields of 8 bits, whatever the ranges: 262,144 bins in 2 of them 737 us, 1,048,576 bins in 8 of them 2980.
constexpr double kClocksOfFields = 9.4;

// Copies of each counter, for samples that are bytes: 32 took 251 us, 16 of them 298, 8 of them 417, one 431. For those of 32 bits, whose
// reading takes as long as counting them, 2 to 32 copies took as long as one.
constexpr int kCopiesForBytes = 32;

// Additions a microsecond that L2 takes from everywhere: 100e3 where samples are drawn evenly (2^28 into 1,048,576 bins in 2684 us), 6.7e3
// where bin b is met as often as 1/(b + 1) (40,050 us), and other ways hardly feel the difference. A plan knows nothing of the samples; the
// geometric mean lets it lose least in the worse of both cases.
constexpr double kScatteredPerUs = 26e3;
// And to neighbouring addresses: 16,384 from each of 132 CTAs in 2.78 us (H200, November 2026, h200.md). The bins of a CTA lie `ranges`
// apart in the result, so that a sector takes fewer additions at once, down to one; with that, endings come out within an eighth.
constexpr double kGatheredPerUs = 778e3;
constexpr int kWordsPerSector = 8;

constexpr double kSharedBytesPerClk = 109;  // read, an SM (H200, November 2026, h200.md); taken for writing, too: 1.4 us for 128 KB both

int groups_of(const HistogramProblem& p, const HistogramWay& way, const DeviceSpec& device) {
  const std::int64_t per_cta = std::int64_t{kHistogramThreads} * samples_per_vector(p.sample);
  const std::int64_t needed = std::max<std::int64_t>((p.n + per_cta - 1) / per_cta, 1);
  return static_cast<int>(std::clamp<std::int64_t>(device.sm_count / way.ranges, 1, needed));
}

double clocks_of(const HistogramProblem& p, const HistogramWay& way) {
  if (way.counters == HistogramCounters::fields) return kClocksOfFields;
  if (p.sample == HistogramSample::uint8) return kClocksOfBytes;
  return way.ranges == 1 ? kClocksOfWords : kClocksOfSplitWords;
}

HistogramCandidate candidate(const HistogramProblem& p, const HistogramWay& way, const DeviceSpec& device) {
  HistogramCandidate c{.way = way};
  const int groups = groups_of(p, way, device);
  const Result<HistogramProblem> fits = check_plan({.problem = p, .way = way, .groups = groups}, device.shared_memory_per_cta_bytes);
  if (!fits) c.refused = fits.error().message;
  if (fits && way.ranges > device.sm_count)
    c.refused = std::to_string(way.ranges) + " ranges need as many SMs, and the device has " + std::to_string(device.sm_count);
  const double bytes = sample_bytes(p), samples = static_cast<double>(p.n), clocks_per_us = device.clock_ghz * 1e3;
  c.memory_us = bytes / device.hbm_gb_per_s * 1e-3;
  if (way.ranges > 1) c.memory_us = std::max(c.memory_us, bytes * way.ranges / device.l2_gb_per_s * 1e-3);
  if (way.counters == HistogramCounters::global) {
    c.counting_us = samples / kScatteredPerUs;
  } else {
    c.counting_us = samples / groups / 32 * clocks_of(p, way) / clocks_per_us;
    const double shared = static_cast<double>(histogram_shared_bytes(way, counted_bins(p)));
    const double additions = static_cast<double>(counted_bins(p)) * groups * (p.count_type == CountType::int64 ? 2 : 1);
    c.ending_us = 2 * shared / kSharedBytesPerClk / clocks_per_us + additions * std::min(way.ranges, kWordsPerSector) / kGatheredPerUs;
  }
  c.total_us = (p.accumulate ? 1 : 2) * device.launch_us + std::max(c.memory_us, c.counting_us) + c.ending_us;
  return c;
}

// The fewest ranges that fit: each more makes more CTAs look at each sample.
HistogramWay split(HistogramWay way, const HistogramProblem& p, const DeviceSpec& device) {
  while (histogram_shared_bytes(way, counted_bins(p)) > device.shared_memory_per_cta_bytes && 2 * way.ranges <= p.bins) way.ranges *= 2;
  return way;
}

std::vector<HistogramCandidate> all_candidates(const HistogramProblem& p, const DeviceSpec& device) {
  if (p.sample == HistogramSample::uint8) return {candidate(p, {.counters = HistogramCounters::words, .copies = kCopiesForBytes}, device)};
  std::vector<HistogramCandidate> all;
  for (const HistogramWay& way :
       {HistogramWay{.counters = HistogramCounters::words}, HistogramWay{.counters = HistogramCounters::fields, .field_bits = 8},
        HistogramWay{.counters = HistogramCounters::global}})
    all.push_back(candidate(p, way.counters == HistogramCounters::global ? way : split(way, p, device), device));
  std::stable_sort(all.begin(), all.end(), [](const HistogramCandidate& a, const HistogramCandidate& b) {
    return a.refused.empty() != b.refused.empty() ? a.refused.empty() : a.total_us < b.total_us;
  });
  return all;
}

HistogramPlan plan_of(const HistogramProblem& p, const DeviceSpec& device, std::vector<HistogramCandidate> candidates) {
  const HistogramWay way = candidates.front().way;
  const double predicted_us = candidates.front().total_us;
  return {.problem = p,
          .way = way,
          .groups = groups_of(p, way, device),
          .shared_memory_bytes = static_cast<int>(histogram_shared_bytes(way, counted_bins(p))),
          .predicted_us = predicted_us,
          .candidates = std::move(candidates)};
}

std::string microseconds(double us) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f us", us);
  return text;
}

std::string reason(const HistogramPlan& plan) {
  const HistogramCandidate& c = plan.candidates.front();
  switch (plan.way.counters) {
    case HistogramCounters::words:
      if (plan.way.ranges > 1)
        return "words of all bins do not fit into a CTA's shared memory; CTAs that see the same samples share them, and equal samples of "
               "a warp cost as much as one";
      return "the bins fit into a CTA's shared memory as words, where equal samples of a warp cost as much as one";
    case HistogramCounters::fields:
      return std::string("words of all bins would need more CTAs to look at the same samples; ") +
             (plan.way.ranges == 1 ? "parts of words fit into one CTA's shared memory" : "of parts of words, fewer CTAs hold all bins") +
             (c.counting_us > c.memory_us ? "; counting binds" : "; memory binds");
    case HistogramCounters::global:
      break;
  }
  return "clearing counters in shared memory and adding them up would take longer than the samples are worth, or none fit";
}

}  // namespace

std::string describe(const HistogramWay& way) {
  if (way.counters == HistogramCounters::global) return "global atomics";
  std::string line = way.counters == HistogramCounters::words ? "words" : std::to_string(way.field_bits) + "-bit fields";
  if (way.copies > 1) line += ", " + std::to_string(way.copies) + " copies";
  if (way.ranges > 1) line += ", " + std::to_string(way.ranges) + " ranges";
  return line;
}

Result<HistogramPlan> plan_histogram(const HistogramProblem& problem, const DeviceSpec& device) {
  if (Status s = validate(device); !s) return s.error();
  const Result<HistogramProblem> valid = validate(problem);
  if (!valid) return valid.error();
  std::vector<HistogramCandidate> candidates = all_candidates(*valid, device);
  if (!candidates.front().refused.empty()) return Error{ErrorCode::too_large, candidates.front().refused};
  return plan_of(*valid, device, std::move(candidates));
}

Result<HistogramPlan> plan_histogram(const HistogramProblem& problem, const DeviceSpec& device, const HistogramWay& way) {
  if (Status s = validate(device); !s) return s.error();
  const Result<HistogramProblem> valid = validate(problem);
  if (!valid) return valid.error();
  HistogramPlan plan = plan_of(*valid, device, {candidate(*valid, way, device)});
  if (const Result<HistogramProblem> fits = check_plan(plan, device.shared_memory_per_cta_bytes); !fits) return fits.error();
  return plan;
}

std::string explain(const HistogramPlan& plan) {
  std::string text = describe(plan.problem) + "\n";
  text += describe(plan.way) + ": " + reason(plan) + "\n";
  text += std::to_string(plan.groups * plan.way.ranges) + " CTAs with " + std::to_string(plan.shared_memory_bytes) +
          " bytes of shared memory each; predicted " + microseconds(plan.predicted_us) + "\n";
  for (const HistogramCandidate& c : plan.candidates) {
    text += "  " + describe(c.way) + ": ";
    text += c.refused.empty() ? microseconds(c.total_us) + " (memory " + microseconds(c.memory_us) + ", counting " +
                                    microseconds(c.counting_us) + ", ending " + microseconds(c.ending_us) + ")"
                              : c.refused;
    text += "\n";
  }
  return text;
}

}  // namespace sluice
