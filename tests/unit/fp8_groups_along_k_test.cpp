// Groups along K of FP8 operands: what validate() makes of them, plans for them, and what run_on_cpu() and verify() compute. Each begins
// and ends with a block of 128 of K, whose scales are its own.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "sluice/emulator.hpp"
#include "sluice/sluice.hpp"

#include "core/check_plan.hpp"
#include "core/groups.hpp"
#include "devices.hpp"
#include "grouped_data.hpp"
#include "refused.hpp"

namespace sluice {
namespace {

using test::arguments_of;
using test::Elements;
using test::expect_refused;
using test::GemmData;
using test::plan_on_h10;
using test::run;
using test::Sizes;
using test::Values;

GemmProblem fp8_along_k(std::int64_t m = 4096, std::int64_t n = 7168, std::int64_t k = 8192, std::int64_t groups = 8) {
  return {.m = m,
          .n = n,
          .k = k,
          .batch = groups,
          .type_a = DataType::e4m3,
          .type_b = DataType::e4m3,
          .scaling_a = Scaling::per_vector_128,
          .scaling_b = Scaling::per_vector_128,
          .scale_layout_a = Layout::column_major,
          .scale_layout_b = Layout::column_major,
          .grouping = Grouping::along_k};
}

constexpr Scaling kScalings[] = {Scaling::none, Scaling::per_tensor, Scaling::per_vector, Scaling::per_vector_128, Scaling::per_block_128};

TEST(Fp8GroupsAlongK, OperandsAndTheirScalesAreOneMatrixEach) {
  GemmProblem p = fp8_along_k();
  p.batch_stride_b = 32, p.batch_stride_scale_a = 77;  // of matrices that there are not
  const Result<GemmProblem> v = validate(p);
  ASSERT_TRUE(v) << v.error().message;
  EXPECT_EQ(v->lda, 8192);
  EXPECT_EQ(v->ldb, 8192);
  for (const std::int64_t stride : {v->batch_stride_a, v->batch_stride_b, v->batch_stride_scale_a, v->batch_stride_scale_b})
    EXPECT_EQ(stride, 0);
  EXPECT_EQ(v->batch_stride_d, 4096 * 7168);
  EXPECT_EQ(scale_elems_a(*v), 4096 * 64) << "one for each 128 of all that there is of K";
  EXPECT_EQ(scale_elems_b(*v), 7168 * 64);
  EXPECT_EQ(flops(*v), 2.0 * 4096 * 7168 * 8192);
  EXPECT_EQ(*validate(*v), *v);
  EXPECT_EQ(describe(*v), "4096 x 7168 x 8192, 8 along-k groups e4m3 -> bf16, A row-major, B column-major, scales 1x128 and 1x128");
  for (const Scaling a : kScalings)
    for (const Scaling b : kScalings) {
      p = fp8_along_k();
      p.scaling_a = a, p.scaling_b = b;
      EXPECT_TRUE(validate(p)) << to_string(a) << ", " << to_string(b);
    }
}

TEST(Fp8GroupsAlongK, KIsAMultipleOf128) {
  for (const std::int64_t k : {0, 128, 8192}) EXPECT_TRUE(validate(fp8_along_k(40, 24, k))) << k;
  expect_refused(validate(fp8_along_k(40, 24, 8080)), ErrorCode::unsupported,
                 {"k = 8080 with groups along k of e4m3", "multiples of 128", "pad to 8192 with zeros"});
  GemmProblem p = fp8_along_k();
  p.layout_b = Layout::row_major;
  expect_refused(validate(p), ErrorCode::unsupported, {"layout_b = row-major with fp8 operands", "transpose"});
  p = fp8_along_k();
  p.lda = 8200;
  expect_refused(validate(p), ErrorCode::unsupported, {"lda = 8200", "16 bytes"});
}

TEST(Fp8GroupsAlongK, PlansAreOfWholeTilesByKernelsWithKTilesOf128) {
  for (const auto& [m, groups] : {std::pair{136, 256}, {4096, 8}, {8192, 1}}) {
    const Result<Plan> made = plan(fp8_along_k(m, 7168, 65536, groups), h200());
    ASSERT_TRUE(made) << made.error().message;
    EXPECT_TRUE(check_plan(*made)) << check_plan(*made).error().message;
    EXPECT_EQ(made->scheduler.kind, SchedulerKind::data_parallel);
    EXPECT_EQ(made->scheduler.claim, WorkClaim::ticket) << "whoever is free takes the next";
    EXPECT_EQ(made->scheduler.groups, groups);
    EXPECT_EQ(made->scheduler.k_tiles * made->kernel.tile_k, 65536) << "one group may have all of K";
    EXPECT_EQ(made->kernel.tile_k, 128);
    const Result<Plan> read = plan_from_json(to_json(*made));
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(*read, *made);
    EXPECT_NE(explain(*made).find("with about " + std::to_string(65536 / groups) + " of K in each group"), std::string::npos)
        << explain(*made);
  }
  // 63 blocks of K for 8 groups: 8 each.
  EXPECT_NE(explain(*plan(fp8_along_k(4096, 7168, 63 * 128), h200())).find("with about 1024 of K"), std::string::npos);
  for (const SchedulerKind kind : {SchedulerKind::one_tile_per_cta, SchedulerKind::split_k, SchedulerKind::stream_k, SchedulerKind::hybrid})
    expect_refused(plan(fp8_along_k(), h200(), {.scheduler = kind}), ErrorCode::invalid_argument, {"groups along k", "take data-parallel"});
  const char* const long_k_tiles = "e4m3_rc_coop_32x64x256_c1x1_swap";
  expect_refused(plan(fp8_along_k(), h200(), {.kernel_name = long_k_tiles}), ErrorCode::unsupported, {long_k_tiles});
  Plan bad = *plan(fp8_along_k(), h200());
  bad.kernel = *std::find_if(kernel_list().begin(), kernel_list().end(), [&](const KernelConfig& k) { return name(k) == long_k_tiles; });
  bad.scheduler.cluster_m = bad.scheduler.cluster_n = 1;
  bad.scheduler.tiles_m = 128, bad.scheduler.tiles_n = 112, bad.scheduler.k_tiles = 32;
  expect_refused(check_plan(bad), ErrorCode::invalid_argument, {long_k_tiles, "cannot find out"});
}

// Large groups are as a batch of such products to the planner.
TEST(Fp8GroupsAlongK, KernelsAreChosenAsForABatch) {
  for (const std::int64_t tokens : {512, 4096}) {
    const Plan grouped = *plan(fp8_along_k(4096, 7168, 8 * tokens), h200());
    GemmProblem p = fp8_along_k(4096, 7168, tokens);
    p.grouping = Grouping::none;
    const Plan batch = *plan(p, h200(), {.scheduler = SchedulerKind::data_parallel, .keep_candidates = true});
    // Fastest first; not every kernel of a batch computes such groups.
    const auto best = std::find_if(batch.candidates.begin(), batch.candidates.end(),
                                   [](const Candidate& c) { return computes_groups_along_k(c.kernel); });
    ASSERT_NE(best, batch.candidates.end());
    EXPECT_EQ(name(grouped.kernel), name(best->kernel));
    EXPECT_NEAR(grouped.predicted.total_us / best->predicted.total_us, 1, 0.02);
  }
}

TEST(Fp8GroupsAlongK, NumbersBetweenBlocksCountAsTheLowerOne) {
  for (const GroupRange k : {GroupRange{0, 0}, {0, 127}, {127, 1}, {128, 128}, {5, 300}, {255, 2}, {1000, 24}}) {
    const GroupRange in = in_scale_blocks(k);
    EXPECT_EQ(in.first, k.first / 128 * 128);
    EXPECT_EQ(in.first + in.count, (k.first + k.count) / 128 * 128);
  }
  // So what one group ends with the next begins with, and none has what is not there.
  const GemmProblem p = *validate(fp8_along_k(40, 24, 1024, 4));
  const Sizes wild = {-5, 130, 255, 700, 5000};
  EXPECT_EQ(range_of_group(p, wild.data(), 0).count, 128);
  for (std::int64_t g = 1; g < 4; ++g) {
    const GroupRange before = range_of_group(p, wild.data(), g - 1), here = range_of_group(p, wild.data(), g);
    EXPECT_EQ(here.first, before.first + before.count) << g;
  }
  EXPECT_EQ(range_of_group(p, wild.data(), 3).first + range_of_group(p, wild.data(), 3).count, 1024);
}

const Sizes kSizes = {0, 0, 128, 384, 384, 512, 1152};  // of six groups, the last of five blocks; 128 behind them are nobody's
constexpr std::int64_t kAll = 1280;

// By the definition, element by element: the sum over what the group has, of numbers times their scales.
double by_definition(const GemmData& data, const Sizes& sizes, std::int64_t g, std::int64_t row, std::int64_t column) {
  double sum = 0;
  for (std::int64_t k = sizes[static_cast<std::size_t>(g)]; k < sizes[static_cast<std::size_t>(g) + 1]; ++k)
    sum += data.get_a(0, row, k) * data.get_scale_a(0, row, k) * data.get_b(0, k, column) * data.get_scale_b(0, k, column);
  const Epilogue& e = data.problem.epilogue;
  sum *= e.alpha;
  if (e.beta != 0) sum += e.beta * data.c.get(g * data.problem.batch_stride_c + row * data.problem.ldc + column);
  return sum;
}

// Small integers and scales that are powers of two are exact in any order.
TEST(Fp8GroupsAlongK, AreWhatTheDefinitionSays) {
  for (const Scaling a : kScalings)
    for (const Scaling b : kScalings)
      for (const Layout layout : {Layout::row_major, Layout::column_major}) {
        GemmProblem p = fp8_along_k(137, 72, kAll, 6);
        p.type_d = DataType::fp32;
        p.scaling_a = a, p.scaling_b = b;
        p.scale_layout_a = layout;
        p.epilogue.beta = layout == Layout::row_major ? 0.0f : 2.0f;
        GemmData data(p, Values::integers);
        run(data, kSizes, {});
        for (std::int64_t g = 0; g < p.batch; ++g)
          for (std::int64_t row = 0; row < p.m; row += 17)
            for (std::int64_t column = 0; column < p.n; column += 5)
              ASSERT_EQ(data.d.get(data.index_d(g, row, column)), by_definition(data, kSizes, g, row, column))
                  << to_string(a) << ", " << to_string(b) << ": " << g << ", " << row << ", " << column;
      }
}

// Group g as a product of its own, into `d`.
void run_alone(GemmData& data, const Sizes& sizes, std::int64_t group, const PlanOptions& options, Elements& d) {
  const GemmProblem& whole = data.problem;
  const GroupRange k = range_of_group(whole, sizes.data(), group);
  GemmProblem p = whole;
  p.grouping = Grouping::none;
  p.k = k.count, p.batch = 1;
  GemmArguments arguments = data.arguments();
  arguments.a = static_cast<const std::byte*>(arguments.a) + k.first;
  arguments.b = static_cast<const std::byte*>(arguments.b) + k.first;
  arguments.scale_a += k.first / 128 * whole.ld_scale_a;
  arguments.scale_b += k.first / 128 * whole.ld_scale_b;
  arguments.c = static_cast<const std::byte*>(arguments.c) + group * whole.batch_stride_c * size_bytes(p.type_d);
  arguments.d = static_cast<std::byte*>(d.data()) + group * whole.batch_stride_d * size_bytes(p.type_d);
  const Result<Plan> made = plan_on_h10(p, options);
  ASSERT_TRUE(made) << made.error().message;
  const Status status = run_on_cpu(*made, arguments);
  ASSERT_TRUE(status) << status.error().message;
}

TEST(Fp8GroupsAlongK, EachIsAProductOfItsOwn) {
  std::vector<std::string> kernels;
  for (const KernelConfig& kernel : kernel_list()) {
    if (!is_fp8(kernel.type_a) || !resources(kernel).computes_groups_along_k) continue;
    kernels.push_back(name(kernel));
    SCOPED_TRACE(kernels.back());
    GemmProblem p = fp8_along_k(136, 72, kAll, 6);
    p.type_a = kernel.type_a, p.type_b = kernel.type_b;
    p.epilogue = {.alpha = 1.5f, .beta = -0.5f, .bias = Bias::per_column, .activation = Activation::silu};
    p.lda = kAll + 16, p.ldb = kAll + 48, p.ld_scale_a = 140;
    const PlanOptions options{.scheduler = SchedulerKind::data_parallel, .kernel_name = kernels.back()};
    GemmData data(p, Values::normal);
    Elements expected = data.d;
    for (std::int64_t g = 0; g < p.batch; ++g) run_alone(data, kSizes, g, options, expected);
    run(data, kSizes, options);
    EXPECT_TRUE(data.d == expected);
  }
  for (const char* part : {"coop_256x128x128_c1x1", "coop_192x128x128_c1x1", "ping_64x128x128_c1x1", "coop_64x64x128_c1x1_swap"})
    EXPECT_TRUE(std::any_of(kernels.begin(), kernels.end(), [&](const std::string& k) { return k.find(part) != std::string::npos; }))
        << part;
}

// A group without any of K is a product of 0, and is written: 0, or beta C.
TEST(Fp8GroupsAlongK, EmptyOnesAreWritten) {
  for (const float beta : {0.0f, -2.0f}) {
    GemmProblem p = fp8_along_k(40, 24, 256, 3);
    p.epilogue.beta = beta;
    GemmData data(p, Values::integers);
    for (const Sizes& sizes : {Sizes{0, 0, 256, 256}, Sizes{0, 0, 0, 0}}) {
      run(data, sizes, {});
      for (const std::int64_t group : {0, 2})
        for (std::int64_t i = 0; i < 40 * 24; ++i) {
          const double expected = beta == 0 ? 0.0 : beta * data.c.get(data.index_d(group, 0, 0) + i);
          ASSERT_EQ(data.d.get(data.index_d(group, 0, 0) + i), expected) << group << ", " << i;
        }
    }
  }
}

TEST(Fp8GroupsAlongK, AreVerified) {
  GemmData data(fp8_along_k(136, 72, kAll, 6), Values::normal);
  run(data, kSizes, {});
  const auto wrong = [&](const Sizes& sizes, std::int64_t samples) {
    const Result<VerifyReport> report = verify(data.problem, arguments_of(data, sizes), nullptr, samples);
    EXPECT_TRUE(report) << report.error().message;
    EXPECT_EQ(report->checked, samples == 0 ? 6 * 136 * 72 : samples);
    return report->wrong;
  };
  Sizes moved = kSizes;
  moved[3] -= 128;  // a block is said to be of the group behind its own: groups 2 and 3 are wrong
  for (const std::int64_t samples : {0, 500}) {
    EXPECT_EQ(wrong(kSizes, samples), 0);
    EXPECT_GT(wrong(moved, samples), samples == 0 ? 136 * 72 : 50);
  }
  // A scale of the last group's second block, of one row: a row of one group is wrong.
  const std::int64_t scale = data.index_scale_a(7, 512 + 128);
  data.scale_a.set(scale, 100 * data.scale_a.get(scale));
  const std::int64_t of_a_row = wrong(kSizes, 0);
  EXPECT_GT(of_a_row, 36);
  EXPECT_LE(of_a_row, 72);
}

TEST(Fp8GroupsAlongK, SizesInHostMemoryAreMultiplesOf128) {
  GemmData data(fp8_along_k(40, 24, 512, 3), Values::integers);
  const Plan made = *plan_on_h10(data.problem);
  const Sizes bad = {0, 128, 200, 512};
  const GemmArguments arguments = arguments_of(data, bad);
  const std::vector<std::string> said = {"groups[2] = 200 with groups along k of e4m3", "multiples of 128", "zeros, here to 256"};
  expect_refused(run_on_cpu(made, arguments), ErrorCode::invalid_argument, said);
  expect_refused(verify(data.problem, arguments, nullptr), ErrorCode::invalid_argument, said);
  if (built_with_emulator()) expect_refused(run_on_emulator(made, arguments), ErrorCode::invalid_argument, said);
  const Sizes late = {5, 128, 256, 512};
  expect_refused(run_on_cpu(made, arguments_of(data, late)), ErrorCode::invalid_argument, {"groups[0] = 5", "here to 128"});
  // What lies outside ends with K, as always.
  run(data, {-5, 128, 256, 10000}, {});
  EXPECT_EQ(data.d.get(data.index_d(2, 3, 4)), by_definition(data, {0, 128, 256, 512}, 2, 3, 4));
}

}  // namespace
}  // namespace sluice
