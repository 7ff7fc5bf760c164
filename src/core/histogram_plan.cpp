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

// Clocks that an SM takes for the samples of a warp, 32 of them: additions to shared memory and the instructions around them.
// GUESSES, TO BE MEASURED: from the count of instructions (5 a sample for words, 17 for fields; four a clock) and, for words, from what a
// hand-written kernel of this kind reached (2^28 int32 in 242 us on 132 SMs: at most 6.7 clocks; H200, November 2026, anchors).
constexpr double kClocksOfWords = 5.5;
constexpr double kClocksOfBytes = 2.2;     // the same of 8-bit samples, a copy of each counter for each lane
constexpr double kClocksOfFields = 7.0;    // one range
constexpr double kClocksOfPart = 5.0;      // more ranges: fewer lanes add at a time
constexpr double kClocksOfOverflow = 0.5;  // more, where fields of 8 bits are full all the time

// Additions a microsecond that L2 takes from everywhere, to addresses at random: 2^28 in 2657 us (uniform, 262,144 bins, H200, November
// 2026, anchors). Skewed samples take up to ten times as long.
constexpr double kScatteredPerUs = 101e3;
// And to neighbouring addresses: 16,384 from each of 132 CTAs in 2.78 us (H200, November 2026, h200.md).
constexpr double kGatheredPerUs = 778e3;

constexpr double kSharedBytesPerClk = 109;  // read, an SM (H200, November 2026, h200.md); GUESS: written as fast
constexpr std::int64_t kBytesForCopies =
    65536;  // GUESS, TO BE MEASURED: more copies save conflicts, and take longer to clear and to add up

int groups_of(const HistogramProblem& p, const HistogramWay& way, const DeviceSpec& device) {
  const std::int64_t per_cta = std::int64_t{kHistogramThreads} * samples_per_vector(p.sample);
  const std::int64_t needed = std::max<std::int64_t>((p.n + per_cta - 1) / per_cta, 1);
  return static_cast<int>(std::clamp<std::int64_t>(device.sm_count / way.ranges, 1, needed));
}

double clocks_of(const HistogramProblem& p, const HistogramWay& way) {
  if (way.counters == HistogramCounters::words) return p.sample == HistogramSample::uint8 ? kClocksOfBytes : kClocksOfWords;
  return (way.ranges == 1 ? kClocksOfFields : kClocksOfPart) + (way.field_bits == 8 ? kClocksOfOverflow : 0);
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
    c.ending_us = 2 * shared / kSharedBytesPerClk / clocks_per_us + additions / kGatheredPerUs;
  }
  c.total_us = (p.accumulate ? 1 : 2) * device.launch_us + std::max(c.memory_us, c.counting_us) + c.ending_us;
  return c;
}

// Of fields, the fewest ranges that fit: each more makes more CTAs look at each sample.
HistogramWay fields(const HistogramProblem& p, int bits, const DeviceSpec& device) {
  HistogramWay way{.counters = HistogramCounters::fields, .field_bits = bits};
  while (histogram_shared_bytes(way, counted_bins(p)) > device.shared_memory_per_cta_bytes && 2 * way.ranges <= p.bins) way.ranges *= 2;
  return way;
}

HistogramWay words(const HistogramProblem& p) {
  HistogramWay way{.counters = HistogramCounters::words};
  while (way.copies < 32) {
    way.copies *= 2;
    if (histogram_shared_bytes(way, counted_bins(p)) <= kBytesForCopies + 4 * way.copies) continue;
    way.copies /= 2;
    break;
  }
  return way;
}

std::vector<HistogramCandidate> all_candidates(const HistogramProblem& p, const DeviceSpec& device) {
  std::vector<HistogramCandidate> all = {candidate(p, words(p), device)};
  if (p.sample != HistogramSample::uint8) {
    for (const int bits : {16, 8}) all.push_back(candidate(p, fields(p, bits, device), device));
    all.push_back(candidate(p, {.counters = HistogramCounters::global}, device));
  }
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
      return "the bins fit into a CTA's shared memory as words, where equal samples of a warp cost as much as one";
    case HistogramCounters::fields:
      return std::string("words of all bins do not fit into a CTA's shared memory; ") +
             (plan.way.ranges == 1 ? "parts of words do"
                                   : "parts of words do where each CTA counts some of the bins, and sees all samples of its group") +
             (c.counting_us > c.memory_us ? "; additions bind" : "; memory binds");
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
