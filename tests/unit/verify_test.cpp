// The verifier must pass what is right and find what is wrong, however little of it there is.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "sluice/sluice.hpp"

#include "gemm_data.hpp"
#include "reference/error_bound.hpp"

namespace sluice {
namespace {

using test::GemmData;
using test::plan_on_h10;
using test::Values;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

VerifyReport verified(GemmData& data, std::int64_t samples = 0, std::uint64_t seed = 1) {
  const Result<VerifyReport> report = verify(data.problem, data.arguments(), nullptr, samples, seed);
  EXPECT_TRUE(report) << report.error().message;
  return report ? *report : VerifyReport{};
}

GemmData computed(const GemmProblem& problem, Values values) {
  GemmData data(problem, values);
  const Status status = run_on_cpu(plan_on_h10(problem).value(), data.arguments());
  EXPECT_TRUE(status);
  return data;
}

TEST(Verify, PassesTheReferenceForEveryTypeAndEpilogue) {
  for (const DataType type_a : {DataType::bf16, DataType::fp16})
    for (const DataType type_d : {DataType::bf16, DataType::fp16, DataType::fp32})
      for (const Activation activation : {Activation::none, Activation::relu, Activation::gelu_tanh, Activation::silu})
        for (const Bias bias : {Bias::none, Bias::per_row, Bias::per_column, Bias::per_group_column})
          for (const float beta : {0.0f, 1.5f}) {
            GemmProblem problem{.m = 70, .n = 67, .k = 133, .batch = 2, .type_a = type_a, .type_b = type_a, .type_d = type_d};
            problem.epilogue = {.alpha = beta == 0 ? 1.0f : 0.3f, .beta = beta, .bias = bias, .activation = activation};
            GemmData data = computed(problem, Values::normal);
            const VerifyReport report = verified(data);
            ASSERT_TRUE(report.ok()) << describe(problem) << ": " << to_string(report);
            ASSERT_EQ(report.checked, 2 * 70 * 67);
            ASSERT_LE(report.worst_ratio, 1.0);
            ASSERT_GT(report.worst_ratio, 0.0);
          }
}

TEST(Verify, LayoutsAndStrides) {
  for (const Layout layout : {Layout::row_major, Layout::column_major}) {
    GemmProblem problem{.m = 65, .n = 90, .k = 130, .batch = 2, .type_d = DataType::fp32, .layout_a = layout, .layout_b = layout};
    problem.lda = problem.ldb = 140;
    problem.ldc = 91, problem.ldd = 93;
    problem.epilogue = {.alpha = 1, .beta = 1};
    GemmData data = computed(problem, Values::integers);
    const VerifyReport report = verified(data);
    EXPECT_TRUE(report.ok()) << to_string(report);
    EXPECT_EQ(report.worst_ratio, 0.0);  // integers: nothing but the exact result is right
  }
}

TEST(Verify, FindsOneWrongElement) {
  for (const DataType type : {DataType::bf16, DataType::fp32}) {
    GemmData data = computed({.m = 150, .n = 140, .k = 512, .type_d = type}, Values::normal);
    const std::int64_t place = data.index_d(0, 77, 131);
    data.d.set(place, data.d.get(place) + (type == DataType::bf16 ? 1.0 : 0.02));
    const VerifyReport report = verified(data);
    EXPECT_EQ(report.wrong, 1) << to_string(report);
    EXPECT_EQ(report.worst_row, 77);
    EXPECT_EQ(report.worst_column, 131);
    EXPECT_GT(report.worst_ratio, 1.0);
    EXPECT_NE(to_string(report).find("row 77, column 131"), std::string::npos);
  }
}

// One step of the output type away from an exact result of integers.
TEST(Verify, IntegersMustBeExact) {
  for (const DataType type : {DataType::bf16, DataType::fp16, DataType::fp32}) {
    GemmData data = computed({.m = 64, .n = 64, .k = 1024, .type_d = type}, Values::integers);
    ASSERT_TRUE(verified(data).ok());
    const std::int64_t place = data.index_d(0, 5, 6);
    const double right = data.d.get(place), step = std::scalbn(1.0, std::ilogb(right) - (type == DataType::bf16   ? 7
                                                                                         : type == DataType::fp16 ? 10
                                                                                                                  : 23));
    data.d.set(place, right + step);
    EXPECT_EQ(verified(data).wrong, 1) << to_string(type);
  }
}

// Integers on one side only leave the sums inexact: the bound must not be zero.
TEST(Verify, IntegersTimesFractionsMayRound) {
  for (const bool integers_in_a : {true, false}) {
    GemmProblem problem{.m = 70, .n = 70, .k = 300, .type_d = DataType::fp32};
    GemmData data(problem, Values::normal);
    test::Elements& rounded = integers_in_a ? data.a : data.b;
    for (std::int64_t i = 0; i < rounded.count(); ++i) rounded.set(i, std::nearbyint(3 * rounded.get(i)));
    ASSERT_TRUE(run_on_cpu(plan_on_h10(problem).value(), data.arguments()));
    EXPECT_TRUE(verified(data).ok()) << to_string(verified(data));
    EXPECT_GT(verified(data).worst_ratio, 0);
    EXPECT_TRUE(verified(data, 300).ok());
  }
}

constexpr Scaling kScalings[] = {Scaling::none, Scaling::per_tensor, Scaling::per_vector, Scaling::per_vector_128, Scaling::per_block_128};

GemmProblem fp8_problem(std::int64_t m, std::int64_t n, std::int64_t k, Scaling scaling_a, Scaling scaling_b) {
  GemmProblem problem{.m = m, .n = n, .k = k, .type_a = DataType::e4m3, .type_b = DataType::e4m3, .type_d = DataType::fp32};
  problem.scaling_a = scaling_a, problem.scaling_b = scaling_b;
  return problem;
}

TEST(Verify, PassesTheReferenceForFp8AndEveryScaling) {
  for (const Scaling scaling_a : kScalings)
    for (const Scaling scaling_b : kScalings)
      for (const DataType type_a : {DataType::e4m3, DataType::e5m2}) {
        GemmProblem problem = fp8_problem(140, 135, 400, scaling_a, scaling_b);
        problem.type_a = type_a;
        problem.epilogue = {.alpha = 0.5f, .beta = 1, .activation = Activation::silu};
        GemmData data = computed(problem, Values::normal);
        const VerifyReport report = verified(data);
        ASSERT_TRUE(report.ok()) << describe(problem) << ": " << to_string(report);
        ASSERT_GT(report.worst_ratio, 0.0);
        ASSERT_TRUE(verified(data, 500).ok()) << describe(problem);
      }
}

// Scales are powers of two here, so that the sums are exact: whole blocks and samples must agree on that.
TEST(Verify, Fp8IntegersMustBeExact) {
  for (const Scaling scaling : kScalings) {
    GemmData data = computed(fp8_problem(64, 64, 1024, scaling, Scaling::per_vector_128), Values::integers);
    EXPECT_EQ(verified(data).worst_ratio, 0) << to_string(scaling);
    ASSERT_TRUE(verified(data).ok() && verified(data, 2000).ok());
    const std::int64_t place = data.index_d(0, 5, 6);
    const double right = data.d.get(place);
    data.d.set(place, right + std::scalbn(1.0, std::ilogb(right) - 23));
    EXPECT_EQ(verified(data).wrong, 1) << to_string(scaling);
    EXPECT_EQ(verified(data, 4096).wrong, 1) << to_string(scaling);
  }
}

// The tensor cores need not hold integers of 2^13 and more, nor products of scales that have many bits.
TEST(Verify, LargeFp8IntegersMayRound) {
  GemmData data(fp8_problem(1, 1, 256, Scaling::none, Scaling::none), Values::integers);
  for (const double value : {7.0, 8.0}) {
    data.a.fill(value);
    data.b.fill(value);
    data.d.set(0, 256 * value * value - 1);
    EXPECT_EQ(verified(data).wrong, value < 8 ? 1 : 0);  // 128 x 49 is below 2^13, 128 x 64 is not
  }
  GemmData scaled = computed(fp8_problem(40, 40, 256, Scaling::per_vector, Scaling::per_block_128), Values::integers);
  for (std::int64_t row = 0; row < 40; ++row) scaled.scale_a.set(row, 0.1);
  ASSERT_TRUE(run_on_cpu(plan_on_h10(scaled.problem).value(), scaled.arguments()));
  EXPECT_TRUE(verified(scaled).ok());
  EXPECT_GT(verified(scaled).worst_ratio, 0);
}

// A sum of FP8 products as Hopper's tensor cores make it: 32 products and the sum so far, cut off below the 14th bit of the largest.
double add_in_14_bits(double sum, const double* products) {
  double largest = std::abs(sum);
  for (int i = 0; i < 32; ++i) largest = std::max(largest, std::abs(products[i]));
  if (largest == 0) return 0;
  const double unit = std::scalbn(1.0, std::ilogb(largest) - 13);
  double total = std::trunc(sum / unit);
  for (int i = 0; i < 32; ++i) total += std::trunc(products[i] / unit);
  return total * unit;
}

// The whole product so, promoted every `depth` of K.
void multiply_in_14_bits(GemmData& data, std::int64_t depth) {
  const GemmProblem& p = data.problem;
  for (std::int64_t row = 0; row < p.m; ++row)
    for (std::int64_t column = 0; column < p.n; ++column) {
      float promoted = 0;
      for (std::int64_t first = 0; first < p.k; first += depth) {
        double sum = 0, products[32];
        for (std::int64_t k = first; k < std::min(p.k, first + depth); k += 32) {
          for (std::int64_t i = 0; i < 32; ++i) products[i] = k + i < p.k ? data.get_a(0, row, k + i) * data.get_b(0, k + i, column) : 0;
          sum = add_in_14_bits(sum, products);
        }
        promoted += static_cast<float>(sum * data.get_scale_a(0, row, first) * data.get_scale_b(0, first, column));
      }
      data.d.set(data.index_d(0, row, column), promoted);
    }
}

// Numbers of one sign, all whose truncations add up; a few large ones, beside which the others vanish; every pattern of bits.
TEST(Verify, PassesWhatTheTensorCoresMakeOfFp8) {
  std::mt19937 random(1);
  std::normal_distribution<double> normal;
  std::uniform_int_distribution<int> bytes(0, 125), percent(0, 99);
  const std::vector<std::function<double()>> kinds = {
      [&] { return 64 * normal(random); },
      [&] { return std::abs(64 * normal(random)); },
      [&] { return (percent(random) < 3 ? 300 : 4) * normal(random); },
      [&] { return (percent(random) < 3 ? 400 : 0.3) * std::abs(normal(random)); },
      [&] { return (percent(random) < 50 ? -1 : 1) * from_e4m3_bits(static_cast<std::uint8_t>(bytes(random))); },
      [&] { return from_e4m3_bits(static_cast<std::uint8_t>(bytes(random))); },
  };
  double closest = 0;
  for (const auto& draw : kinds) {
    GemmData data(fp8_problem(20, 24, 784, Scaling::per_vector_128, Scaling::per_block_128), Values::normal);
    for (test::Elements* each : {&data.a, &data.b})
      for (std::int64_t i = 0; i < each->count(); ++i) each->set(i, draw());
    multiply_in_14_bits(data, 128);
    const VerifyReport report = verified(data);
    EXPECT_TRUE(report.ok()) << to_string(report);
    EXPECT_TRUE(verified(data, 100).ok());
    closest = std::max(closest, report.worst_ratio);
  }
  EXPECT_GT(closest, 0.1) << "a bound that nothing comes near finds nothing";
}

TEST(Verify, FindsFp8SumsThatWereNotPromoted) {
  GemmData data(fp8_problem(8, 8, 16384, Scaling::none, Scaling::none), Values::normal);
  for (test::Elements* each : {&data.a, &data.b})
    for (std::int64_t i = 0; i < each->count(); ++i) each->set(i, std::abs(each->get(i)));
  multiply_in_14_bits(data, 128);
  EXPECT_TRUE(verified(data).ok()) << to_string(verified(data));
  multiply_in_14_bits(data, data.problem.k);
  EXPECT_EQ(verified(data).wrong, 64);
}

// The scales of the block beside, as a kernel that takes them a block too late would have it.
TEST(Verify, FindsScalesOfAnotherBlock) {
  GemmData data = computed(fp8_problem(128, 128, 1024, Scaling::per_vector_128, Scaling::per_block_128), Values::normal);
  ASSERT_TRUE(verified(data).ok());
  std::swap_ranges(static_cast<float*>(data.scale_a.data()), static_cast<float*>(data.scale_a.data()) + 1,
                   static_cast<float*>(data.scale_a.data()) + 1);
  const VerifyReport report = verified(data);
  EXPECT_GT(report.wrong, 100);  // of the 128 elements of row 0
  EXPECT_LE(report.wrong, 128);
  EXPECT_EQ(report.worst_row, 0);
}

TEST(Verify, FindsOneNanAndOneInfinity) {
  GemmData data = computed({.m = 100, .n = 100, .k = 64}, Values::normal);
  data.d.set(data.index_d(0, 99, 0), kNan);
  VerifyReport report = verified(data);
  EXPECT_EQ(report.not_a_number, 1);
  EXPECT_EQ(report.wrong, 0);
  EXPECT_EQ(report.worst_row, 99);
  EXPECT_FALSE(report.ok());
  data.d.set(data.index_d(0, 99, 0), kInfinity);
  report = verified(data);
  EXPECT_EQ(report.wrong, 1);
  EXPECT_EQ(report.not_a_number, 0);
}

TEST(Verify, AnUnwrittenResultIsAllNan) {
  GemmData data({.m = 66, .n = 65, .k = 32}, Values::normal);
  EXPECT_EQ(verified(data).not_a_number, 66 * 65);
}

// A relative norm over the whole result would let this pass: one tile of 1024, its last k-tile left out.
TEST(Verify, FindsATileThatMissedAKTile) {
  GemmProblem problem{.m = 1024, .n = 512, .k = 512, .type_d = DataType::fp32};
  GemmData data = computed(problem, Values::normal);
  for (std::int64_t row = 512; row < 544; ++row)
    for (std::int64_t column = 64; column < 80; ++column) {
      double sum = 0;
      for (std::int64_t k = 0; k < 448; ++k) sum += data.get_a(0, row, k) * data.get_b(0, k, column);
      data.d.set(data.index_d(0, row, column), sum);
    }
  const VerifyReport report = verified(data);
  EXPECT_GT(report.wrong, 500);
  EXPECT_LE(report.wrong, 512);
}

TEST(Verify, SamplesAreDrawnFromTheSeedAndSpreadOut) {
  GemmProblem problem{.m = 200, .n = 300, .k = 32, .batch = 3};
  GemmData data = computed(problem, Values::normal);
  EXPECT_EQ(verified(data, 1000).checked, 1000);
  EXPECT_EQ(verified(data, 1 << 20).checked, 3 * 200 * 300);  // more than there are: all

  // A tenth of the rows wrong: a tenth of the samples, wherever they fall.
  for (std::int64_t batch = 0; batch < 3; ++batch)
    for (std::int64_t row = 0; row < 200; row += 10)
      for (std::int64_t column = 0; column < 300; ++column) data.d.set(data.index_d(batch, row, column), 1e4);
  const VerifyReport first = verified(data, 4000, 7), again = verified(data, 4000, 7), other = verified(data, 4000, 8);
  EXPECT_NEAR(static_cast<double>(first.wrong), 400, 80);
  EXPECT_EQ(first.wrong, again.wrong);
  EXPECT_EQ(first.worst_row, again.worst_row);
  EXPECT_EQ(first.worst_column, again.worst_column);
  EXPECT_TRUE(first.wrong != other.wrong || first.worst_column != other.worst_column || first.worst_row != other.worst_row);
}

TEST(Verify, CInPlaceNeedsItsCopy) {
  GemmProblem problem{.m = 40, .n = 40, .k = 40, .type_d = DataType::fp32, .epilogue = {.alpha = 1, .beta = 1}};
  GemmData data(problem, Values::integers);
  const test::Elements before = data.c;
  GemmArguments arguments = data.arguments();
  arguments.d = data.c.data();
  ASSERT_TRUE(run_on_cpu(plan_on_h10(problem).value(), arguments));
  const Result<VerifyReport> without = verify(problem, arguments, nullptr);
  ASSERT_FALSE(without);
  EXPECT_NE(without.error().message.find("c_before"), std::string::npos);
  const Result<VerifyReport> with = verify(problem, arguments, before.data());
  ASSERT_TRUE(with);
  EXPECT_TRUE(with->ok()) << to_string(*with);
}

TEST(Verify, InfinitiesAndNansOfTheOperandsMustComeThrough) {
  GemmProblem problem{.m = 4, .n = 4, .k = 16, .type_d = DataType::fp32};
  GemmData data(problem, Values::integers);
  for (std::int64_t column = 0; column < 4; ++column) data.b.set(column * 16, column < 2 ? 1 : 0);  // infinity times zero is NaN
  data.a.set(0, kInfinity);
  data.a.set(16, kNan);
  ASSERT_TRUE(run_on_cpu(plan_on_h10(problem).value(), data.arguments()));
  EXPECT_TRUE(verified(data).ok());
  ASSERT_EQ(data.d.get(0), kInfinity);
  ASSERT_TRUE(std::isnan(data.d.get(2)));
  data.d.set(0, 1e30);        // infinity lost
  data.d.set(2, 5);           // NaN lost
  data.d.set(1, -kInfinity);  // the wrong one
  EXPECT_EQ(verified(data).wrong, 3);
}

TEST(Verify, OverflowOfTheOutputTypeIsInfinity) {
  GemmProblem problem{.m = 1, .n = 1, .k = 16, .type_a = DataType::fp16, .type_b = DataType::fp16, .type_d = DataType::fp16};
  GemmData data(problem, Values::integers);
  data.a.fill(100);
  data.b.fill(100);
  data.d.set(0, kInfinity);
  EXPECT_TRUE(verified(data).ok());
  data.d.set(0, 65504);  // saturated instead
  EXPECT_EQ(verified(data).wrong, 1);
}

TEST(Verify, EmptyProblemsCheckNothing) {
  const Result<VerifyReport> report = verify({.m = 0, .n = 4, .k = 4}, {}, nullptr);
  ASSERT_TRUE(report);
  EXPECT_EQ(report->checked, 0);
  EXPECT_TRUE(report->ok());
}

TEST(Verify, RefusesWhatItCannotJudge) {
  GemmData data({.m = 2, .n = 2, .k = 2}, Values::integers);
  const Result<VerifyReport> negative = verify(data.problem, data.arguments(), nullptr, -5);
  ASSERT_FALSE(negative);
  EXPECT_NE(negative.error().message.find("samples = -5"), std::string::npos);
  const Result<VerifyReport> deep = verify({.m = 1, .n = 1, .k = 1 << 23}, data.arguments(), nullptr);
  ASSERT_FALSE(deep);
  EXPECT_EQ(deep.error().code, ErrorCode::too_large);
  const Result<VerifyReport> null = verify(data.problem, {}, nullptr);
  ASSERT_FALSE(null);
  EXPECT_NE(null.error().message.find("d is null"), std::string::npos);
}

// The bound itself, on one element: how far off may 64 terms of magnitude 1 be?
TEST(VerifyBound, IsGammaTimesMagnitudesPlusOneRounding) {
  GemmProblem problem{.m = 1, .n = 1, .k = 64, .type_d = DataType::fp32};
  const ElementBound bound = bound_element(problem, {.product = 0.5, .magnitude = 64, .integers = false}, 0, 0);
  const double gamma = 64 * 0x1p-23 / (1 - 64 * 0x1p-23);
  EXPECT_NEAR(bound.highest - 0.5, gamma * 64, 1e-7);
  EXPECT_EQ(judge(bound, 0.5 + gamma * 60).verdict, ElementVerdict::right);
  EXPECT_EQ(judge(bound, 0.5 + gamma * 70).verdict, ElementVerdict::wrong);
}

// What was lost in each 128 of K, and fp32 for what is added after that.
TEST(VerifyBound, OfFp8IsThatOfSumsOf128) {
  const auto allowed = [](std::int64_t k) {
    const ElementSums sums{.product = 0.5, .magnitude = 64, .integers = false, .lost = 0.25};
    return bound_element(fp8_problem(1, 1, k, Scaling::none, Scaling::none), sums, 0, 0).highest - 0.5;
  };
  EXPECT_NEAR(allowed(128), 0.25, 64 * 1e-6);
  EXPECT_NEAR(allowed(1 << 20) - allowed(128), 64 * 0x1p13 * 0x1p-23, 64 * 1e-5);
  EXPECT_EQ(lost_in_fp8_step(8192, 5), 34);  // a unit for each product, the sum, and their sum
  EXPECT_EQ(lost_in_fp8_step(5, 16384), 68);
}

TEST(VerifyBound, TheGranuleOfAScaleIsItsLastBit) {
  EXPECT_EQ(granule_of(1), 1);
  EXPECT_EQ(granule_of(-0.5f), 0.5);
  EXPECT_EQ(granule_of(0.75f), 0.25);
  EXPECT_EQ(granule_of(48), 1);
  EXPECT_EQ(granule_of(0), 1);
  EXPECT_EQ(granule_of(std::numeric_limits<float>::infinity()), 1);
  EXPECT_EQ(granule_of(std::nextafter(1.0f, 2.0f)), 0x1p-23);
  EXPECT_EQ(granule_of(std::numeric_limits<float>::denorm_min()), 0x1p-149);
}

TEST(VerifyBound, ApproximateTanhDoesNotPass) {
  GemmProblem problem{.m = 1, .n = 1, .k = 1, .type_d = DataType::fp16, .epilogue = {.alpha = 1, .activation = Activation::gelu_tanh}};
  const ElementBound bound = bound_element(problem, {.product = -2, .magnitude = 2, .integers = true}, 0, 0);
  EXPECT_EQ(judge(bound, from_fp16_bits(to_fp16_bits(static_cast<float>(bound.reference)))).verdict, ElementVerdict::right);
  EXPECT_EQ(judge(bound, bound.reference + 0x1p-11 * 0.5).verdict, ElementVerdict::wrong);
}

}  // namespace
}  // namespace sluice
