// General groups: what validate() makes of them, plans for them, and what run_on_cpu() and verify() compute.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "sluice/sluice.hpp"

#include "core/check_arguments.hpp"
#include "core/check_plan.hpp"
#include "core/general_groups.hpp"
#include "core/kernel_instances.hpp"
#include "core/kernel_layout.hpp"
#include "devices.hpp"
#include "gemm_data.hpp"
#include "refused.hpp"

namespace sluice {
namespace {

using test::Elements;
using test::expect_refused;
using test::plan_on_h10;

GemmProblem general(std::int64_t m = 4096, std::int64_t n = 7168, std::int64_t k = 2048, std::int64_t groups = 8) {
  return {.m = m, .n = n, .k = k, .batch = groups, .grouping = Grouping::general};
}

TEST(GeneralGroups, BringTheirStrides) {
  const Result<GemmProblem> v = validate(general());
  ASSERT_TRUE(v) << v.error().message;
  for (const std::int64_t stride : {v->lda, v->ldb, v->ldc, v->ldd, v->batch_stride_a, v->batch_stride_d})
    EXPECT_EQ(stride, kPacked) << "nothing is filled in";
  EXPECT_EQ(*validate(*v), *v);
  EXPECT_EQ(flops(*v), 2.0 * 4096 * 7168 * 2048 * 8) << "the most there can be";
  EXPECT_EQ(describe(*v), "4096 x 7168 x 2048, 8 general groups bf16 -> bf16, A row-major, B column-major");
  for (std::int64_t GemmProblem::*stride :
       {&GemmProblem::lda, &GemmProblem::ldb, &GemmProblem::ldc, &GemmProblem::ldd, &GemmProblem::batch_stride_a,
        &GemmProblem::batch_stride_b, &GemmProblem::batch_stride_c, &GemmProblem::batch_stride_d}) {
    GemmProblem p = general();
    p.*stride = 8192;
    expect_refused(validate(p), ErrorCode::invalid_argument, {"= 8192 with general groups, each of which has its own", "pass kPacked"});
  }
}

TEST(GeneralGroups, AreRefusedWhereNoKernelComputesThem) {
  GemmProblem p = general();
  p.type_b = DataType::int4;
  expect_refused(validate(p), ErrorCode::unsupported, {"type_b = int4 with general groups", "bf16, fp16 or FP8"});
  p = general();
  p.layout_b = Layout::row_major;
  expect_refused(validate(p), ErrorCode::unsupported, {"layout_b = row-major with general groups", "transpose"});
  p = general();
  p.alignment_b_bytes = 8;
  expect_refused(validate(p), ErrorCode::unsupported, {"alignment_b_bytes = 8 with general groups", "move"});
  p = general();
  p.epilogue.bias = Bias::per_group_column;
  expect_refused(validate(p), ErrorCode::unsupported, {"bias = per_group_column with general groups", "pass per_column"});
  p = general();
  p.expected_rows = -1;
  expect_refused(validate(p), ErrorCode::invalid_argument, {"expected_rows = -1"});
}

TEST(GeneralGroups, SizesAreHeldToTheProblems) {
  constexpr GroupLimits kLimits{100, 50, 30};
  EXPECT_EQ(within(kLimits, {.m = 1, .n = 2, .k = 3}), (GroupArguments{.m = 1, .n = 2, .k = 3, .lda = 3, .ldb = 3, .ldc = 2, .ldd = 2}));
  const GroupArguments large = within(kLimits, {.m = 101, .n = 2000000000, .k = 31, .lda = 64, .ldd = 56});
  EXPECT_EQ(large, (GroupArguments{.m = 100, .n = 50, .k = 30, .lda = 64, .ldb = 30, .ldc = 50, .ldd = 56}));
  const GroupArguments without_k = within(kLimits, {.m = 1, .n = 1, .k = -7});
  EXPECT_EQ(without_k.m * without_k.n, 1);
  EXPECT_EQ(without_k.k, 0);
  for (const GroupArguments& nothing : {GroupArguments{.m = -1, .n = 5, .k = 5}, {.m = 5, .n = 0, .k = 5}}) {
    const GroupArguments held = within(kLimits, nothing);
    EXPECT_EQ(held.m, 0);
    EXPECT_EQ(held.n, 0);
    EXPECT_EQ(held.k, 0);
  }
  GemmProblem p = general();
  p.epilogue.alpha = 0;
  EXPECT_EQ(group_limits(p).k, 0) << "A and B are not read";
}

TEST(GeneralGroups, ArgumentsAreTheArrayAlone) {
  const GemmProblem p = *validate(general());
  const auto at = [](std::uintptr_t address) { return reinterpret_cast<void*>(address); };
  GemmArguments arguments{.group_arguments = static_cast<const GroupArguments*>(at(0x1008))};
  EXPECT_TRUE(check_arguments(p, arguments));
  arguments.b = at(0x2000);
  expect_refused(check_arguments(p, arguments), ErrorCode::invalid_argument, {"b is not null, but general groups"});
  arguments = {.group_arguments = static_cast<const GroupArguments*>(at(0x1004))};
  expect_refused(check_arguments(p, arguments), ErrorCode::misaligned, {"group_arguments = 0x1004"});
  expect_refused(check_arguments(p, {}), ErrorCode::invalid_argument, {"group_arguments is null"});
}

TEST(GeneralGroups, PlansAreOfWholeTilesByKernelsCompiledForThem) {
  for (const auto& [m, n, groups] : {std::tuple{16, 4096, 64}, {136, 512, 256}, {4096, 7168, 8}, {8192, 8192, 1}}) {
    const Result<Plan> made = plan(general(m, n, 2048, groups), h200());
    ASSERT_TRUE(made) << made.error().message;
    EXPECT_TRUE(check_plan(*made)) << check_plan(*made).error().message;
    EXPECT_TRUE(resources(made->kernel).computes_general_groups);
    EXPECT_EQ(made->scheduler.kind, SchedulerKind::data_parallel);
    EXPECT_EQ(made->scheduler.groups, groups);
    EXPECT_GE(made->scheduler.tiles_m * made->kernel.tile_m, m) << "any group may be the largest";
    EXPECT_EQ(made->workspace_bytes, static_cast<std::size_t>(65536 + prepared_bytes(groups)));
    const Result<Plan> read = plan_from_json(to_json(*made));
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(*read, *made);
    EXPECT_NE(explain(*made).find("in each group"), std::string::npos) << explain(*made);
    for (const Candidate& candidate : made->candidates)
      EXPECT_TRUE(resources(candidate.kernel).computes_general_groups || candidate.verdict == CandidateVerdict::no_groups ||
                  candidate.verdict == CandidateVerdict::wrong_type)
          << name(candidate.kernel);
  }
  for (const WorkClaim claim : {WorkClaim::fixed, WorkClaim::ticket})
    EXPECT_EQ(plan(general(), h200(), {.claim = claim})->scheduler.claim, claim);
  for (const SchedulerKind kind : {SchedulerKind::one_tile_per_cta, SchedulerKind::split_k, SchedulerKind::stream_k, SchedulerKind::hybrid})
    expect_refused(plan(general(), h200(), {.scheduler = kind}), ErrorCode::invalid_argument,
                   {std::string("scheduler = ") + to_string(kind) + " with general groups", "take data-parallel"});
  expect_refused(plan(general(), h200(), {.kernel_name = "bf16_rc_coop_128x224x64_c2x1"}), ErrorCode::unsupported, {"no kernel"});
  EXPECT_FALSE(simulate(*plan(general(), h200()))) << "the sizes decide what there is to do";
  EXPECT_EQ(plan(general(4096, 7168, 2048, 0), h200())->grid_ctas, 0);
  EXPECT_LT(plan({.m = 4096, .n = 7168, .k = 2048, .batch = 8, .grouping = Grouping::general, .expected_rows = 16}, h200())->kernel.tile_m,
            plan(general(), h200())->kernel.tile_m);
}

TEST(GeneralGroups, PlansThatDoNotFitAreSeen) {
  Plan bad = *plan(general(), h200());
  bad.scheduler.kind = SchedulerKind::hybrid;
  EXPECT_FALSE(check_plan(bad));
  bad = *plan(general(), h200());
  bad.scheduler.tiles_n -= 1;
  EXPECT_FALSE(check_plan(bad)) << "the largest group's columns are not covered";
  bad = *plan({.m = 4096, .n = 7168, .k = 2048, .batch = 8}, h200(), {.kernel_name = "bf16_rc_coop_128x224x64_c2x1"});
  bad.problem = *validate(general());
  expect_refused(check_plan(bad), ErrorCode::invalid_argument, {"cannot find out what such groups are"});
}

TEST(GeneralGroups, KernelsStandInTheListAsWell) {
  int compiled = 0;
  for_each_general_kernel([&]<KernelConfig config>() {
    ++compiled;
    EXPECT_EQ(std::count(kernel_list().begin(), kernel_list().end(), config), 1) << name(config);
    EXPECT_TRUE(resources(config).computes_general_groups);
    EXPECT_TRUE(k_major_a(config) && k_major_b(config) && config.load == LoadPath::tma && !streams(config)) << name(config);
  });
  EXPECT_EQ(compiled, std::count_if(kernel_list().begin(), kernel_list().end(),
                                    [](const KernelConfig& kernel) { return resources(kernel).computes_general_groups; }));
}

// Three groups with nothing in common, with their memory.
struct ThreeGroups {
  static constexpr std::int32_t kSizes[3][3] = {{70, 136, 200}, {3, 5, 0}, {130, 24, 72}};
  static constexpr std::int64_t kPadding = 8;

  GemmProblem problem{.m = 130, .n = 136, .k = 200, .batch = 3, .type_d = DataType::fp32, .grouping = Grouping::general};
  std::vector<Elements> a, b, c, d, bias;
  std::vector<GroupArguments> groups;

  ThreeGroups() {
    problem.epilogue = {.alpha = 2, .beta = -1, .bias = Bias::per_column};
    for (std::vector<Elements>* each : {&a, &b, &c, &d, &bias}) each->reserve(3);  // groups point into them
    std::mt19937_64 random(5);
    std::uniform_int_distribution<int> small(-3, 3);
    for (const auto& [m, n, k] : kSizes) {
      a.emplace_back(DataType::bf16, m * (k + kPadding));
      b.emplace_back(DataType::bf16, n * (k + kPadding));
      c.emplace_back(DataType::fp32, m * n);
      d.emplace_back(DataType::fp32, m * (n + kPadding));
      bias.emplace_back(DataType::fp32, n);
      for (Elements* each : {&a.back(), &b.back(), &c.back(), &bias.back()})
        for (std::int64_t i = 0; i < each->count(); ++i) each->set(i, small(random));
      d.back().fill(std::numeric_limits<double>::quiet_NaN());
      groups.push_back({.a = a.back().data(),
                        .b = b.back().data(),
                        .c = c.back().data(),
                        .d = d.back().data(),
                        .bias = bias.back().data(),
                        .m = m,
                        .n = n,
                        .k = k,
                        .lda = k + kPadding,
                        .ldb = k + kPadding,
                        .ldd = n + kPadding});
    }
  }
  ThreeGroups(const ThreeGroups&) = delete;
  ThreeGroups& operator=(const ThreeGroups&) = delete;

  GemmArguments arguments() const { return {.group_arguments = groups.data()}; }
  double expected(std::size_t g, std::int64_t row, std::int64_t column) const {
    const auto [m, n, k] = kSizes[g];
    double sum = 0;
    for (std::int64_t i = 0; i < k; ++i) sum += a[g].get(row * (k + kPadding) + i) * b[g].get(column * (k + kPadding) + i);
    return 2 * sum - c[g].get(row * n + column) + bias[g].get(column);
  }
};

TEST(GeneralGroups, EachIsAProductOfItsOwn) {
  ThreeGroups data;
  const Result<Plan> made = plan_on_h10(data.problem);
  ASSERT_TRUE(made) << made.error().message;
  const Status status = run_on_cpu(*made, data.arguments());
  ASSERT_TRUE(status) << status.error().message;
  for (std::size_t g = 0; g < 3; ++g) {
    const auto [m, n, k] = ThreeGroups::kSizes[g];
    for (std::int64_t row = 0; row < m; ++row)
      for (std::int64_t column = 0; column < n + ThreeGroups::kPadding; ++column) {
        const double got = data.d[g].get(row * (n + ThreeGroups::kPadding) + column);
        if (column < n)
          ASSERT_EQ(got, data.expected(g, row, column)) << "group " << g << ", " << row << ", " << column;
        else
          ASSERT_TRUE(std::isnan(got)) << "written beside D of group " << g;
      }
  }
  const Result<VerifyReport> right = verify(data.problem, data.arguments(), nullptr);
  ASSERT_TRUE(right) << right.error().message;
  EXPECT_TRUE(right->ok()) << to_string(*right);
  EXPECT_EQ(right->checked, 70 * 136 + 3 * 5 + 130 * 24);
  const Result<VerifyReport> sampled = verify(data.problem, data.arguments(), nullptr, 300);
  ASSERT_TRUE(sampled) << sampled.error().message;
  EXPECT_TRUE(sampled->ok());
  EXPECT_GE(sampled->checked, 300);
  EXPECT_LE(sampled->checked, 303);
}

TEST(GeneralGroups, VerifySaysWhichGroupIsWrong) {
  ThreeGroups data;
  ASSERT_TRUE(run_on_cpu(*plan_on_h10(data.problem), data.arguments()));
  data.d[2].set(129 * (24 + ThreeGroups::kPadding) + 7, 1e6);
  const Result<VerifyReport> report = verify(data.problem, data.arguments(), nullptr);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->wrong, 1);
  EXPECT_EQ(report->worst_batch, 2);
  EXPECT_EQ(report->worst_row, 129);
  EXPECT_EQ(report->worst_column, 7);
  expect_refused(verify(data.problem, data.arguments(), data.c[0].data()), ErrorCode::invalid_argument, {"c_before is not null"});
  data.groups[1].c = data.groups[1].d;
  data.groups[1].ldc = data.groups[1].ldd;
  expect_refused(verify(data.problem, data.arguments(), nullptr), ErrorCode::invalid_argument, {"group 1: c_before is null"});
}

TEST(GeneralGroups, HostsSeeBrokenPromises) {
  ThreeGroups data;
  const Plan made = *plan_on_h10(data.problem);
  const auto refused = [&](std::size_t g, auto&& change) {
    std::vector<GroupArguments> groups = data.groups;
    change(groups[g]);
    return run_on_cpu(made, {.group_arguments = groups.data()});
  };
  expect_refused(refused(0, [](GroupArguments& g) { g.lda = 203; }), ErrorCode::misaligned, {"group 0: lda = 203 of bf16", "pad to 208"});
  expect_refused(refused(2, [](GroupArguments& g) { g.ldb = 64; }), ErrorCode::invalid_argument, {"group 2: ldb = 64 is shorter than"});
  expect_refused(refused(2, [](GroupArguments& g) { g.a = nullptr; }), ErrorCode::invalid_argument, {"group 2: a is null"});
  expect_refused(refused(0, [](GroupArguments& g) { g.b = static_cast<const std::byte*>(g.b) + 8; }), ErrorCode::misaligned,
                 {"group 0: b starts 8 bytes behind a multiple of 16"});
  EXPECT_TRUE(refused(1, [](GroupArguments& g) { g.a = g.b = nullptr; })) << "k is 0";
  EXPECT_TRUE(refused(1, [](GroupArguments& g) { g = {.m = 0, .n = 99, .k = 99}; })) << "nothing to do";
  EXPECT_TRUE(refused(1, [](GroupArguments& g) { g = {.m = 99, .n = -4, .k = 99}; })) << "nothing to do";
}

}  // namespace
}  // namespace sluice
