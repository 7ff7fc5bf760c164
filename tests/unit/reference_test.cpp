// run_on_cpu against the definition of the product.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "sluice/sluice.hpp"

#include "gemm_data.hpp"

namespace sluice {
namespace {

using test::GemmData;
using test::plan_on_h10;
using test::Values;

void run(GemmData& data, const PlanOptions& options = {}, int threads = 0) {
  const Result<Plan> made = plan_on_h10(data.problem, options);
  ASSERT_TRUE(made) << made.error().message;
  const Status status = run_on_cpu(*made, data.arguments(), threads);
  ASSERT_TRUE(status) << status.error().message;
}

// Integers small enough for the output type are exact whatever the order of summation.
void expect_exact(const GemmData& data) {
  for (std::int64_t batch = 0; batch < data.problem.batch; ++batch)
    for (std::int64_t row = 0; row < data.problem.m; ++row)
      for (std::int64_t column = 0; column < data.problem.n; ++column)
        ASSERT_EQ(data.d.get(data.index_d(batch, row, column)), data.before_activation(batch, row, column))
            << describe(data.problem) << " at " << batch << ", " << row << ", " << column;
}

TEST(Reference, EveryKernelsDivisionGivesTheExactProduct) {
  for (const KernelConfig& kernel : kernel_list()) {
    if (kernel.type_b == DataType::int4) continue;  // products of packed weights: w4_problem_test.cpp
    const bool few_rows = kernel.schedule == KernelSchedule::streaming;
    GemmProblem problem{.m = few_rows ? kernel.tile_m : kernel.tile_m + 1,
                        .n = kernel.tile_n + 3,
                        .k = 67,
                        .type_a = kernel.type_a,
                        .type_b = kernel.type_b,
                        .type_d = DataType::fp32};
    problem.layout_a = kernel.layout_a;
    problem.layout_b = kernel.layout_b;
    const auto rounded = [](std::int64_t extent) { return (extent + 15) / 16 * 16; };
    problem.lda = rounded(problem.layout_a == Layout::row_major ? problem.k : problem.m);
    problem.ldb = rounded(problem.layout_b == Layout::row_major ? problem.n : problem.k);
    GemmData data(problem, Values::integers);
    run(data, {.kernel_name = name(kernel)});
    expect_exact(data);
  }
}

TEST(Reference, EdgesOfEveryLayout) {
  const std::int64_t sizes[] = {1, 2, 7, 17, 64, 65, 129};
  int count = 0;
  for (const std::int64_t m : sizes)
    for (const std::int64_t n : sizes)
      for (const std::int64_t k : {1, 3, 64, 65, 131}) {
        GemmProblem problem{.m = m, .n = n, .k = k, .type_d = DataType::fp32};
        problem.layout_a = count % 2 ? Layout::row_major : Layout::column_major;
        problem.layout_b = count / 2 % 2 ? Layout::row_major : Layout::column_major;
        problem.type_a = problem.type_b = count / 4 % 2 ? DataType::bf16 : DataType::fp16;
        ++count;
        GemmData data(problem, Values::integers, static_cast<std::uint64_t>(count));
        run(data);
        expect_exact(data);
      }
}

TEST(Reference, StridesBatchesAndWhatLiesBetween) {
  GemmProblem problem{.m = 70, .n = 37, .k = 20, .batch = 3, .type_d = DataType::fp16};
  problem.lda = 31, problem.ldb = 29, problem.ldc = 44, problem.ldd = 41;
  problem.batch_stride_a = 0;  // one A for the whole batch
  problem.batch_stride_b = 37 * 29 + 5;
  problem.batch_stride_c = 70 * 44 + 3;
  problem.batch_stride_d = 70 * 41 + 7;
  problem.epilogue = {.alpha = 2, .beta = -3, .bias = Bias::per_row};
  GemmData data(problem, Values::integers);
  run(data);
  expect_exact(data);
  std::int64_t untouched = 0;
  for (std::int64_t i = 0; i < data.d.count(); ++i) untouched += std::isnan(data.d.get(i));
  EXPECT_EQ(untouched, data.d.count() - 3 * 70 * 37);
}

constexpr Scaling kScalings[] = {Scaling::none, Scaling::per_tensor, Scaling::per_vector, Scaling::per_vector_128, Scaling::per_block_128};

// Edges in all three directions, and gaps between the scales that hold NaN.
TEST(Reference, Fp8ScalesOfEveryKindAndLayout) {
  int count = 0;
  for (const Scaling of_a : kScalings)
    for (const Scaling of_b : kScalings) {
      GemmProblem problem{.m = 130, .n = 137, .k = 263, .batch = 2, .type_d = DataType::fp32};
      problem.lda = problem.ldb = 272;
      problem.type_a = count % 3 == 0 ? DataType::e5m2 : DataType::e4m3;
      problem.type_b = count % 2 == 0 ? DataType::e4m3 : DataType::e5m2;
      problem.scaling_a = of_a, problem.scaling_b = of_b;
      problem.scale_layout_a = count % 4 < 2 ? Layout::row_major : Layout::column_major;
      problem.scale_layout_b = count % 5 < 2 ? Layout::row_major : Layout::column_major;
      if (count % 3 == 1) problem.ld_scale_a = 140, problem.batch_stride_scale_a = 20000;
      if (count % 3 == 2) problem.ld_scale_b = 150, problem.batch_stride_scale_b = 0;
      ++count;
      GemmData data(problem, Values::integers, static_cast<std::uint64_t>(count));
      run(data);
      expect_exact(data);
    }
}

// Pieces of tiles are scaled each by itself.
TEST(Reference, Fp8ScalesOfTilesInPieces) {
  for (const SchedulerKind kind : {SchedulerKind::split_k, SchedulerKind::stream_k, SchedulerKind::hybrid})
    for (const Scaling scaling : kScalings) {
      GemmProblem problem{.m = 200, .n = 150, .k = 1296, .type_d = DataType::fp32};
      problem.type_a = problem.type_b = DataType::e4m3;
      problem.scaling_a = scaling;
      problem.scaling_b = scaling == Scaling::per_vector_128 ? Scaling::per_block_128 : scaling;
      problem.epilogue = {.alpha = 2, .beta = 1};
      GemmData data(problem, Values::integers);
      run(data, {.scheduler = kind, .min_k_tiles = 1});
      expect_exact(data);
    }
}

TEST(Reference, Fp8WithoutAProductToForm) {
  for (const bool deep : {true, false}) {
    GemmProblem problem{.m = 33, .n = 20, .k = deep ? 64 : 0, .type_d = DataType::fp32, .epilogue = {.alpha = 0, .beta = 1}};
    problem.type_a = problem.type_b = DataType::e4m3;
    problem.scaling_a = Scaling::per_block_128;
    if (!deep) problem.epilogue.alpha = 1;
    GemmData data(problem, Values::integers);
    GemmArguments arguments = data.arguments();
    arguments.a = arguments.b = arguments.scale_a = nullptr;
    ASSERT_TRUE(run_on_cpu(plan_on_h10(problem).value(), arguments));
    expect_exact(data);
  }
}

TEST(Reference, BiasAlongColumns) {
  GemmProblem problem{.m = 65, .n = 130, .k = 40, .epilogue = {.alpha = 1, .bias = Bias::per_column}};
  problem.type_d = DataType::fp32;
  GemmData data(problem, Values::integers);
  run(data);
  expect_exact(data);
}

TEST(Reference, CMayBeD) {
  GemmProblem problem{.m = 33, .n = 65, .k = 24, .type_d = DataType::fp32, .epilogue = {.alpha = 1, .beta = 2}};
  GemmData data(problem, Values::integers), in_place(problem, Values::integers);
  run(data);
  GemmArguments arguments = in_place.arguments();
  arguments.d = in_place.c.data();
  ASSERT_TRUE(run_on_cpu(plan_on_h10(problem).value(), arguments));
  EXPECT_TRUE(in_place.c == data.d);
}

TEST(Reference, BetaOfZeroNeverReadsCAndAlphaOfZeroNeverReadsAOrB) {
  GemmProblem problem{.m = 20, .n = 30, .k = 40, .type_d = DataType::fp32};
  GemmData data(problem, Values::integers);
  data.c.fill(std::numeric_limits<double>::quiet_NaN());
  run(data);
  expect_exact(data);

  problem.epilogue = {.alpha = 0, .beta = 1};
  GemmData scaled(problem, Values::integers);
  GemmArguments arguments = scaled.arguments();
  arguments.a = arguments.b = nullptr;
  ASSERT_TRUE(run_on_cpu(plan_on_h10(problem).value(), arguments));
  expect_exact(scaled);
}

TEST(Reference, KOfZeroWritesTheEpilogueOfZero) {
  GemmProblem problem{.m = 130, .n = 50, .k = 0, .type_d = DataType::fp32, .epilogue = {.alpha = 1, .beta = 3, .bias = Bias::per_row}};
  GemmData data(problem, Values::integers);
  GemmArguments arguments = data.arguments();
  arguments.a = arguments.b = nullptr;
  ASSERT_TRUE(run_on_cpu(plan_on_h10(problem).value(), arguments));
  expect_exact(data);
}

TEST(Reference, EmptyProblemsAskForNothing) {
  for (const GemmProblem& problem : {GemmProblem{.m = 0, .n = 5, .k = 5}, {.m = 5, .n = 0, .k = 5}, {.m = 5, .n = 5, .k = 5, .batch = 0}}) {
    const Status status = run_on_cpu(plan_on_h10(problem).value(), {});
    EXPECT_TRUE(status) << describe(problem);
  }
}

TEST(Reference, Activations) {
  for (const Activation activation : {Activation::relu, Activation::gelu_tanh, Activation::silu}) {
    GemmProblem problem{.m = 40, .n = 50, .k = 8, .type_d = DataType::fp32, .epilogue = {.alpha = 0.5f, .activation = activation}};
    GemmData data(problem, Values::normal);
    run(data);
    for (std::int64_t row = 0; row < problem.m; ++row)
      for (std::int64_t column = 0; column < problem.n; ++column) {
        const double x = data.before_activation(0, row, column);
        const double relu = x > 0 ? x : 0, silu = x / (1 + std::exp(-x));
        const double gelu = 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
        const double expected = activation == Activation::relu ? relu : activation == Activation::silu ? silu : gelu;
        ASSERT_NEAR(data.d.get(data.index_d(0, row, column)), expected, 2e-6) << to_string(activation) << " of " << x;
      }
  }
}

TEST(Reference, TheResultDoesNotDependOnThreadsOrScheduler) {
  GemmProblem problem{.m = 300, .n = 260, .k = 200, .batch = 2};
  GemmData one(problem, Values::normal), many(problem, Values::normal), each(problem, Values::normal);
  run(one, {}, 1);
  run(many, {}, 7);
  run(each, {.scheduler = SchedulerKind::one_tile_per_cta}, 3);
  EXPECT_TRUE(one.d == many.d);
  EXPECT_TRUE(one.d == each.d);
}

TEST(Reference, ProgressNeverGoesBackAndEndsAtOne) {
  GemmProblem problem{.m = 600, .n = 600, .k = 64};
  GemmData data(problem, Values::normal);
  std::vector<double> reports;
  ASSERT_TRUE(run_on_cpu(plan_on_h10(problem).value(), data.arguments(), 2, [&](double done) { reports.push_back(done); }));
  ASSERT_FALSE(reports.empty());
  EXPECT_GT(reports.front(), 0.0);
  EXPECT_TRUE(std::is_sorted(reports.begin(), reports.end()));
  EXPECT_EQ(reports.back(), 1.0);
}

void expect_refused(const Plan& plan, const GemmArguments& arguments, ErrorCode code, const std::vector<std::string>& words) {
  const Status status = run_on_cpu(plan, arguments);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, code) << status.error().message;
  for (const std::string& word : words) EXPECT_NE(status.error().message.find(word), std::string::npos) << status.error().message;
}

template <class Pointer>
void expect_needed(const Plan& plan, GemmArguments arguments, Pointer GemmArguments::*which, const std::vector<std::string>& words) {
  arguments.*which = nullptr;
  expect_refused(plan, arguments, ErrorCode::invalid_argument, words);
}

TEST(ReferenceArguments, NullPointersAreNamedWithTheirReason) {
  GemmProblem problem{.m = 8, .n = 8, .k = 8, .epilogue = {.alpha = 1, .beta = 1, .bias = Bias::per_row}};
  GemmData data(problem, Values::integers);
  const Plan plan = plan_on_h10(problem).value();
  expect_needed(plan, data.arguments(), &GemmArguments::a, {"a is null"});
  expect_needed(plan, data.arguments(), &GemmArguments::b, {"b is null"});
  expect_needed(plan, data.arguments(), &GemmArguments::c, {"c is null", "beta", "plan with beta = 0"});
  expect_needed(plan, data.arguments(), &GemmArguments::d, {"d is null"});
  expect_needed(plan, data.arguments(), &GemmArguments::bias, {"bias is null", "Bias::none"});
}

TEST(ReferenceArguments, ScalesAreNeededWhereTheProblemHasThem) {
  GemmProblem problem{.m = 8, .n = 8, .k = 16};
  problem.type_a = problem.type_b = DataType::e4m3;
  problem.scaling_a = Scaling::per_vector, problem.scaling_b = Scaling::per_tensor;
  GemmData data(problem, Values::integers);
  const Plan plan = plan_on_h10(problem).value();
  ASSERT_TRUE(run_on_cpu(plan, data.arguments()));
  expect_needed(plan, data.arguments(), &GemmArguments::scale_a, {"scale_a is null", "the operand has scales", "pass them"});
  expect_needed(plan, data.arguments(), &GemmArguments::scale_b, {"scale_b is null"});
  GemmArguments arguments = data.arguments();
  arguments.scale_b = reinterpret_cast<const float*>(static_cast<const char*>(data.scale_b.data()) + 2);
  expect_refused(plan, arguments, ErrorCode::misaligned, {"scale_b = 0x", "aligned to 2 bytes", "at least 4 bytes"});

  problem.scaling_a = problem.scaling_b = Scaling::none;
  arguments.scale_a = arguments.scale_b = nullptr;
  EXPECT_TRUE(run_on_cpu(plan_on_h10(problem).value(), arguments));
}

TEST(ReferenceArguments, MisalignedPointersSayHowToPlanForThem) {
  GemmProblem problem{.m = 8, .n = 8, .k = 8};
  GemmData data(problem, Values::integers);
  GemmArguments arguments = data.arguments();
  arguments.a = static_cast<const std::uint16_t*>(data.a.data()) + 1;
  expect_refused(plan_on_h10(problem).value(), arguments, ErrorCode::misaligned, {"a = 0x", "16", "alignment_a_bytes = 2"});
  arguments = data.arguments();
  arguments.d = static_cast<std::uint16_t*>(data.d.data()) + 4;
  expect_refused(plan_on_h10(problem).value(), arguments, ErrorCode::misaligned, {"d = 0x", "alignment_d_bytes = 8"});
  arguments = data.arguments();
  arguments.b = static_cast<const char*>(data.b.data()) + 1;
  expect_refused(plan_on_h10(problem).value(), arguments, ErrorCode::misaligned, {"b = 0x", "at least 2 bytes"});
}

TEST(ReferenceArguments, APlanMadeForLessAlignmentTakesThem) {
  GemmProblem problem{.m = 9, .n = 9, .k = 9, .type_d = DataType::fp32};
  problem.alignment_a_bytes = 2;
  GemmData data(problem, Values::integers);
  test::Elements moved(DataType::bf16, data.a.count() + 1);
  for (std::int64_t i = 0; i < data.a.count(); ++i) moved.set(i + 1, data.a.get(i));
  GemmArguments arguments = data.arguments();
  arguments.a = static_cast<const std::uint16_t*>(moved.data()) + 1;
  const Status status = run_on_cpu(plan_on_h10(problem).value(), arguments);
  ASSERT_TRUE(status) << status.error().message;
  expect_exact(data);
}

TEST(ReferenceArguments, CInThePlaceOfDNeedsItsStrides) {
  GemmProblem problem{.m = 8, .n = 8, .k = 8, .epilogue = {.alpha = 1, .beta = 1}};
  problem.ldc = 16;
  GemmData data(problem, Values::integers);
  GemmArguments arguments = data.arguments();
  arguments.d = data.c.data();
  expect_refused(plan_on_h10(problem).value(), arguments, ErrorCode::invalid_argument, {"ldc = 16", "ldd = 8"});
}

TEST(ReferenceArguments, APlanThatDoesNotFitTogetherIsRefused) {
  GemmProblem problem{.m = 300, .n = 300, .k = 300};
  GemmData data(problem, Values::integers);
  const Plan good = plan_on_h10(problem).value();
  Plan bad = good;
  bad.scheduler.tiles_m -= bad.scheduler.cluster_m;
  expect_refused(bad, data.arguments(), ErrorCode::invalid_argument, {"do not cover m = 300"});
  bad = good;
  bad.scheduler.k_tiles = 2;
  expect_refused(bad, data.arguments(), ErrorCode::invalid_argument, {"do not cover k = 300"});
  bad = good;
  bad.worker_count = 0;
  expect_refused(bad, data.arguments(), ErrorCode::invalid_argument, {"worker_count = 0"});
  bad = good;
  bad.scheduler.cohort = 0;
  expect_refused(bad, data.arguments(), ErrorCode::invalid_argument, {"cohort = 0"});
}

}  // namespace
}  // namespace sluice
