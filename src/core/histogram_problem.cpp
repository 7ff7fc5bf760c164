#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include "sluice/histogram.hpp"

#include "core/check_histogram.hpp"
#include "core/histogram_config.hpp"

namespace sluice {
namespace {

constexpr std::int64_t kMostSamples = std::int64_t{1} << 40;  // more than any memory holds; what is worked out from it stays in 64 bits
constexpr std::int64_t kLargestInt = std::numeric_limits<std::int32_t>::max(), kLeastInt = std::numeric_limits<std::int32_t>::min();

Error invalid(std::string message) { return {ErrorCode::invalid_argument, std::move(message)}; }
std::string text(std::int64_t value) { return std::to_string(value); }

Status check_extents(const HistogramProblem& p) {
  if (p.n < 0) return invalid("n = " + text(p.n) + " is negative; pass 0 or more");
  if (p.n > kMostSamples)
    return Error{ErrorCode::too_large, "n = " + text(p.n) + " is over the limit of 2^40; count in parts, with accumulate"};
  if (p.bins < kLeastBins || p.bins > kMostBins)
    return Error{p.bins < kLeastBins ? ErrorCode::invalid_argument : ErrorCode::too_large,
                 "bins = " + text(p.bins) + " is not in [2, 1048576]; merge bins, or count ranges of values one after the other"};
  if (p.count_type == CountType::int32 && p.n > kLargestInt)
    return Error{ErrorCode::too_large, "n = " + text(p.n) + " samples may make a count that int32 does not hold; choose counts of int64"};
  return Nothing{};
}

Status check_values(const HistogramProblem& p) {
  if (p.sample == HistogramSample::float32) {
    if (!std::isfinite(p.lower) || !std::isfinite(p.upper) || !(p.lower < p.upper))
      return invalid("lower = " + std::to_string(p.lower) + " and upper = " + std::to_string(p.upper) +
                     " are no range of float32; pass finite ones, lower below upper");
    if (!std::isfinite(static_cast<float>(static_cast<double>(p.bins) / (static_cast<double>(p.upper) - p.lower))))
      return invalid("upper - lower is so small that the bins of a unit are no float32; scale the samples");
    return Nothing{};
  }
  if (p.sample == HistogramSample::uint8 && (p.first < 0 || p.first > 255))
    return invalid("first = " + text(p.first) + " is no value of uint8; pass 0 to 255");
  if (p.sample == HistogramSample::int32 && (p.first < kLeastInt || p.first > kLargestInt - p.bins + 1))
    return invalid("first = " + text(p.first) + " with " + text(p.bins) +
                   " bins leaves the values of int32; pass first from -2^31 to 2^31 - bins");
  return Nothing{};
}

Status check_pointer(const char* name, const void* pointer, int element_bytes, const char* holds) {
  if (pointer == nullptr) return invalid(std::string(name) + " is null; pass memory for " + holds);
  const auto behind = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(pointer) % static_cast<std::uintptr_t>(element_bytes));
  if (behind == 0) return Nothing{};
  return Error{ErrorCode::misaligned, std::string(name) + " lies " + text(behind) + " bytes behind a multiple of " + text(element_bytes) +
                                          ", the size of its elements; move it"};
}

bool is_power_of_two(int x) { return x > 0 && (x & (x - 1)) == 0; }

}  // namespace

Result<HistogramProblem> validate(const HistogramProblem& problem) {
  // Enumerators come through the C ABI as plain numbers.
  if (problem.sample > HistogramSample::float32 || problem.count_type > CountType::int64 || problem.outside > OutsideValues::clamped)
    return invalid("sample, count_type or outside is none of the enumeration's values; see histogram.hpp");
  if (Status s = check_extents(problem); !s) return s.error();
  if (Status s = check_values(problem); !s) return s.error();
  return problem;
}

bool is_empty(const HistogramProblem& problem) { return problem.n == 0 && problem.accumulate; }

double sample_bytes(const HistogramProblem& p) { return static_cast<double>(p.n) * sample_size_bytes(p.sample); }

std::string describe(const HistogramProblem& p) {
  std::string line = text(p.n) + " " + to_string(p.sample) + " into " + text(p.bins) + " bins of " + to_string(p.count_type);
  if (p.sample == HistogramSample::float32)
    line += ", from " + std::to_string(p.lower) + " to " + std::to_string(p.upper);
  else if (p.first != 0)
    line += ", from " + text(p.first);
  if (p.outside == OutsideValues::clamped) line += ", clamped";
  if (p.accumulate) line += ", added";
  return line;
}

Status check_arguments(const HistogramProblem& p, const HistogramArguments& arguments) {
  if (is_empty(p)) return Nothing{};
  if (p.n > 0)
    if (Status s = check_pointer("samples", arguments.samples, sample_size_bytes(p.sample), "what is to be counted"); !s) return s;
  return check_pointer("counts", arguments.counts, size_bytes(p.count_type), "the result (a number for each bin)");
}

Result<HistogramProblem> check_plan(const HistogramPlan& plan, int shared_memory_per_cta_bytes) {
  Result<HistogramProblem> valid = validate(plan.problem);
  if (!valid) return valid;
  const HistogramWay& way = plan.way;
  bool listed = false;
  for (const HistogramConfig& config : kListedHistogramKernels) listed = listed || config == histogram_config(valid->sample, way);
  const bool splits = way.counters != HistogramCounters::global, copies = way.counters == HistogramCounters::words;
  if (!listed || !is_power_of_two(way.ranges) || !is_power_of_two(way.copies) || way.copies > 32 || (!splits && way.ranges != 1) ||
      (!copies && way.copies != 1) || way.ranges > static_cast<int>(kLeastBins) * 64 || way.ranges > valid->bins)
    return Error{ErrorCode::unsupported, "the plan's way, " + describe(way) + ", is none that " + to_string(valid->sample) +
                                             " samples are counted by; take one from plan_histogram()"};
  const std::int64_t bytes = histogram_shared_bytes(way, counted_bins(*valid));
  if (bytes > shared_memory_per_cta_bytes)
    return Error{ErrorCode::too_large, "the plan's counters (" + describe(way) + ") take " + text(bytes) +
                                           " bytes of shared memory, and a CTA has " + text(shared_memory_per_cta_bytes) +
                                           "; plan with more ranges, or fields"};
  if (plan.groups < 1 || plan.groups > (1 << 20) / way.ranges)
    return invalid("the plan has " + text(plan.groups) + " groups of CTAs; pass from 1 to 2^20 / ranges");
  // Words have 32 bits, each CTA its own.
  if (way.counters == HistogramCounters::words && valid->n / plan.groups > kLargestInt)
    return Error{ErrorCode::too_large, "n = " + text(valid->n) + " samples over " + text(plan.groups) +
                                           " CTAs may make a counter that 32 bits do not hold; plan with fields"};
  return valid;
}

}  // namespace sluice
