#include "histogram_case.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <random>

namespace sluice::gpu_tests {
namespace {

constexpr std::size_t kGuardBytes = 256, kAlignment = 256;

std::size_t count_bytes(const HistogramProblem& p) { return static_cast<std::size_t>(p.bins * size_bytes(p.count_type)); }

int sample_bytes_of(const HistogramProblem& p) { return p.sample == HistogramSample::uint8 ? 1 : 4; }

// A position among the bins, from a quarter before the first to a quarter behind the last.
double position(const HistogramCase& c, std::uint64_t draw) {
  const auto bins = static_cast<double>(c.problem.bins), share = static_cast<double>(draw >> 11) * 0x1p-53;
  const double anywhere = (share * 1.5 - 0.25) * bins;
  if (c.samples == Samples::equal) return bins / 2;
  if (c.samples != Samples::skewed || draw % 4 == 0) return anywhere;
  return draw % 4 == 1 ? (draw % 8 == 1 ? 1.0 : bins - 0.5) : bins / 3;
}

std::int32_t integer_sample(const HistogramCase& c, std::uint64_t draw) {
  if (c.samples == Samples::special && draw % 3 == 0) {
    const std::int32_t ends[] = {std::numeric_limits<std::int32_t>::min(), std::numeric_limits<std::int32_t>::max(),
                                 static_cast<std::int32_t>(c.problem.first),
                                 static_cast<std::int32_t>(c.problem.first + c.problem.bins - 1)};
    return ends[draw / 3 % 4];
  }
  const double value = static_cast<double>(c.problem.first) + position(c, draw);
  return static_cast<std::int32_t>(std::clamp(value, -2147483648.0, 2147483647.0));
}

float float_sample(const HistogramCase& c, std::uint64_t draw) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  if (c.samples == Samples::special && draw % 3 == 0) {
    const float ends[] = {std::numeric_limits<float>::quiet_NaN(), kInfinity, -kInfinity, 3e38f, c.problem.lower, c.problem.upper, -0.0f};
    return ends[draw / 3 % 7];
  }
  const double width = static_cast<double>(c.problem.upper) - c.problem.lower;
  return static_cast<float>(c.problem.lower + position(c, draw) / static_cast<double>(c.problem.bins) * width);
}

void add_cases(std::vector<HistogramCase>& cases, const HistogramWay& way, std::int64_t bins, bool few) {
  const std::int64_t most = few ? 70'000 : 3'000'000;
  int turn = static_cast<int>(cases.size());
  for (const HistogramSample sample : {HistogramSample::int32, HistogramSample::float32, HistogramSample::uint8}) {
    if (sample == HistogramSample::uint8 && (way.counters != HistogramCounters::words || way.ranges > 1)) continue;
    for (const Samples samples : {Samples::uniform, Samples::skewed, Samples::equal, Samples::special}) {
      if (few && ++turn % 3 == 0 && samples != Samples::skewed) continue;  // each way meets most of them
      ++turn;
      const bool bytes = sample == HistogramSample::uint8;
      HistogramProblem p{.n = turn % 5 == 0 ? 3 : most - 17 * turn, .bins = bins, .sample = sample};
      p.count_type = turn % 2 == 0 ? CountType::int32 : CountType::int64;
      p.outside = turn % 3 == 0 ? OutsideValues::clamped : OutsideValues::ignored;
      p.first = bytes ? (turn % 2 == 0 ? 0 : 7) : turn % 4 == 0 ? -1000 : turn % 4 == 1 ? 2147483647 - bins + 1 : 0;
      p.lower = turn % 2 == 0 ? -3.5f : 0.0f;
      p.upper = 11.25f;
      p.accumulate = turn % 4 == 2;
      cases.push_back({.problem = *validate(p),
                       .way = way,
                       .sms = few ? 2 * way.ranges : 8 * way.ranges,
                       .offset_elems = turn % 4,
                       .samples = samples});
    }
  }
}

}  // namespace

std::string describe(const HistogramCase& c) {
  constexpr const char* kSamples[] = {"uniform", "skewed", "equal", "special"};
  return describe(c.problem) + ", " + describe(c.way) + ", " + std::to_string(c.sms) + " SMs, offset " + std::to_string(c.offset_elems) +
         ", " + kSamples[static_cast<int>(c.samples)];
}

std::vector<HistogramCase> histogram_cases(bool few) {
  std::vector<HistogramCase> cases;
  const auto words = [](int copies) { return HistogramWay{.counters = HistogramCounters::words, .copies = copies}; };
  const auto split_words = [](int ranges) { return HistogramWay{.counters = HistogramCounters::words, .ranges = ranges}; };
  const auto fields = [](int ranges) { return HistogramWay{.counters = HistogramCounters::fields, .field_bits = 8, .ranges = ranges}; };
  add_cases(cases, words(32), 256, few);
  add_cases(cases, words(4), 1000, few);
  add_cases(cases, words(1), 2, few);
  add_cases(cases, split_words(2), 333, few);
  add_cases(cases, split_words(2), 2, few);
  add_cases(cases, split_words(8), 1003, few);
  add_cases(cases, fields(1), 65, few);  // which overflow after 255 samples
  add_cases(cases, fields(4), 1003, few);
  add_cases(cases, fields(2), 2, few);
  add_cases(cases, {.counters = HistogramCounters::global}, 777, few);
  // In one CTA, 75,000 samples of each of two bins that share a word with others: their fields overflow again and again.
  cases.push_back({.problem = {.n = 600'000, .bins = 20}, .way = fields(1), .sms = 1, .offset_elems = 1, .samples = Samples::skewed});
  if (few) return cases;
  add_cases(cases, words(1), 57000, few);
  add_cases(cases, split_words(2), 65536, few);
  add_cases(cases, split_words(8), 262144, few);
  add_cases(cases, split_words(32), 999983, few);
  add_cases(cases, fields(1), 200000, few);
  add_cases(cases, fields(2), 262144, few);
  add_cases(cases, fields(8), 1048576, few);
  add_cases(cases, fields(16), 999983, few);
  add_cases(cases, {.counters = HistogramCounters::global}, 1048576, few);
  return cases;
}

HistogramPlan plan_of(const HistogramCase& c) {
  DeviceSpec device = *find_device("h200");
  device.sm_count = c.sms;
  device.clusters_of_2 = c.sms / 2;
  return *plan_histogram(c.problem, device, c.way);
}

HistogramArguments HistogramOperands::arguments() { return {.samples = samples.data() + first, .counts = counts.data() + kGuardBytes}; }

HistogramOperands make_operands(const HistogramCase& c, std::uint64_t seed) {
  const HistogramProblem& p = c.problem;
  const auto bytes = static_cast<std::size_t>(p.n * sample_bytes_of(p));
  HistogramOperands operands;
  operands.samples.resize(bytes + 2 * kAlignment);
  const auto address = reinterpret_cast<std::uintptr_t>(operands.samples.data());
  operands.first = (kAlignment - address % kAlignment) % kAlignment + static_cast<std::size_t>(c.offset_elems * sample_bytes_of(p));
  std::mt19937_64 random(seed);
  std::byte* const to = operands.samples.data() + operands.first;
  for (std::int64_t i = 0; i < p.n; ++i) {
    const std::uint64_t draw = random();
    const auto at = static_cast<std::size_t>(i * sample_bytes_of(p));
    if (p.sample == HistogramSample::float32) {
      const float x = float_sample(c, draw);
      std::memcpy(to + at, &x, sizeof x);
    } else if (p.sample == HistogramSample::int32) {
      const std::int32_t x = integer_sample(c, draw);
      std::memcpy(to + at, &x, sizeof x);
    } else {
      to[at] = static_cast<std::byte>(integer_sample(c, draw));
    }
  }
  // Rubbish where it is to be overwritten; small numbers where it is to be added to.
  operands.counts.assign(count_bytes(p) + 2 * kGuardBytes, std::byte{0xcd});
  if (p.accumulate)
    for (std::size_t at = 0; at < count_bytes(p); ++at)
      operands.counts[kGuardBytes + at] = at % static_cast<std::size_t>(size_bytes(p.count_type)) == 0 ? std::byte{5} : std::byte{0};
  return operands;
}

std::string differences(const HistogramCase& c, const HistogramOperands& got, const HistogramOperands& expected) {
  const auto size = static_cast<std::size_t>(size_bytes(c.problem.count_type));
  for (std::size_t at = 0; at < got.counts.size(); ++at) {
    if (got.counts[at] == expected.counts[at]) continue;
    if (at < kGuardBytes || at >= kGuardBytes + count_bytes(c.problem)) return describe(c) + ": a byte beside the counts has been written";
    const std::size_t bin = (at - kGuardBytes) / size;
    std::int64_t was = 0, wanted = 0;
    std::memcpy(&was, got.counts.data() + kGuardBytes + bin * size, size);
    std::memcpy(&wanted, expected.counts.data() + kGuardBytes + bin * size, size);
    return describe(c) + ": bin " + std::to_string(bin) + " has " + std::to_string(was) + ", not " + std::to_string(wanted);
  }
  return "";
}

}  // namespace sluice::gpu_tests
