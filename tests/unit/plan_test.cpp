// What every plan must satisfy, whatever the cost model prefers.
#include "sluice/plan.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "core/kernel_layout.hpp"
#include "core/tile_parts.hpp"
#include "random_plans.hpp"
#include "refused.hpp"
#include "scheduler/single_items.hpp"
#include "scheduler/workspace.hpp"

namespace sluice {
namespace {

using test::expect_refused;

DeviceSpec device(const char* name) { return *find_device(name); }

Plan plan_for(const GemmProblem& problem, const char* on = "h200", const PlanOptions& options = {}) {
  const Result<Plan> made = plan(problem, device(on), options);
  EXPECT_TRUE(made.ok()) << made.error().message;
  return made.ok() ? *made : Plan{};
}

bool can_run(const Candidate& c) { return c.verdict == CandidateVerdict::chosen || c.verdict == CandidateVerdict::slower; }

TEST(Plan, IsAFunctionOfItsArguments) {
  std::mt19937 random(3);
  for (int i = 0; i < 50; ++i) {
    const GemmProblem p = testing::random_problem(random);
    EXPECT_EQ(plan_for(p), plan_for(p));
  }
}

TEST(Plan, RandomPlansHangTogether) {
  std::mt19937 random(4);
  for (int i = 0; i < 500; ++i) {
    const Plan made = testing::random_plan(random);
    SCOPED_TRACE(describe(made.problem) + " on " + made.device.name);
    EXPECT_EQ(*validate(made.problem), made.problem);
    if (is_empty(made.problem)) {
      EXPECT_EQ(made.grid_ctas, 0);
      EXPECT_TRUE(made.candidates.empty());
      continue;
    }
    const GemmProblem& p = made.problem;
    const SchedulerParams& s = made.scheduler;
    EXPECT_NE(std::find(kernel_list().begin(), kernel_list().end(), made.kernel), kernel_list().end());
    EXPECT_EQ(made.kernel.type_a, p.type_a);
    EXPECT_EQ(made.kernel.layout_a, p.layout_a);
    EXPECT_EQ(made.kernel.layout_b, p.layout_b);
    // The tiles cover the output, and no whole cluster lies outside.
    EXPECT_GE(static_cast<std::int64_t>(s.tiles_m) * made.kernel.tile_m, p.m);
    EXPECT_LT(static_cast<std::int64_t>(s.tiles_m - s.cluster_m) * made.kernel.tile_m, p.m);
    EXPECT_GE(static_cast<std::int64_t>(s.tiles_n) * made.kernel.tile_n, p.n);
    EXPECT_LT(static_cast<std::int64_t>(s.tiles_n - s.cluster_n) * made.kernel.tile_n, p.n);
    EXPECT_EQ(s.tiles_m % s.cluster_m, 0);
    EXPECT_EQ(s.tiles_n % s.cluster_n, 0);
    EXPECT_EQ(s.groups, p.batch);
    EXPECT_EQ(made.grid_ctas % cluster_size(made.kernel), 0);
    EXPECT_GT(made.grid_ctas, 0);
    EXPECT_EQ(made.worker_count, made.grid_ctas / cluster_size(made.kernel) * workers_per_cta(made.kernel));
    const bool by_item = s.kind == SchedulerKind::one_tile_per_cta || (s.kind == SchedulerKind::split_k && s.claim == WorkClaim::fixed);
    if (!by_item) {  // persistent CTAs are all resident at once: their shared memory fits
      constexpr std::int64_t kSmBytes = 233472, kReservedBytes = 1024;
      EXPECT_LE(made.grid_ctas * (made.shared_memory_bytes + kReservedBytes), made.device.sm_count * kSmBytes);
    }
    EXPECT_LE(made.shared_memory_bytes, made.device.shared_memory_per_cta_bytes);
    EXPECT_EQ(made.workspace_bytes > 0, split_tile_count(s) > 0 || s.claim == WorkClaim::ticket);
    EXPECT_EQ(made.predicted.reduction_us > 0, split_tile_count(s) > 0 || s.reduction == Reduction::cluster);
    EXPECT_GT(made.predicted.total_us, 0);
    EXPECT_GT(made.predicted.useful_share, 0);
    EXPECT_LE(made.predicted.useful_share, 1);
  }
}

// Once each; those that may cut their tiles, once for each way to do so.
TEST(Plan, CandidatesAreAllKernels) {
  for (const std::int64_t k : {64, 500, 4096}) {
    const Plan made = plan_for({.m = 1000, .n = 300, .k = k});
    std::set<std::string> names, cut_names;
    std::vector<Candidate> before;
    std::size_t whole = 0;
    for (const Candidate& c : made.candidates) {
      names.insert(name(c.kernel));
      const bool cut = split_tile_count(c.scheduler) > 0 || c.scheduler.reduction == Reduction::cluster;
      whole += cut ? 0 : 1;
      if (cut) cut_names.insert(name(c.kernel));
      EXPECT_EQ(c.predicted.reduction_us > 0, cut) << name(c.kernel);
      for (const Candidate& other : before)
        EXPECT_FALSE(other.kernel == c.kernel && other.scheduler == c.scheduler) << name(c.kernel) << " stands there twice";
      before.push_back(c);
    }
    EXPECT_EQ(names.size(), kernel_list().size());
    EXPECT_EQ(whole, kernel_list().size());
    EXPECT_EQ(cut_names.empty(), k < 4096) << "k = " << k;
    for (const Candidate& c : made.candidates)
      EXPECT_FALSE(cut_names.contains(name(c.kernel)) && (c.kernel.load == LoadPath::threads || !resources(c.kernel).joins_pieces))
          << name(c.kernel);
  }
}

TEST(Plan, CandidatesComeInOrder) {
  const Plan made = plan_for({.m = 1000, .n = 3000, .k = 512});

  const Candidate& best = made.candidates.front();
  EXPECT_EQ(best.verdict, CandidateVerdict::chosen);
  EXPECT_EQ(best.kernel, made.kernel);
  EXPECT_EQ(best.scheduler, made.scheduler);
  EXPECT_EQ(best.predicted, made.predicted);
  for (std::size_t i = 1; i < made.candidates.size(); ++i) {
    const Candidate &before = made.candidates[i - 1], &c = made.candidates[i];
    EXPECT_NE(c.verdict, CandidateVerdict::chosen);
    EXPECT_TRUE(can_run(before) || !can_run(c)) << "those that can run come first";
    if (can_run(c)) {
      EXPECT_LE(before.predicted.total_us, c.predicted.total_us);
    }
    if (!can_run(c)) {
      EXPECT_EQ(c.predicted, PredictedTime{});
    }
  }
}

TEST(Plan, TotalIsItsPartsOverlapping) {
  for (const Candidate& c : plan_for({.m = 777, .n = 1234, .k = 999 * 8}).candidates) {
    if (!can_run(c)) continue;
    const PredictedTime& t = c.predicted;
    const double others = t.launch_us + t.ramp_us + t.exposed_epilogue_us + t.reduction_us + t.learnt_us + t.power_us;
    EXPECT_GE(t.total_us, others + std::max({t.matrix_us, t.hbm_us, t.l2_us}));
    EXPECT_LE(t.total_us, others + t.matrix_us + t.hbm_us + t.l2_us);
  }
}

// The time that stores of one kernel's whole tiles are waited for.
double exposed_stores_us(const GemmProblem& problem, const std::string& kernel) {
  for (const Candidate& c : plan_for(problem).candidates)
    if (name(c.kernel) == kernel && c.scheduler.kind == SchedulerKind::data_parallel) return c.predicted.exposed_epilogue_us;
  ADD_FAILURE() << kernel << " is no candidate";
  return 0;
}

TEST(Plan, StoresBetweenTilesHideWhereTheRingHoldsATile) {
  const std::string kernel = "bf16_rc_coop_128x256x64_c2x1";
  const auto stores_us = [&](std::int64_t k) { return exposed_stores_us({.m = 4096, .n = 8192, .k = k}, kernel); };
  EXPECT_LT(stores_us(256), 0.65 * stores_us(65536)) << "eight rounds of tiles";
  EXPECT_DOUBLE_EQ(stores_us(256), stores_us(128)) << "held is held";
}

TEST(Plan, RingsAreForFastMemory) {
  GemmProblem problem{.m = 16, .n = 6144, .k = 4096, .constant_b = true};
  EXPECT_TRUE(streams(plan_for(problem, "h200").kernel));
  EXPECT_FALSE(streams(plan_for(problem, "h100-sxm").kernel));
  problem.constant_b = false;
  EXPECT_TRUE(streams(plan_for(problem, "h100-sxm").kernel)) << "launches wait for their weights all the more";
}

TEST(Plan, NothingToCompute) {
  for (const GemmProblem& p :
       {GemmProblem{.m = 0, .n = 8, .k = 8}, GemmProblem{.m = 8, .n = 0, .k = 8}, GemmProblem{.m = 8, .n = 8, .k = 8, .batch = 0}}) {
    const Plan made = plan_for(p);
    EXPECT_EQ(made.grid_ctas, 0);
    EXPECT_EQ(made.workspace_bytes, 0u);
  }
}

TEST(Plan, NoProductStillWritesTheResult) {
  GemmProblem p{.m = 100, .n = 100, .k = 0};
  EXPECT_EQ(plan_for(p).scheduler.k_tiles, 0);
  EXPECT_GT(plan_for(p).grid_ctas, 0);
  p.k = 64;
  p.epilogue.alpha = 0;
  EXPECT_EQ(plan_for(p).scheduler.k_tiles, 0);
  EXPECT_GT(plan_for(p).grid_ctas, 0);
}

TEST(Plan, UnalignedOperandsLeaveTheTensorMemoryAccelerator) {
  std::vector<GemmProblem> unaligned(4, {.m = 256, .n = 256, .k = 256, .batch = 2});
  unaligned[0].alignment_a_bytes = 8;
  unaligned[1].alignment_b_bytes = 2;
  unaligned[2].lda = 257;
  unaligned[3].batch_stride_b = 256 * 256 + 4;
  for (const GemmProblem& p : unaligned) {
    const Plan made = plan_for(p);
    EXPECT_EQ(made.kernel.load, LoadPath::threads) << describe(p);
    for (const Candidate& c : made.candidates) EXPECT_FALSE(can_run(c) && c.kernel.load == LoadPath::tma) << name(c.kernel);
  }
  EXPECT_EQ(plan_for({.m = 256, .n = 256, .k = 256}).kernel.load, LoadPath::tma);
}

TEST(Plan, OptionsAreObeyed) {
  const GemmProblem p{.m = 2048, .n = 2048, .k = 2048};
  for (const KernelSchedule schedule : {KernelSchedule::cooperative, KernelSchedule::pingpong})
    EXPECT_EQ(plan_for(p, "h200", {.schedule = schedule}).kernel.schedule, schedule);
  for (const SchedulerKind kind : {SchedulerKind::one_tile_per_cta, SchedulerKind::data_parallel})
    EXPECT_EQ(plan_for(p, "h200", {.scheduler = kind}).scheduler.kind, kind);
  for (const Rasterization raster : {Rasterization::along_m, Rasterization::along_n})
    EXPECT_EQ(plan_for(p, "h200", {.raster = raster}).scheduler.raster, raster);
  EXPECT_EQ(plan_for(p, "h200", {.tile_m = 64}).kernel.tile_m, 64);
  EXPECT_EQ(plan_for(p, "h200", {.tile_n = 96}).kernel.tile_n, 96);
  for (const KernelConfig& kernel : kernel_list())
    if (kernel.type_a == DataType::bf16 && kernel.type_b == DataType::bf16 && kernel.layout_a == p.layout_a &&
        kernel.layout_b == p.layout_b) {
      GemmProblem taken = p;
      if (kernel.schedule == KernelSchedule::streaming) taken.m = kernel.tile_m;
      EXPECT_EQ(plan_for(taken, "h200", {.kernel_name = name(kernel)}).kernel, kernel);
    }
  EXPECT_TRUE(plan_for(p, "h200", {.keep_candidates = false}).candidates.empty());
}

TEST(Plan, NoStripIsMuchNarrowerThanTheOthers) {
  for (std::int64_t clusters = 1; clusters <= 64; ++clusters) {  // of 256 x 192, across the strips
    const Plan made = plan_for({.m = clusters * 256, .n = 57344, .k = 8192}, "h200", {.kernel_name = "bf16_rc_ping_128x192x64_c2x1"});
    const SchedulerParams& s = made.scheduler;
    ASSERT_EQ(s.raster, Rasterization::along_n);
    const std::int64_t last = clusters - (clusters - 1) / s.cohort * s.cohort;
    EXPECT_GE(2 * last, s.cohort) << clusters << " clusters in strips of " << s.cohort;
    if (clusters >= 8) EXPECT_LE(s.cohort, 14) << "twice as wide as a square of 66 clusters";
  }
}

TEST(Plan, OptionsThatLeaveNothing) {
  const GemmProblem p{.m = 64, .n = 64, .k = 64};
  expect_refused(plan(p, device("h200"), {.kernel_name = "warp_drive"}), ErrorCode::unsupported, {"warp_drive", "relax", "sluice list"});
  expect_refused(plan(p, device("h200"), {.tile_m = 7}), ErrorCode::unsupported, {"options", "relax"});
}

TEST(Plan, BadProblemsAndDevicesAreRefusedAtTheDoor) {
  expect_refused(plan({.m = -1, .n = 8, .k = 8}, device("h200")), ErrorCode::invalid_argument, {"m = -1"});
  DeviceSpec ampere = device("h200");
  ampere.name = "a100";
  ampere.compute_capability = 80;
  expect_refused(plan({.m = 8, .n = 8, .k = 8}, ampere), ErrorCode::wrong_device, {"a100", "8.0", "9.0"});
  DeviceSpec nothing = device("h200");
  nothing.clock_ghz = std::numeric_limits<double>::quiet_NaN();
  expect_refused(plan({.m = 8, .n = 8, .k = 8}, nothing), ErrorCode::invalid_argument, {"clock_ghz"});
  expect_refused(plan({.m = 0, .n = 8, .k = 8}, nothing), ErrorCode::invalid_argument, {"clock_ghz"});
}

// The smallest tile decides: were there a smaller one than this, tile numbers could leave 32 bits.
// Where tiles of 16 x 64 are just few enough, kernels with smaller ones drop out, and say why.
TEST(Plan, KernelsWithTooManyTilesDropOut) {
  const std::int64_t most = std::numeric_limits<std::int32_t>::max() - 1024;
  for (const Candidate& c : plan_for({.m = most, .n = 64 * 3, .k = 8}).candidates)
    if (c.verdict != CandidateVerdict::wrong_type && c.verdict != CandidateVerdict::few_rows_only) {
      EXPECT_EQ(c.verdict == CandidateVerdict::too_many_tiles, c.kernel.tile_m < 16) << name(c.kernel);
    }
}

TEST(Plan, TooManyTiles) {
  const std::int64_t most = std::numeric_limits<std::int32_t>::max() - 1024;
  expect_refused(plan({.m = most, .n = 4096, .k = 8}, device("h200")), ErrorCode::too_large, {"2147482623", "2^29 tiles", "split"});
  expect_refused(plan({.m = 1, .n = 1, .k = 1, .batch = most}, device("h200")), ErrorCode::too_large, {"2^29 tiles"});
  expect_refused(plan({.m = most, .n = 64 * 4, .k = 8}, device("h200")), ErrorCode::too_large, {"2^29 tiles"});  // the first too many
}

// At the limit, every kernel with either scheduler: what walks over the tiles must stay within 32 bits.
TEST(Plan, TheMostTilesStayWithin32Bits) {
  const std::int64_t most = std::numeric_limits<std::int32_t>::max() - 1024;
  const GemmProblem p{.m = most, .n = 64 * 3, .k = 8};
  for (const SchedulerKind kind : {SchedulerKind::one_tile_per_cta, SchedulerKind::data_parallel})
    for (const Candidate& c : plan_for(p, "h200", {.scheduler = kind}).candidates) {
      if (!can_run(c)) continue;
      const Plan made = plan_for(p, "h200", {.scheduler = kind, .kernel_name = name(c.kernel)});
      EXPECT_GT(made.worker_count, 0) << name(c.kernel);
      EXPECT_GT(made.grid_ctas, 0) << name(c.kernel);
      const std::int64_t past_the_end = std::int64_t{cluster_tiles(made.scheduler)} + made.worker_count;
      EXPECT_LE(past_the_end, std::numeric_limits<std::int32_t>::max()) << name(c.kernel);
    }
}

TEST(Plan, ADeviceWithoutClusters) {
  DeviceSpec lonely = device("h200");
  lonely.clusters_of_2 = 0;
  const Result<Plan> made = plan({.m = 4096, .n = 4096, .k = 4096}, lonely);
  ASSERT_TRUE(made.ok()) << made.error().message;
  EXPECT_EQ(cluster_size(made->kernel), 1);
  for (const Candidate& c : made->candidates)
    if (c.kernel.type_a == DataType::bf16 && c.kernel.type_b == DataType::bf16 && c.kernel.layout_a == Layout::row_major &&
        c.kernel.layout_b == Layout::column_major) {
      EXPECT_EQ(c.verdict == CandidateVerdict::cluster_does_not_fit, cluster_size(c.kernel) > 1) << name(c.kernel);
    }
}

TEST(Plan, ADeviceWithoutClustersAndWeightsOf4Bits) {
  DeviceSpec lonely = device("h200");
  lonely.clusters_of_2 = 0;
  const Result<Plan> made = plan({.m = 4, .n = 4096, .k = 4096, .type_b = DataType::int4}, lonely);
  ASSERT_TRUE(made.ok()) << made.error().message;
  for (const Candidate& c : made->candidates)
    if (c.kernel.type_a == DataType::bf16 && c.kernel.type_b == DataType::int4) {
      EXPECT_EQ(c.verdict == CandidateVerdict::cluster_does_not_fit, cluster_size(c.kernel) > 1) << name(c.kernel);
    }
}

// Tiles of 80, 160 or 192 rows are there for products that have so many. A batch or groups of 128 rows, where they come out a little faster
// by prediction, were timed in others.
TEST(Plan, RowsOfATileSuitABatchAndGroupsAsTheyWereTimed) {
  GemmProblem groups{.m = 32768, .n = 512, .k = 7168, .batch = 256, .grouping = Grouping::ragged};
  GemmProblem batch{.m = 128, .n = 128, .k = 128, .batch = 64};
  for (const GemmProblem& p : {groups, batch})
    EXPECT_TRUE(std::has_single_bit(static_cast<unsigned>(plan(p, device("h200"))->kernel.tile_m))) << describe(p);
  PlanOptions forced;
  forced.tile_m = 160;
  EXPECT_EQ(plan(groups, device("h200"), forced)->kernel.tile_m, 160);
  EXPECT_EQ(plan({.m = 160, .n = 8192, .k = 8192, .constant_b = true}, device("h200"))->kernel.tile_m % 80, 0);
}

TEST(Plan, ADeviceWithLittleSharedMemory) {
  DeviceSpec small = device("h200");
  small.shared_memory_per_cta_bytes = 1024;
  expect_refused(plan({.m = 64, .n = 64, .k = 64}, small), ErrorCode::unsupported, {"no kernel"});
}

}  // namespace
}  // namespace sluice
