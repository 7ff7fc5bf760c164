// What histogram() refuses, known answers of the reference, and which way is chosen.
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "sluice/histogram.hpp"

#include "core/histogram_config.hpp"
#include "refused.hpp"

namespace sluice {
namespace {

using test::expect_refused;

template <class T>
std::vector<std::int32_t> counted(HistogramProblem p, const std::vector<T>& samples, int threads = 1) {
  p.n = static_cast<std::int64_t>(samples.size());
  std::vector<std::int32_t> counts(static_cast<std::size_t>(p.bins), p.accumulate ? 100 : -7);
  const Status status = histogram_on_cpu(p, {.samples = samples.data(), .counts = counts.data()}, threads);
  EXPECT_TRUE(status.ok()) << status.error().message;
  return counts;
}

TEST(HistogramProblem, RefusalsSayWhatIsWrong) {
  using enum ErrorCode;
  const auto changed = [](auto change) {
    HistogramProblem p{.n = 1000, .bins = 256};
    change(p);
    return validate(p);
  };
  expect_refused(changed([](auto& p) { p.n = -1; }), invalid_argument, {"n = -1 is negative"});
  expect_refused(changed([](auto& p) { p.n = std::int64_t{1} << 41; }), too_large, {"over the limit of 2^40"});
  expect_refused(changed([](auto& p) { p.n = std::int64_t{1} << 31; }), too_large, {"n = 2147483648", "choose counts of int64"});
  expect_refused(changed([](auto& p) { p.bins = 1; }), invalid_argument, {"bins = 1 is not in [2, 1048576]"});
  expect_refused(changed([](auto& p) { p.bins = 1048577; }), too_large, {"bins = 1048577"});
  expect_refused(changed([](auto& p) { p.first = 2147483647 - 254; }), invalid_argument, {"leaves the values of int32"});
  expect_refused(changed([](auto& p) { p.first = -2147483649; }), invalid_argument, {"leaves the values of int32"});
  expect_refused(changed([](auto& p) { p.sample = HistogramSample::uint8, p.first = 256; }), invalid_argument, {"no value of uint8"});
  expect_refused(changed([](auto& p) { p.sample = HistogramSample::float32, p.upper = 0.0f; }), invalid_argument, {"lower below upper"});
  expect_refused(changed([](auto& p) { p.sample = HistogramSample::float32, p.upper = 1e-40f; }), invalid_argument, {"so small"});
  expect_refused(changed([](auto& p) { p.outside = static_cast<OutsideValues>(9); }), invalid_argument,
                 {"none of the enumeration's values"});
  EXPECT_TRUE(changed([](auto& p) { p.first = 2147483647 - 255; }));
}

TEST(HistogramProblem, PointersAreChecked) {
  alignas(16) std::byte memory[64] = {};
  const HistogramProblem p{.n = 2, .bins = 2};
  const auto code = [&](HistogramArguments arguments) { return histogram_on_cpu(p, arguments).error().code; };
  EXPECT_EQ(code({.samples = nullptr, .counts = memory}), ErrorCode::invalid_argument);
  EXPECT_EQ(code({.samples = memory, .counts = nullptr}), ErrorCode::invalid_argument);
  EXPECT_EQ(code({.samples = memory + 2, .counts = memory + 16}), ErrorCode::misaligned);
  EXPECT_EQ(code({.samples = memory, .counts = memory + 18}), ErrorCode::misaligned);
  EXPECT_TRUE(histogram_on_cpu({.n = 0, .bins = 2, .accumulate = true}, {}).ok());
}

TEST(Histogram, KnownCounts) {
  const std::vector<std::int32_t> x = {3, 5, 5, 2, 6, -1, 2147483647, std::numeric_limits<std::int32_t>::min()};
  EXPECT_EQ(counted({.bins = 3, .first = 3}, x), (std::vector<std::int32_t>{1, 0, 2}));
  EXPECT_EQ(counted({.bins = 3, .outside = OutsideValues::clamped, .first = 3}, x), (std::vector<std::int32_t>{4, 0, 4}));
  EXPECT_EQ(counted({.bins = 3, .first = 3, .accumulate = true}, x), (std::vector<std::int32_t>{101, 100, 102}));
  EXPECT_EQ(counted({.bins = 2, .sample = HistogramSample::uint8, .first = 254}, std::vector<std::uint8_t>{255, 255, 254, 7}),
            (std::vector<std::int32_t>{1, 2}));
}

TEST(Histogram, FloatsAtTheEnds) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const std::vector<float> x = {0.0f, 0.25f, 0.9999999f, 1.0f, -1e-30f, kInfinity, -kInfinity, std::numeric_limits<float>::quiet_NaN(),
                                -0.0f};
  const HistogramProblem p{.bins = 4, .sample = HistogramSample::float32};
  EXPECT_EQ(counted(p, x), (std::vector<std::int32_t>{2, 1, 0, 1}));
  HistogramProblem clamped = p;
  clamped.outside = OutsideValues::clamped;
  EXPECT_EQ(counted(clamped, x), (std::vector<std::int32_t>{4, 1, 0, 3})) << "a NaN counts nowhere";
}

TEST(Histogram, ThreadsAgree) {
  std::vector<std::int32_t> x(3'000'000);
  std::uint32_t state = 1;
  for (std::int32_t& each : x) each = static_cast<std::int32_t>((state = state * 1664525u + 1013904223u) >> 22);
  EXPECT_EQ(counted({.bins = 1000}, x, 1), counted({.bins = 1000}, x, 3));
}

// Each bin has a place of its own, and fields of a word do not overlap.
TEST(HistogramConfig, FieldsHaveTheirOwnBits) {
  for (const int bits : {16, 8}) {
    constexpr std::uint32_t kBins = 1000;
    std::vector<std::uint32_t> taken(field_words(kBins, bits));
    const std::uint32_t field = (1u << bits) - 1;
    for (std::uint32_t bin = 0; bin < kBins; ++bin) {
      const std::uint32_t word = field_word(bin, bits), mask = field << field_shift(bin, bits);
      ASSERT_LT(word, taken.size());
      ASSERT_EQ(taken[word] & mask, 0u) << bin;
      taken[word] |= mask;
      // The next field of a word belongs to the bin `bits` further on.
      if (field_shift(bin, bits) + static_cast<std::uint32_t>(bits) < 32) {
        ASSERT_EQ(field_word(bin + static_cast<std::uint32_t>(bits), bits), word);
      }
    }
  }
}

TEST(HistogramPlan, BinsDecideTheWay) {
  const DeviceSpec device = *find_device("h200");
  const auto way = [&](std::int64_t n, std::int64_t bins) { return plan_histogram({.n = n, .bins = bins}, device)->way; };
  constexpr std::int64_t kMany = 1 << 28;
  EXPECT_EQ(describe(way(kMany, 256)), "words");
  EXPECT_EQ(describe(way(kMany, 4096)), "words");
  EXPECT_EQ(describe(way(kMany, 16384)), "words");
  EXPECT_EQ(describe(way(kMany, 57000)), "words");
  EXPECT_EQ(describe(way(kMany, 58111)), "words");
  EXPECT_EQ(describe(way(kMany, 58112)), "words, 2 ranges");
  EXPECT_EQ(describe(way(kMany, 65536)), "words, 2 ranges");
  EXPECT_EQ(describe(way(kMany, 116222)), "words, 2 ranges");
  EXPECT_EQ(describe(way(kMany, 116223)), "8-bit fields");
  EXPECT_EQ(describe(way(kMany, 200000)), "8-bit fields");
  EXPECT_EQ(describe(way(kMany, 262144)), "8-bit fields, 2 ranges");
  EXPECT_EQ(describe(way(kMany, 1048576)), "8-bit fields, 8 ranges") << "global atomics are 10% faster evenly, 13 times slower skewed";
  EXPECT_EQ(describe(way(1 << 24, 262144)), "8-bit fields, 2 ranges");
  EXPECT_EQ(describe(way(1000, 1048576)), "global atomics");
  EXPECT_EQ(describe(plan_histogram({.n = kMany, .bins = 300, .sample = HistogramSample::uint8}, device)->way), "words, 32 copies");
  EXPECT_EQ(describe(plan_histogram({.n = kMany, .bins = 65536, .sample = HistogramSample::float32}, device)->way), "words, 2 ranges");
}

// What the plan's constants were taken from, and what they were not: samples drawn evenly, one H200, 22 November 2026.
TEST(HistogramPlan, PredictionsMeetWhatWasMeasured) {
  using enum HistogramCounters;
  const DeviceSpec device = *find_device("h200");
  constexpr std::int64_t kFew = 1 << 24, kMany = 1 << 28;
  const struct {
    std::int64_t n, bins;
    HistogramWay way;
    double measured_us;
  } cases[] = {{kMany, 256, {.counters = words}, 240},
               {kMany, 4096, {.counters = words}, 241},
               {kMany, 16384, {.counters = words}, 243},
               {kMany, 65536, {.counters = words, .ranges = 2}, 296},
               {kMany, 262144, {.counters = words, .ranges = 8}, 1177},
               {kMany, 65536, {.counters = fields, .field_bits = 8}, 361},
               {kMany, 262144, {.counters = fields, .field_bits = 8, .ranges = 2}, 737},
               {kMany, 1048576, {.counters = fields, .field_bits = 8, .ranges = 8}, 2980},
               {kFew, 256, {.counters = words}, 18},
               {kFew, 4096, {.counters = words}, 18.8},
               {kFew, 16384, {.counters = words}, 21},
               {kFew, 65536, {.counters = words, .ranges = 2}, 36},
               {kFew, 262144, {.counters = fields, .field_bits = 8, .ranges = 2}, 97}};
  for (const auto& c : cases) {
    const HistogramPlan plan = *plan_histogram({.n = c.n, .bins = c.bins}, device, c.way);
    EXPECT_NEAR(plan.predicted_us, c.measured_us, 0.08 * c.measured_us) << describe(plan.problem) << ", " << describe(plan.way);
  }
  const HistogramProblem bytes{.n = 1 << 30, .bins = 256, .sample = HistogramSample::uint8};
  EXPECT_NEAR(plan_histogram(bytes, device)->predicted_us, 251, 0.08 * 251);
}

TEST(HistogramPlan, EveryPlanFits) {
  for (const DeviceSpec& device : builtin_devices())
    for (const std::int64_t bins : {2, 3, 255, 57000, 58111, 58112, 116000, 116224, 232000, 262144, 999983, 1048576})
      for (const std::int64_t n : {0, 1, 100'000, 1 << 28}) {
        const HistogramPlan plan = *plan_histogram({.n = n, .bins = bins}, device);
        EXPECT_LE(plan.shared_memory_bytes, device.shared_memory_per_cta_bytes);
        EXPECT_LE(plan.groups * plan.way.ranges, device.sm_count);
        EXPECT_GE(plan.groups, 1);
        EXPECT_TRUE(plan.candidates.front().refused.empty());
        EXPECT_EQ(plan.candidates.front().way, plan.way);
      }
}

TEST(HistogramPlan, SaysWhy) {
  const DeviceSpec device = *find_device("h200");
  const std::string text = explain(*plan_histogram({.n = 1 << 28, .bins = 65536}, device));
  for (const char* piece : {"268435456 int32 into 65536 bins of int32", "words, 2 ranges: words of all bins do not fit", "132 CTAs",
                            "8-bit fields: ", "global atomics: "})
    EXPECT_NE(text.find(piece), std::string::npos) << text;
  expect_refused(plan_histogram({.n = 5, .bins = 65536}, device, {.counters = HistogramCounters::words}), ErrorCode::too_large,
                 {"262160 bytes of shared memory", "more ranges, or fields"});
  expect_refused(plan_histogram({.n = 5, .bins = 64}, device, {.counters = HistogramCounters::fields, .field_bits = 4}),
                 ErrorCode::unsupported, {"4-bit fields", "plan_histogram()"});
  expect_refused(
      plan_histogram({.n = 5, .bins = 64, .sample = HistogramSample::uint8}, device, {.counters = HistogramCounters::words, .ranges = 2}),
      ErrorCode::unsupported, {"words, 2 ranges", "uint8"});
}

}  // namespace
}  // namespace sluice
