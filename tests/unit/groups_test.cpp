// Grouped problems: what validate() makes of them, which rows a group has, and what a plan for sizes that only the device knows can be.
#include "core/groups.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "sluice/sluice.hpp"

#include "core/check_arguments.hpp"
#include "core/check_plan.hpp"
#include "core/kernel_layout.hpp"
#include "devices.hpp"
#include "refused.hpp"
#include "scheduler/workspace.hpp"

namespace sluice {
namespace {

using test::expect_refused;

GemmProblem grouped(Grouping grouping, std::int64_t m = 4096, std::int64_t groups = 8) {
  return {.m = m, .n = 4096, .k = 7168, .batch = groups, .grouping = grouping};
}
GemmProblem fp8(GemmProblem p) {
  p.type_a = p.type_b = DataType::e4m3;
  return p;
}

TEST(Groups, RaggedRowsAreOneMatrix) {
  GemmProblem p = grouped(Grouping::ragged);
  p.batch_stride_a = p.batch_stride_c = p.batch_stride_d = 12345;  // of matrices that there are not
  const Result<GemmProblem> v = validate(p);
  ASSERT_TRUE(v) << v.error().message;
  EXPECT_EQ(v->batch_stride_a, 0);
  EXPECT_EQ(v->batch_stride_b, 4096 * 7168);
  EXPECT_EQ(v->batch_stride_c, 0);
  EXPECT_EQ(v->batch_stride_d, 0);
  EXPECT_EQ(v->batch_stride_scale_a, 0);
  EXPECT_EQ(*validate(*v), *v);
  EXPECT_EQ(flops(*v), 2.0 * 4096 * 4096 * 7168);
  EXPECT_EQ(group_numbers(*v), 9);
  EXPECT_EQ(row_matrices(*v), 1);
}

TEST(Groups, MaskedRowsAreABatch) {
  const GemmProblem p = grouped(Grouping::masked);
  GemmProblem batch = p;
  batch.grouping = Grouping::none;
  GemmProblem v = *validate(p);
  EXPECT_EQ(flops(v), flops(batch));
  EXPECT_EQ(group_numbers(v), 8);
  EXPECT_EQ(row_matrices(v), 8);
  v.grouping = Grouping::none;
  EXPECT_EQ(v, *validate(batch));
}

TEST(Groups, ScalesOfRaggedRows) {
  GemmProblem p = fp8(grouped(Grouping::ragged, 1000));
  p.scaling_a = Scaling::per_vector_128;
  p.scaling_b = Scaling::per_block_128;
  const GemmProblem v = *validate(p);
  EXPECT_EQ(v.batch_stride_scale_a, 0);
  EXPECT_EQ(scale_elems_a(v), 1000 * 56) << "as many as the rows of all groups";
  EXPECT_EQ(scale_elems_b(v), 8 * 32 * 56) << "of every group's weights";
}

TEST(Groups, WhatHasNoMeaningIsRefused) {
  GemmProblem p = grouped(Grouping::ragged);
  p.layout_a = Layout::column_major;
  expect_refused(validate(p), ErrorCode::unsupported, {"layout_a = column-major with ragged groups", "transpose A"});
  p.grouping = Grouping::masked;
  EXPECT_TRUE(validate(p));

  p = fp8(grouped(Grouping::ragged));
  p.scaling_a = Scaling::per_block_128;
  expect_refused(validate(p), ErrorCode::unsupported, {"scaling_a = 128x128 with ragged groups", "1x128"});
  p.grouping = Grouping::masked;
  EXPECT_TRUE(validate(p));

  for (const Grouping grouping : {Grouping::none, Grouping::ragged, Grouping::masked}) {
    p = grouped(grouping);
    p.expected_rows = -1;
    expect_refused(validate(p), ErrorCode::invalid_argument, {"expected_rows = -1", "pass 0"});
    p.expected_rows = std::int64_t{1} << 31;
    expect_refused(validate(p), ErrorCode::invalid_argument, {"expected_rows = 2147483648"});
    p.expected_rows = 0;
    p.most_rows = -1;
    expect_refused(validate(p), ErrorCode::invalid_argument, {"most_rows = -1", "pass 0"});
    p.most_rows = std::int64_t{1} << 31;
    expect_refused(validate(p), ErrorCode::invalid_argument, {"most_rows = 2147483648"});
  }
  p = grouped(static_cast<Grouping>(5));
  expect_refused(validate(p), ErrorCode::invalid_argument, {"grouping is none of the enumeration's values"});
}

// So that two problems that mean the same are equal.
TEST(Groups, ABatchExpectsNothing) {
  GemmProblem p = grouped(Grouping::none);
  p.expected_rows = 100;
  p.most_rows = 200;
  EXPECT_EQ(validate(p)->expected_rows, 0);
  EXPECT_EQ(validate(p)->most_rows, 0);
  p.grouping = Grouping::masked;
  EXPECT_EQ(validate(p)->expected_rows, 100);
  EXPECT_EQ(validate(p)->most_rows, 200);
  p.grouping = Grouping::general;
  EXPECT_EQ(validate(p)->most_rows, 0) << "m is the most";
}

TEST(Groups, AreDescribed) {
  EXPECT_EQ(describe(*validate(grouped(Grouping::ragged))),
            "4096 x 4096 x 7168, 8 ragged groups bf16 -> bf16, A row-major, B column-major");
  EXPECT_EQ(describe(*validate(grouped(Grouping::masked, 64, 1))),
            "64 x 4096 x 7168, 1 masked groups bf16 -> bf16, A row-major, B column-major");
}

TEST(Groups, SizesMustBeThere) {
  const auto at = [](std::uintptr_t address) { return reinterpret_cast<void*>(address); };
  for (const Grouping grouping : {Grouping::ragged, Grouping::masked}) {
    GemmProblem p = *validate(grouped(grouping));
    GemmArguments arguments{.a = at(0x1000), .b = at(0x2000), .d = at(0x3000)};
    expect_refused(check_arguments(p, arguments), ErrorCode::invalid_argument, {"groups is null", "the problem is grouped"});
    arguments.groups = static_cast<const std::int32_t*>(at(0x4002));
    expect_refused(check_arguments(p, arguments), ErrorCode::misaligned, {"groups = 0x4002", "int32 elements", "4 bytes"});
    arguments.groups = static_cast<const std::int32_t*>(at(0x4004));
    EXPECT_TRUE(check_arguments(p, arguments));
    p.k = 0;  // A and B are not read, the sizes are
    EXPECT_FALSE(check_arguments(p, {.d = at(0x3000)}));
    p.m = 0;
    EXPECT_TRUE(check_arguments(p, {}));
  }
}

void expect_rows(const GroupRange& rows, std::int32_t first, std::int32_t count) {
  EXPECT_EQ(rows.first, first);
  EXPECT_EQ(rows.count, count);
}

TEST(Groups, RowsAreHeldToTheMatrices) {
  constexpr std::int32_t kLeast = std::numeric_limits<std::int32_t>::min(), kMost = std::numeric_limits<std::int32_t>::max();
  expect_rows(range_of_group(Grouping::ragged, 100, 3, 10), 3, 7);
  expect_rows(range_of_group(Grouping::ragged, 100, 10, 10), 10, 0);
  expect_rows(range_of_group(Grouping::ragged, 100, 90, 100), 90, 10);
  expect_rows(range_of_group(Grouping::ragged, 100, 90, 101), 90, 10);
  expect_rows(range_of_group(Grouping::ragged, 100, 100, 300), 100, 0);
  expect_rows(range_of_group(Grouping::ragged, 100, 200, 300), 100, 0);
  expect_rows(range_of_group(Grouping::ragged, 100, -5, 10), 0, 10);
  expect_rows(range_of_group(Grouping::ragged, 100, kLeast, kMost), 0, 100);
  expect_rows(range_of_group(Grouping::ragged, 100, kMost, kLeast), 100, 0);
  expect_rows(range_of_group(Grouping::ragged, 100, 50, 20), 50, 0);
  expect_rows(range_of_group(Grouping::masked, 100, 7, 77), 0, 7);
  expect_rows(range_of_group(Grouping::masked, 100, 100, 0), 0, 100);
  expect_rows(range_of_group(Grouping::masked, 100, 101, 0), 0, 100);
  expect_rows(range_of_group(Grouping::masked, 100, kMost, 0), 0, 100);
  expect_rows(range_of_group(Grouping::masked, 100, 0, 0), 0, 0);
  expect_rows(range_of_group(Grouping::masked, 100, kLeast, 0), 0, 0);

  const std::int32_t sizes[] = {2, 5, 5, 9};
  expect_rows(range_of_group({.m = 8, .batch = 3, .grouping = Grouping::ragged}, sizes, 2), 5, 3);
  expect_rows(range_of_group({.m = 8, .batch = 4, .grouping = Grouping::masked}, sizes, 3), 0, 8);
}

TEST(GroupedPlan, IsForWholeTilesOrForRangesOfThem) {
  for (const Grouping grouping : {Grouping::ragged, Grouping::masked})
    for (const std::int64_t m : {64, 4096, 65536})
      for (const std::int64_t expected : {0, 1, 40, 3000}) {
        GemmProblem p = grouped(grouping, m);
        p.expected_rows = expected;
        const Result<Plan> made = plan(p, h200());
        ASSERT_TRUE(made) << made.error().message;
        EXPECT_TRUE(check_plan(*made)) << check_plan(*made).error().message;
        EXPECT_TRUE(resources(made->kernel).computes_groups);
        EXPECT_GE(made->scheduler.tiles_m * made->kernel.tile_m, m);
        for (const Candidate& c : made->candidates) {
          if (c.verdict != CandidateVerdict::chosen && c.verdict != CandidateVerdict::slower) continue;
          EXPECT_NE(c.scheduler.kind, SchedulerKind::one_tile_per_cta);
          EXPECT_NE(c.scheduler.kind, SchedulerKind::split_k);
          EXPECT_EQ(c.scheduler.groups, 1);
        }
      }
}

// Whatever the sizes turn out to be: a place for each range, not for each tile that there may be.
TEST(GroupedPlan, WorkspaceDoesNotGrowWithTheGroups) {
  constexpr auto kRanges = static_cast<std::size_t>(kFlagBytes) + std::size_t{132} * 128 * 128 * 4;
  struct Case {
    SchedulerKind kind;
    WorkClaim claim;
    std::size_t wanted;
  };
  for (const auto& [kind, claim, wanted] : {Case{SchedulerKind::data_parallel, WorkClaim::fixed, 0},
                                            {SchedulerKind::data_parallel, WorkClaim::ticket, kFlagBytes},
                                            {SchedulerKind::stream_k, WorkClaim::fixed, kRanges},
                                            {SchedulerKind::hybrid, WorkClaim::fixed, kRanges}}) {
    std::size_t bytes = 0;
    for (const std::int64_t m : {2048, 16384, 131072}) {
      GemmProblem p = grouped(Grouping::ragged, m);
      p.k = 512;
      const Result<Plan> made = plan(p, h200(), {.scheduler = kind, .claim = claim, .kernel_name = "bf16_rc_coop_128x128x64_c1x1"});
      ASSERT_TRUE(made) << made.error().message;
      if (bytes == 0) bytes = made->workspace_bytes;
      EXPECT_EQ(made->workspace_bytes, bytes);
      EXPECT_LE(flag_count(made->scheduler, made->kernel), kMostFlags);
    }
    EXPECT_EQ(bytes, wanted);
  }
}

// Over many rounds whoever is free takes the next tile, unless the options say otherwise.
TEST(GroupedPlan, ManyTilesAreClaimedByTicket) {
  const auto claim_of = [&](std::int64_t m, std::optional<WorkClaim> claim) {
    const PlanOptions options{.scheduler = SchedulerKind::data_parallel, .claim = claim, .kernel_name = "bf16_rc_coop_128x128x64_c1x1"};
    return plan(grouped(Grouping::ragged, m), h200(), options).value().scheduler.claim;
  };
  EXPECT_EQ(claim_of(1024, std::nullopt), WorkClaim::fixed);
  EXPECT_EQ(claim_of(131072, std::nullopt), WorkClaim::ticket);
  EXPECT_EQ(claim_of(131072, WorkClaim::fixed), WorkClaim::fixed);
  EXPECT_EQ(claim_of(1024, WorkClaim::ticket), WorkClaim::ticket);
}

// Of ragged groups that need more tiles than their rows fill, and of masked ones that are all full.
TEST(GroupedPlan, CountsTheMostTilesThereCanBe) {
  const PlanOptions options{.kernel_name = "bf16_rc_coop_128x128x64_c1x1"};
  const auto tiles_m = [&](Grouping grouping, std::int64_t m, std::int64_t groups) {
    return plan(grouped(grouping, m, groups), h200(), options).value().scheduler.tiles_m;
  };
  EXPECT_EQ(tiles_m(Grouping::ragged, 1024, 8), 8 + 8);
  EXPECT_EQ(tiles_m(Grouping::ragged, 5, 300), 5) << "five rows are five groups at most";
  EXPECT_EQ(tiles_m(Grouping::ragged, 128, 1), 2);
  EXPECT_EQ(tiles_m(Grouping::masked, 129, 10), 20);
}

TEST(GroupedPlan, RefusesWhatNeedsTheSizes) {
  for (const Grouping grouping : {Grouping::ragged, Grouping::masked}) {
    const GemmProblem p = grouped(grouping);
    expect_refused(plan(p, h200(), {.scheduler = SchedulerKind::one_tile_per_cta}), ErrorCode::invalid_argument,
                   {"one-tile-per-cta needs tiles that can be counted", "take data-parallel"});
    for (const Reduction reduction : {Reduction::separate, Reduction::cluster})
      expect_refused(plan(p, h200(), {.scheduler = SchedulerKind::split_k, .reduction = reduction, .splits = 2}),
                     ErrorCode::invalid_argument, {std::string("reduction = ") + to_string(reduction), "meet in the workspace"});
    expect_refused(plan(p, h200(), {.scheduler = SchedulerKind::split_k, .claim = WorkClaim::fixed}), ErrorCode::invalid_argument,
                   {"fixed turn", "claim by ticket"});
    for (const SchedulerKind kind : {SchedulerKind::stream_k, SchedulerKind::hybrid})
      expect_refused(plan(p, h200(), {.scheduler = kind, .stream_k_regions = 2}), ErrorCode::invalid_argument,
                     {"stream_k_regions = 2", "only the device knows"});
    EXPECT_TRUE(plan(p, h200(), {.scheduler = SchedulerKind::stream_k, .stream_k_regions = 1}));
    const Result<Plan> split = plan(grouped(grouping, 512), h200(),
                                    {.scheduler = SchedulerKind::split_k, .splits = 2, .kernel_name = "bf16_rc_coop_128x128x64_c1x1"});
    ASSERT_TRUE(split) << split.error().message;
    EXPECT_EQ(split->scheduler.claim, WorkClaim::ticket);
  }
}

// Plans that were not made by plan().
TEST(GroupedPlan, SchedulesThatAreNoneForGroupsAreNoticed) {
  const Plan good = *plan(grouped(Grouping::ragged), h200(), {.scheduler = SchedulerKind::data_parallel});
  EXPECT_TRUE(check_plan(good));
  const auto expect_none = [&](auto change) {
    Plan bad = good;
    change(bad);
    expect_refused(check_plan(bad), ErrorCode::invalid_argument, {"none for groups", "make it with plan()"});
  };
  expect_none([](Plan& p) { p.scheduler.groups = 8; });
  expect_none([](Plan& p) { p.scheduler.kind = SchedulerKind::one_tile_per_cta; });
  expect_none([](Plan& p) { p.scheduler.kind = SchedulerKind::split_k, p.scheduler.claim = WorkClaim::fixed; });
  expect_none([](Plan& p) { p.scheduler.reduction = Reduction::separate; });
  expect_none([](Plan& p) { p.scheduler.stream_k_regions = 2; });
}

TEST(GroupedPlan, ExpectedRowsChooseTheKernel) {
  GemmProblem p = grouped(Grouping::masked, 4096, 16);
  p.expected_rows = 8;
  const Plan few = *plan(p, h200());
  p.expected_rows = 4096;
  const Plan many = *plan(p, h200());
  EXPECT_LT(few.kernel.tile_m, many.kernel.tile_m);
  EXPECT_LT(few.predicted.total_us, many.predicted.total_us);
  p.expected_rows = 1 << 20;  // more than there is room for
  EXPECT_EQ(plan(p, h200())->kernel, many.kernel);
}

// Groups of 128 rows in the mean may have more, and two tiles of 128 rows for few more rows would be dear; unless none has.
TEST(GroupedPlan, MostRowsBoundWhatIsExpected) {
  GemmProblem p = fp8(grouped(Grouping::ragged, 256 * 128, 256));
  p.n = 512, p.k = 7168;
  EXPECT_GT(plan(p, h200())->kernel.tile_m, 128);
  p.most_rows = 128;
  const Plan bounded = *plan(p, h200());
  EXPECT_EQ(bounded.kernel.tile_m, 128);
  p.expected_rows = 1000;
  EXPECT_EQ(plan(p, h200())->predicted, bounded.predicted) << "no more than the most";
  p.most_rows = 1 << 20;  // more than there are
  p.expected_rows = 0;
  EXPECT_GT(plan(p, h200())->kernel.tile_m, 128);
  p = fp8(grouped(Grouping::masked, 4096, 256));
  p.n = 512, p.k = 7168, p.most_rows = 128;
  EXPECT_EQ(plan(p, h200())->predicted, bounded.predicted) << "all that there is room for, unless fewer are the most";
}

TEST(GroupedPlan, EmptyProblemsHaveNothingToDo) {
  for (const Grouping grouping : {Grouping::ragged, Grouping::masked})
    for (const auto& [m, groups] : {std::pair{0, 8}, {4096, 0}}) {
      const Result<Plan> made = plan(grouped(grouping, m, groups), h200());
      ASSERT_TRUE(made) << made.error().message;
      EXPECT_EQ(made->grid_ctas, 0);
    }
}

TEST(GroupedPlan, SurvivesJson) {
  for (const Grouping grouping : {Grouping::ragged, Grouping::masked})
    for (const std::optional<SchedulerKind> kind :
         {std::optional<SchedulerKind>{}, std::optional(SchedulerKind::stream_k), std::optional(SchedulerKind::split_k)}) {
      GemmProblem p = grouped(grouping, 512);
      p.expected_rows = 100;
      p.most_rows = 300;
      PlanOptions options{.scheduler = kind};
      if (kind) options.kernel_name = "bf16_rc_coop_128x128x64_c1x1";
      const Result<Plan> made = plan(p, h200(), options);
      ASSERT_TRUE(made) << made.error().message;
      const Result<Plan> read = plan_from_json(to_json(*made));
      ASSERT_TRUE(read) << read.error().message;
      EXPECT_EQ(*read, *made);
    }
  std::string text = to_json(*plan(grouped(Grouping::ragged), h200()));
  text.replace(text.find("\"ragged\""), 8, "\"frayed\"");
  expect_refused(plan_from_json(text), ErrorCode::bad_format, {"problem.grouping", "frayed"});
  EXPECT_EQ(to_json(*plan(grouped(Grouping::none), h200())).find("grouping"), std::string::npos) << "older libraries read it";
}

TEST(GroupedPlan, IsExplained) {
  for (const Grouping grouping : {Grouping::ragged, Grouping::masked}) {
    const std::string text = explain(*plan(grouped(grouping), h200()));
    EXPECT_NE(text.find(std::string("8 ") + to_string(grouping) + " groups"), std::string::npos) << text;
    EXPECT_EQ(text.find("nan"), std::string::npos) << text;
  }
}

// What is predicted is a product of the rows that are expected, and so are the work and the roofs that it is held against.
TEST(GroupedPlan, WorkIsThatOfTheRowsThatAreExpected) {
  GemmProblem p = grouped(Grouping::masked, 4096, 8);
  p.expected_rows = 128;
  const std::string text = explain(*plan(p, h200(), {.kernel_name = "bf16_rc_coop_128x128x64_c1x1"}));
  GemmProblem batch = p;
  batch.grouping = Grouping::none;
  batch.m = 128;
  const double work = flops(*validate(batch));
  EXPECT_NE(text.find("work     60.1 GFLOP with about 128 rows in each group, 493 MB if each operand moves once"), std::string::npos)
      << text;
  EXPECT_NEAR(work, 60.1e9, 0.1e9);
  EXPECT_NE(text.find("at most 256 x 32 tiles of 128 x 128"), std::string::npos) << text;
  EXPECT_NE(text.find(" us with about 128 rows in each group, "), std::string::npos) << text;
  // An equal share, where nothing is expected.
  const std::string ragged = explain(*plan(grouped(Grouping::ragged, 1000, 8), h200()));
  EXPECT_NE(ragged.find(" with about 125 rows in each group"), std::string::npos) << ragged;
  EXPECT_EQ(explain(*plan(grouped(Grouping::none), h200())).find("rows in each group"), std::string::npos);
}

TEST(GroupedPlan, CannotBeSimulated) {
  const Plan made = *plan(grouped(Grouping::masked), h200());
  expect_refused(simulate(made), ErrorCode::unsupported, {"the plan is for masked groups", "simulate a batch"});
}

}  // namespace
}  // namespace sluice
