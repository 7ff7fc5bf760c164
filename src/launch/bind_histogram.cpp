#include "launch/bind_histogram.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "core/histogram_config.hpp"

namespace sluice {
namespace {

// Whole vectors, and the samples before and behind them.
void bind_samples(const HistogramProblem& p, const void* samples, HistogramParams& params) {
  const auto size = static_cast<std::uint64_t>(sample_size_bytes(p.sample)), n = static_cast<std::uint64_t>(p.n);
  const std::uint64_t behind = reinterpret_cast<std::uintptr_t>(samples) % kHistogramVectorBytes;
  const std::uint64_t head = std::min(behind == 0 ? 0 : (kHistogramVectorBytes - behind) / size, n);
  const auto* const first = static_cast<const std::byte*>(samples) + head * size;
  params.head = samples;
  params.head_elems = static_cast<std::int32_t>(head);
  params.vectors = first;
  params.vector_count = (n - head) * size / kHistogramVectorBytes;
  params.tail = first + params.vector_count * kHistogramVectorBytes;
  params.tail_elems = static_cast<std::int32_t>((n - head) - params.vector_count * kHistogramVectorBytes / size);
}

void bind_values(const HistogramProblem& p, HistogramParams& params) {
  const bool clamped = p.outside == OutsideValues::clamped;
  params.bins = counted_bins(p);
  if (p.sample == HistogramSample::float32) {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    params.lower = p.lower;
    params.scale = static_cast<float>(static_cast<double>(p.bins) / (static_cast<double>(p.upper) - p.lower));
    params.least_float = clamped ? -kInfinity : p.lower;
    params.greatest_float = clamped ? kInfinity : std::nextafter(p.upper, -kInfinity);
    params.greatest = static_cast<std::int32_t>(p.bins - 1);
    return;
  }
  params.first = static_cast<std::int32_t>(p.first);
  params.least = clamped ? params.first : std::numeric_limits<std::int32_t>::min();
  params.greatest = clamped ? static_cast<std::int32_t>(p.first + p.bins - 1) : std::numeric_limits<std::int32_t>::max();
  params.bins_are_bytes = p.sample == HistogramSample::uint8 && p.first == 0 && p.bins >= 256;
}

}  // namespace

BoundHistogram bind(const HistogramPlan& plan, const HistogramArguments& arguments) {
  const HistogramProblem& p = plan.problem;
  BoundHistogram bound{};
  bind_samples(p, arguments.samples, bound.params);
  bind_values(p, bound.params);
  bound.params.counts = arguments.counts;
  bound.params.result_bins = static_cast<std::uint32_t>(p.bins);
  bound.params.wide_counts = p.count_type == CountType::int64;
  bound.params.after_clearing = !p.accumulate;
  bound.params.range_shift = exponent_of(plan.way.ranges);
  bound.params.copies_shift = exponent_of(plan.way.copies);
  bound.params.groups = static_cast<std::uint32_t>(plan.groups);
  bound.grid_ctas = p.n == 0 ? 0 : plan.groups * plan.way.ranges;
  bound.clearing_ctas = p.accumulate ? 0 : static_cast<int>((p.bins + kClearThreads - 1) / kClearThreads);
  return bound;
}

}  // namespace sluice
