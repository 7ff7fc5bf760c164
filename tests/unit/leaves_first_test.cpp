// Which operands leave L2 first, and where tiles of groups are dealt by place.
#include "core/leaves_first.hpp"

#include <string>

#include <gtest/gtest.h>

#include "sluice/sluice.hpp"

#include "core/launched_clusters.hpp"
#include "planned.hpp"

namespace sluice {
namespace {

constexpr bool now = true, again = false;  // when other tiles ask for what a tile has read

Plan planned(const GemmProblem& problem, const PlanOptions& options = {}) { return planned_on("h200", problem, options); }

PlanOptions with(const char* kernel, int splits = 1) {
  PlanOptions options{.kernel_name = kernel, .keep_candidates = false};
  options.scheduler = splits > 1 ? SchedulerKind::split_k : SchedulerKind::data_parallel;
  if (splits > 1) options.splits = splits;
  return options;
}

void expect(const Plan& plan, bool a, bool b) {
  EXPECT_EQ(a_leaves_first(plan), a) << name(plan.kernel);
  EXPECT_EQ(b_leaves_first(plan), b) << name(plan.kernel);
}

constexpr const char* kTile128 = "bf16_rc_coop_128x128x64_c1x1";
constexpr const char* kTile64 = "bf16_rc_ping_64x64x64_c1x1";

TEST(LeavesFirst, WeightsThatStreamByGoFirst) {
  expect(planned({.m = 64, .n = 4096, .k = 4096}, with(kTile64)), again, now);
  expect(planned({.m = 4096, .n = 128, .k = 4096}, with(kTile128)), now, again);
  expect(planned({.m = 32, .n = 4096, .k = 4096, .type_b = DataType::int4}), again, now);
}

TEST(LeavesFirst, WeightsStayBesideLargeResults) {
  expect(planned({.m = 128, .n = 4096, .k = 4096}, with(kTile128)), again, again);
  expect(planned({.m = 128, .n = 4096, .k = 4096}, with(kTile128, 2)), again, now);
  expect(planned({.m = 128, .n = 4096, .k = 4096, .type_b = DataType::int4}), again, now);
}

TEST(LeavesFirst, WhatIsReadAgainLaterIsAsAnyOther) {
  expect(planned({.m = 4096, .n = 4096, .k = 4096}, with(kTile128)), again, again);
  expect(planned({.m = 64, .n = 64, .k = 4096}, with(kTile64)), now, now);
}

TEST(LeavesFirst, PiecesOfFewTilesReadEverythingAtOnce) {
  expect(planned({.m = 512, .n = 512, .k = 16384}, with(kTile128, 8)), now, now);
  expect(planned({.m = 512, .n = 512, .k = 16384}, with(kTile128)), again, again);
  expect(planned({.m = 128, .n = 1152, .k = 16384}, with(kTile128, 8)), again, now);  // nine readers of A
  expect(planned({.m = 128, .n = 1024, .k = 16384}, with(kTile128, 8)), now, now);
}

TEST(LeavesFirst, AMatrixThatABatchSharesIsReadByAllOfIt) {
  GemmProblem batch{.m = 64, .n = 4096, .k = 4096, .batch = 8};
  expect(planned(batch, with(kTile64)), again, now);
  batch.batch_stride_b = 0;
  expect(planned(batch, with(kTile64)), again, again);
}

GemmProblem masked(std::int64_t groups, std::int64_t room, std::int64_t expected, std::int64_t n) {
  return {.m = room,
          .n = n,
          .k = 7168,
          .batch = groups,
          .type_a = DataType::e4m3,
          .type_b = DataType::e4m3,
          .type_d = DataType::bf16,
          .scaling_a = Scaling::per_vector_128,
          .scaling_b = Scaling::per_block_128,
          .grouping = Grouping::masked,
          .expected_rows = expected};
}

TEST(LeavesFirst, GroupsOfFewRowsFetchTheirWeightsOnce) {
  constexpr const char* kTile = "e4m3_rc_ping_64x128x128_c1x1";
  expect(planned(masked(32, 4096, 20, 4096), with(kTile)), again, now);
  expect(planned(masked(32, 4096, 22, 4096), with(kTile)), again, again);
}

TEST(Places, AreForGroupsWhoseRowsAreAGoodPartOfWhatIsRead) {
  constexpr const char* kTile = "e4m3_rc_coop_128x128x128_c1x1";
  const Plan experts = planned(masked(256, 128, 128, 512), {.kernel_name = kTile});
  EXPECT_EQ(experts.scheduler.claim, WorkClaim::fixed);
  EXPECT_TRUE(dealt_by_place(experts));
  EXPECT_EQ(launched_ctas(experts), 132);
  EXPECT_EQ(experts.workspace_bytes, std::size_t{65536}) << "what is taken";
  EXPECT_FALSE(dealt_by_place(planned(masked(256, 128, 128, 512), {.claim = WorkClaim::ticket, .kernel_name = kTile})));
  const Plan along_m = planned(masked(256, 128, 128, 512), {.raster = Rasterization::along_m, .kernel_name = kTile});
  EXPECT_EQ(along_m.scheduler.claim, WorkClaim::ticket) << "tiles of a row are not side by side";
  EXPECT_FALSE(dealt_by_place(along_m));
  EXPECT_FALSE(dealt_by_place(planned(masked(256, 128, 128, 4096), {.kernel_name = kTile}))) << "A is a thirty-second of B's bytes";
  EXPECT_TRUE(dealt_by_place(planned(masked(256, 128, 128, 384), {.kernel_name = kTile})));
  EXPECT_FALSE(dealt_by_place(planned(masked(256, 128, 128, 128), {.kernel_name = kTile}))) << "nobody else reads A";
  EXPECT_FALSE(dealt_by_place(planned(masked(256, 512, 256, 512), {.kernel_name = kTile}))) << "two rows of tiles";
  EXPECT_FALSE(dealt_by_place(planned(masked(32, 128, 128, 512), {.kernel_name = kTile}))) << "fewer tiles than SMs";
}

}  // namespace
}  // namespace sluice
