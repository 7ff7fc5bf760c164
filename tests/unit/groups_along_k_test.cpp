// Groups along K: what validate() makes of them, plans for them, and what run_on_cpu() and verify() compute, each group's product as one of
// its own gives it.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "sluice/sluice.hpp"

#include "core/check_arguments.hpp"
#include "core/check_plan.hpp"
#include "core/groups.hpp"
#include "devices.hpp"
#include "grouped_data.hpp"
#include "refused.hpp"
#include "scheduler/groups.hpp"

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

GemmProblem along_k(std::int64_t m = 4096, std::int64_t n = 7168, std::int64_t k = 8192, std::int64_t groups = 8) {
  return {.m = m,
          .n = n,
          .k = k,
          .batch = groups,
          .layout_a = Layout::column_major,
          .layout_b = Layout::row_major,
          .grouping = Grouping::along_k};
}

TEST(GroupsAlongK, OperandsAreOneMatrixEachAndResultsABatch) {
  GemmProblem p = along_k();
  p.batch_stride_a = 77;  // of matrices that there are not
  p.expected_rows = 12;
  const Result<GemmProblem> v = validate(p);
  ASSERT_TRUE(v) << v.error().message;
  EXPECT_EQ(v->batch_stride_a, 0);
  EXPECT_EQ(v->batch_stride_b, 0);
  EXPECT_EQ(v->batch_stride_d, 4096 * 7168);
  EXPECT_EQ(v->expected_rows, 0);
  EXPECT_EQ(flops(*v), 2.0 * 4096 * 7168 * 8192);
  EXPECT_EQ(group_numbers(*v), 9);
  EXPECT_EQ(row_matrices(*v), 8);
  EXPECT_EQ(*validate(*v), *v);
  EXPECT_EQ(describe(*v), "4096 x 7168 x 8192, 8 along-k groups bf16 -> bf16, A column-major, B row-major");
}

TEST(GroupsAlongK, NeedEachElementOfKToBeAnAlignedRow) {
  GemmProblem p = along_k();
  p.layout_a = Layout::row_major;
  expect_refused(validate(p), ErrorCode::unsupported, {"layout_a = row-major, layout_b = row-major with groups along k", "transpose"});
  p = along_k();
  p.layout_b = Layout::column_major;
  expect_refused(validate(p), ErrorCode::unsupported, {"layout_b = column-major with groups along k"});
  p = along_k(4095);
  expect_refused(validate(p), ErrorCode::unsupported, {"lda = 4095", "16 bytes", "pad"});
  p.lda = 4096;
  EXPECT_TRUE(validate(p));
  p.alignment_b_bytes = 8;
  expect_refused(validate(p), ErrorCode::unsupported, {"alignment_b_bytes = 8"});
}

TEST(GroupsAlongK, SizesMustBeThere) {
  const GemmProblem p = *validate(along_k());
  const auto at = [](std::uintptr_t address) { return reinterpret_cast<void*>(address); };
  GemmArguments arguments{.a = at(0x1000), .b = at(0x2000), .d = at(0x3000)};
  expect_refused(check_arguments(p, arguments), ErrorCode::invalid_argument, {"groups is null"});
  arguments.groups = static_cast<const std::int32_t*>(at(0x4004));
  EXPECT_TRUE(check_arguments(p, arguments));
}

TEST(GroupsAlongK, PlansAreOfWholeTiles) {
  for (const auto& [m, groups] : {std::pair{136, 256}, {4096, 8}, {8192, 1}}) {
    const Result<Plan> made = plan(along_k(m, 7168, 8192, groups), h200());
    ASSERT_TRUE(made) << made.error().message;
    EXPECT_TRUE(check_plan(*made)) << check_plan(*made).error().message;
    EXPECT_EQ(made->scheduler.kind, SchedulerKind::data_parallel);
    EXPECT_EQ(made->scheduler.claim, WorkClaim::ticket) << "whoever is free takes the next";
    EXPECT_EQ(made->scheduler.groups, groups);
    EXPECT_EQ(made->scheduler.k_tiles * made->kernel.tile_k, 8192) << "one group may have all of K";
    EXPECT_TRUE(resources(made->kernel).computes_groups_along_k);
    const Result<Plan> read = plan_from_json(to_json(*made));
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(*read, *made);
    EXPECT_NE(explain(*made).find("of K in each group"), std::string::npos) << explain(*made);
  }
  for (const WorkClaim claim : {WorkClaim::fixed, WorkClaim::ticket})
    EXPECT_EQ(plan(along_k(), h200(), {.claim = claim})->scheduler.claim, claim);
  for (const SchedulerKind kind : {SchedulerKind::one_tile_per_cta, SchedulerKind::split_k, SchedulerKind::stream_k, SchedulerKind::hybrid})
    expect_refused(plan(along_k(), h200(), {.scheduler = kind}), ErrorCode::invalid_argument,
                   {std::string("scheduler = ") + to_string(kind) + " with groups along k", "take data-parallel"});
  Plan bad = *plan(along_k(), h200());
  bad.scheduler.kind = SchedulerKind::hybrid;
  EXPECT_FALSE(check_plan(bad));
  EXPECT_FALSE(simulate(*plan(along_k(), h200()))) << "the sizes decide how long a tile takes";
  EXPECT_EQ(plan(along_k(4096, 7168, 8192, 0), h200())->grid_ctas, 0);
}

// The k-tiles of a group are as many as it needs, counted from its first element.
TEST(GroupsAlongK, TilesHaveTheirGroupsDepth) {
  const SchedulerParams schedule{.k_tiles = 16};
  const auto depth = [&](const SchedulerParams& s, GroupRange k) {
    WorkTile tile;
    give_k(s, 64, k, tile);
    EXPECT_EQ(tile.first_k, k.first);
    EXPECT_EQ(tile.end_k, k.first + k.count);
    return tile.k_end;
  };
  EXPECT_EQ(depth(schedule, {5, 0}), 0);
  EXPECT_EQ(depth(schedule, {5, 1}), 1);
  EXPECT_EQ(depth(schedule, {5, 64}), 1);
  EXPECT_EQ(depth(schedule, {5, 65}), 2);
  EXPECT_EQ(depth({.k_tiles = 0}, {5, 65}), 0) << "alpha is 0: A and B are not read";
}

// Group g as a product of its own, into `d`.
void run_alone(GemmData& data, const Sizes& sizes, std::int64_t group, const PlanOptions& options, Elements& d) {
  const GemmProblem& whole = data.problem;
  const GroupRange k = range_of_group(whole, sizes.data(), group);
  GemmProblem p = whole;
  p.grouping = Grouping::none;
  p.k = k.count, p.batch = 1;
  GemmArguments arguments = data.arguments();
  arguments.a = static_cast<const std::byte*>(arguments.a) + k.first * whole.lda * size_bytes(p.type_a);
  arguments.b = static_cast<const std::byte*>(arguments.b) + k.first * whole.ldb * size_bytes(p.type_b);
  arguments.c = static_cast<const std::byte*>(arguments.c) + group * whole.batch_stride_c * size_bytes(p.type_d);
  arguments.d = static_cast<std::byte*>(d.data()) + group * whole.batch_stride_d * size_bytes(p.type_d);
  const Result<Plan> made = plan_on_h10(p, options);
  ASSERT_TRUE(made) << made.error().message;
  const Status status = run_on_cpu(*made, arguments);
  ASSERT_TRUE(status) << status.error().message;
}

const Sizes kSizes = {3, 3, 10, 140, 141, 141, 300};

TEST(GroupsAlongK, EachIsAProductOfItsOwn) {
  int kernels = 0;
  for (const KernelConfig& kernel : kernel_list()) {
    if (is_fp8(kernel.type_a) || !resources(kernel).computes_groups_along_k) continue;
    ++kernels;
    GemmProblem p = along_k(136, 72, 303, 6);
    p.type_a = kernel.type_a, p.type_b = kernel.type_b;
    p.epilogue = {.alpha = 1.5f, .beta = -0.5f, .bias = Bias::per_column, .activation = Activation::silu};
    p.lda = 144, p.ldb = 80;
    SCOPED_TRACE(name(kernel));
    const PlanOptions options{.scheduler = SchedulerKind::data_parallel, .kernel_name = name(kernel)};
    GemmData data(p, Values::normal);
    Elements expected = data.d;
    for (std::int64_t g = 0; g < p.batch; ++g) run_alone(data, kSizes, g, options, expected);
    run(data, kSizes, options);
    EXPECT_TRUE(data.d == expected);
  }
  EXPECT_GT(kernels, 0);
}

// A group without any of K is a product of 0, and is written.
TEST(GroupsAlongK, EmptyOnesAreZero) {
  GemmData data(along_k(40, 24, 64, 3), Values::integers);
  run(data, {0, 0, 64, 64}, {});
  for (const std::int64_t group : {0, 2})
    for (std::int64_t i = 0; i < 40 * 24; ++i) EXPECT_EQ(data.d.get(data.index_d(group, 0, 0) + i), 0.0);
  run(data, {0, 0, 0, 0}, {});
  EXPECT_EQ(data.d.get(data.index_d(1, 7, 7)), 0.0);
}

TEST(GroupsAlongK, AreVerified) {
  GemmData data(along_k(136, 72, 303, 6), Values::normal);
  run(data, kSizes, {});
  GemmArguments arguments = arguments_of(data, kSizes);
  for (const std::int64_t samples : {0, 500}) {
    const Result<VerifyReport> report = verify(data.problem, arguments, nullptr, samples);
    ASSERT_TRUE(report) << report.error().message;
    EXPECT_TRUE(report->ok()) << to_string(*report);
    EXPECT_EQ(report->checked, samples == 0 ? 6 * 136 * 72 : samples);
  }
  Sizes moved = kSizes;
  ++moved[3];  // an element of K is said to be of the group before its own: two groups are wrong
  arguments = arguments_of(data, moved);
  for (const std::int64_t samples : {0, 500}) {
    const Result<VerifyReport> report = verify(data.problem, arguments, nullptr, samples);
    ASSERT_TRUE(report) << report.error().message;
    EXPECT_GT(report->wrong, samples == 0 ? 136 * 72 : 50);
  }
}

}  // namespace
}  // namespace sluice
