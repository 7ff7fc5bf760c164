// Counting by the letter of its definition, sample by sample.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <mutex>
#include <vector>

#include "sluice/histogram.hpp"

#include "core/check_histogram.hpp"
#include "reference/parallel.hpp"

namespace sluice {
namespace {

constexpr std::int64_t kNowhere = -1;

std::int64_t bin_of_integer(const HistogramProblem& p, std::int64_t x) {
  const std::int64_t bin = x - p.first;
  if (bin >= 0 && bin < p.bins) return bin;
  return p.outside == OutsideValues::ignored ? kNowhere : std::clamp<std::int64_t>(bin, 0, p.bins - 1);
}

std::int64_t bin_of_float(const HistogramProblem& p, float x) {
  if (std::isnan(x)) return kNowhere;
  if (x < p.lower) return p.outside == OutsideValues::ignored ? kNowhere : 0;
  if (x >= p.upper) return p.outside == OutsideValues::ignored ? kNowhere : p.bins - 1;
  const auto bins_of_a_unit = static_cast<float>(static_cast<double>(p.bins) / (static_cast<double>(p.upper) - p.lower));
  const float distance = x - p.lower;
  const float bin = distance * bins_of_a_unit;
  return bin >= static_cast<float>(p.bins) ? p.bins - 1 : static_cast<std::int64_t>(bin);
}

std::int64_t bin_of(const HistogramProblem& p, const void* samples, std::int64_t i) {
  switch (p.sample) {
    case HistogramSample::int32:
      return bin_of_integer(p, static_cast<const std::int32_t*>(samples)[i]);
    case HistogramSample::uint8:
      return bin_of_integer(p, static_cast<const std::uint8_t*>(samples)[i]);
    case HistogramSample::float32:
      break;
  }
  return bin_of_float(p, static_cast<const float*>(samples)[i]);
}

template <class Count>
void write(const HistogramProblem& p, const std::vector<std::int64_t>& counted, void* counts) {
  auto* const to = static_cast<Count*>(counts);
  for (std::size_t bin = 0; bin < counted.size(); ++bin)
    to[bin] = static_cast<Count>((p.accumulate ? static_cast<std::int64_t>(to[bin]) : 0) + counted[bin]);
}

}  // namespace

Status histogram_on_cpu(const HistogramProblem& problem, const HistogramArguments& arguments, int threads) {
  const Result<HistogramProblem> valid = validate(problem);
  if (!valid) return valid.error();
  const HistogramProblem& p = *valid;
  if (Status s = check_arguments(p, arguments); !s) return s;
  if (is_empty(p)) return Nothing{};
  constexpr std::int64_t kSamplesAtOnce = 1 << 20;
  const std::int64_t parts = (p.n + kSamplesAtOnce - 1) / kSamplesAtOnce;
  std::vector<std::int64_t> counted(static_cast<std::size_t>(p.bins));
  std::mutex mutex;
  parallel(parts, thread_count(threads, parts), [&](const auto& next, int) {
    std::vector<std::int64_t> own(counted.size());
    for (std::int64_t part = next(); part >= 0; part = next())
      for (std::int64_t i = part * kSamplesAtOnce; i < std::min(p.n, (part + 1) * kSamplesAtOnce); ++i)
        if (const std::int64_t bin = bin_of(p, arguments.samples, i); bin != kNowhere) ++own[static_cast<std::size_t>(bin)];
    const std::lock_guard lock(mutex);
    for (std::size_t bin = 0; bin < counted.size(); ++bin) counted[bin] += own[bin];
  });
  if (p.count_type == CountType::int64)
    write<std::int64_t>(p, counted, arguments.counts);
  else
    write<std::int32_t>(p, counted, arguments.counts);
  return Nothing{};
}

}  // namespace sluice
