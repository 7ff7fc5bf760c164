// How the pieces of a tile meet, operands declared constant, determinism: what plans make of them, and what they refuse.
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "sluice/sluice.hpp"

#include "core/check_plan.hpp"
#include "core/kernel_layout.hpp"
#include "core/launched_clusters.hpp"
#include "core/tile_parts.hpp"
#include "planned.hpp"
#include "scheduler/single_items.hpp"
#include "scheduler/workspace.hpp"

namespace sluice {
namespace {

constexpr const char* kTile128 = "bf16_rc_coop_128x128x64_c1x1";
const GemmProblem kTwoTiles{.m = 256, .n = 128, .k = 4096};  // 64 k-tiles each

PlanOptions meeting(Reduction reduction, int splits, const char* kernel = kTile128) {
  return {.scheduler = SchedulerKind::split_k, .reduction = reduction, .splits = splits, .kernel_name = kernel, .keep_candidates = false};
}

Plan planned(const GemmProblem& problem, const PlanOptions& options, const char* device = "h200") {
  return planned_on(device, problem, options);
}

TEST(Reductions, SlicesTakeAPlaceForEveryPieceAndACtaEach) {
  const Plan through = planned(kTwoTiles, meeting(Reduction::workspace, 5)), slices = planned(kTwoTiles, meeting(Reduction::separate, 5));
  EXPECT_EQ(slices.grid_ctas, 10);
  EXPECT_EQ(slices.scheduler.reduction, Reduction::separate);
  // fp32 sums of a tile: through the workspace the last piece keeps its own.
  constexpr std::size_t kTileBytes = 128 * 128 * 4;
  EXPECT_EQ(through.workspace_bytes, kFlagBytes + 2 * 4 * kTileBytes);
  EXPECT_EQ(slices.workspace_bytes, kFlagBytes + 2 * 5 * kTileBytes);
  EXPECT_GT(slices.predicted.reduction_us, 0);
}

TEST(Reductions, AClusterTakesNoWorkspace) {
  for (const int splits : {2, 4, 8}) {
    const Plan made = planned(kTwoTiles, meeting(Reduction::cluster, splits));
    EXPECT_EQ(made.grid_ctas, 2 * splits);
    EXPECT_EQ(made.workspace_bytes, 0u);
    EXPECT_EQ(launched_cluster_size(made), splits);
    EXPECT_GT(made.predicted.reduction_us, 0);
  }
}

// 256 x 256 in tiles of 64 x 64: 16 pieces over the same k-tiles, of which 8 are launched together.
TEST(Neighbours, ArePiecesOverTheSameKTiles) {
  constexpr const char* kTile64 = "bf16_rc_coop_64x64x64_c1x1_swap";
  const GemmProblem square{.m = 256, .n = 256, .k = 32768};
  for (const Reduction reduction : {Reduction::workspace, Reduction::separate}) {
    EXPECT_EQ(launched_cluster_size(planned(square, meeting(reduction, 7, kTile64))), 8);
    EXPECT_EQ(launched_cluster_size(planned(square, meeting(reduction, 8, kTile64))), 2)
        << "128 CTAs do not fit in 15 clusters of 8, but in pairs";
    EXPECT_EQ(launched_cluster_size(planned(square, meeting(reduction, 30))), 4) << "four tiles of 128 x 128";
    EXPECT_EQ(launched_cluster_size(planned(square, meeting(reduction, 2, kTile64))), 1) << "32 CTAs do not wait for L2";
    EXPECT_EQ(launched_cluster_size(planned({.m = 256, .n = 128, .k = 32768}, meeting(reduction, 30))), 1)
        << "tiles of one column share B alone";
    EXPECT_EQ(launched_cluster_size(planned(square, meeting(reduction, 7, "bf16_rc_coop_64x64x128_c2x2_swap"))), 4) << "the kernel's own";
    EXPECT_EQ(launched_cluster_size(planned({.m = 192, .n = 320, .k = 8192}, meeting(reduction, 4, kTile64))), 1)
        << "15 tiles make no blocks of 4";
    EXPECT_EQ(launched_cluster_size(planned({.m = 256, .n = 256, .k = 4096, .batch = 2}, meeting(reduction, 3, kTile64))), 1)
        << "matrices share nothing";
  }
  EXPECT_EQ(launched_cluster_size(planned(square, meeting(Reduction::workspace, 7, "bf16_rc_ping_64x64x64_c1x1"))), 1)
      << "pingpong's pieces count by their rank in a cluster";
  PlanOptions by_ticket = meeting(Reduction::workspace, 7, kTile64);
  by_ticket.claim = WorkClaim::ticket;
  EXPECT_EQ(launched_cluster_size(planned(square, by_ticket)), 1) << "who takes which piece is not known before";
}

TEST(Neighbours, AreWholeTilesThatAreThereAtOnce) {
  const auto whole = [](const GemmProblem& p, const char* kernel) { return planned(p, {.kernel_name = kernel, .keep_candidates = false}); };
  constexpr const char *kPingpong = "bf16_rc_ping_128x64x64_c1x1", *kCooperative = "bf16_rc_coop_128x64x64_c1x1_swap";
  for (const char* kernel : {kPingpong, kCooperative}) {
    const Plan eights = whole({.m = 1024, .n = 768, .k = 4096}, kernel);
    EXPECT_EQ(launched_cluster_size(eights), 8) << "96 tiles";
    EXPECT_EQ(launched_ctas(eights), 96);
    EXPECT_EQ(eights.scheduler.cohort, 4) << "2 x 4 tiles of 128 x 64 are square";
    const Plan uneven = whole({.m = 1100, .n = 700, .k = 4096}, kernel);
    EXPECT_EQ(uneven.grid_ctas, 99);
    EXPECT_EQ(launched_ctas(uneven), 104) << "the last five find nothing";
    EXPECT_EQ(launched_cluster_size(whole({.m = 1024, .n = 2048, .k = 4096}, kernel)), 1) << "256 tiles take more than one round";
    EXPECT_EQ(launched_cluster_size(whole({.m = 1024, .n = 768, .k = 1024}, kernel)), 1) << "starting together takes longer than it saves";
    EXPECT_EQ(launched_cluster_size(whole({.m = 128, .n = 4096, .k = 4096}, kernel)), 1) << "one row of tiles";
  }
  EXPECT_EQ(launched_cluster_size(whole({.m = 1024, .n = 3328, .k = 4096}, "bf16_rc_coop_128x256x64_c1x1")), 1)
      << "large tiles ask L2 for little";
  EXPECT_EQ(launched_cluster_size(whole({.m = 1024, .n = 1344, .k = 4096}, "bf16_rc_coop_128x96x64_c2x1")), 2) << "the kernel's own";
  const GemmProblem fp8{.m = 1024, .n = 768, .k = 4096, .type_a = DataType::e4m3, .type_b = DataType::e4m3};
  EXPECT_EQ(launched_cluster_size(whole(fp8, "e4m3_rc_ping_64x128x128_c1x1")), 1) << "FP8 gained nothing";
}

TEST(Places, AreForWholeTilesThatAreTooManyForClustersOfEight) {
  const auto whole = [](const GemmProblem& p, const char* kernel, PlanOptions options = {}) {
    options.kernel_name = kernel;
    options.keep_candidates = false;
    return planned(p, options);
  };
  for (const char* kernel : {"bf16_rc_ping_128x64x64_c1x1", "bf16_rc_coop_128x64x64_c1x1_swap"}) {
    const Plan placed = whole({.m = 1024, .n = 1024, .k = 4096}, kernel);
    EXPECT_TRUE(dealt_by_place(placed)) << "128 tiles";
    EXPECT_EQ(launched_cluster_size(placed), 1);
    EXPECT_EQ(launched_ctas(placed), 132) << "a CTA for each SM";
    EXPECT_EQ(placed.scheduler.cohort, 4) << "4 x 4 tiles for the 16 SMs of a GPC";
    EXPECT_EQ(placed.workspace_bytes, std::size_t{65536}) << "what is taken";
    EXPECT_FALSE(dealt_by_place(whole({.m = 1024, .n = 768, .k = 4096}, kernel))) << "96 tiles are launched in eights";
    EXPECT_FALSE(dealt_by_place(whole({.m = 1024, .n = 2048, .k = 4096}, kernel))) << "256 tiles take more than one round";
    EXPECT_FALSE(dealt_by_place(whole({.m = 1024, .n = 1024, .k = 1024}, kernel)));
    EXPECT_FALSE(dealt_by_place(whole({.m = 128, .n = 8192, .k = 4096}, kernel))) << "one row of tiles";
    EXPECT_FALSE(dealt_by_place(
        whole({.m = 1024, .n = 1024, .k = 4096}, kernel, {.scheduler = SchedulerKind::data_parallel, .claim = WorkClaim::ticket})));
  }
  EXPECT_FALSE(dealt_by_place(whole({.m = 1024, .n = 2048, .k = 4096}, "bf16_rc_coop_128x128x64_c2x1"))) << "pairs of their own";
  EXPECT_EQ(whole({.m = 1024, .n = 2048, .k = 4096}, "bf16_rc_coop_128x128x64_c2x1").workspace_bytes, 0u);
}

TEST(Neighbours, AreConsideredAndExplained) {
  const GemmProblem square{.m = 256, .n = 256, .k = 32768};
  const Plan made = planned(square, {.keep_candidates = true});
  bool considered = false;
  for (const Candidate& c : made.candidates)
    considered |= c.scheduler.splits > 1 && neighbours(made.problem, made.device, c.kernel, c.scheduler) == 8;
  EXPECT_TRUE(considered);
  const Plan forced = planned(square, meeting(Reduction::workspace, 7, "bf16_rc_coop_64x64x64_c1x1_swap"));
  EXPECT_NE(explain(forced).find("launched as clusters of 8"), std::string::npos) << explain(forced);
}

TEST(Reductions, LeftFreeAClusterIsAsLargeAsHelps) {
  EXPECT_EQ(planned(kTwoTiles, meeting(Reduction::cluster, 0)).scheduler.splits, 8);
  EXPECT_EQ(planned(kTwoTiles, meeting(Reduction::cluster, 0), "h10").scheduler.splits, 2);
  EXPECT_EQ(planned({.m = 128 * 30, .n = 128, .k = 4096}, meeting(Reduction::cluster, 0)).scheduler.splits, 4);
}

void expect_refused(const GemmProblem& problem, const PlanOptions& options, ErrorCode code, const std::string& message,
                    const char* device = "h200") {
  const Result<Plan> made = plan(problem, find_device(device).value(), options);
  ASSERT_FALSE(made) << message;
  EXPECT_EQ(made.error().code, code);
  EXPECT_NE(made.error().message.find(message), std::string::npos) << made.error().message;
}

TEST(Reductions, RefusedWhereTheKernelCannot) {
  constexpr auto unsupported = ErrorCode::unsupported;
  for (const char* kernel : {"bf16_rc_coop_256x136x64_c1x1", "bf16_rc_coop_128x256x64_c2x1", "bf16_rc_ping_64x64x64_c1x1",
                             "bf16_rc_coop_64x64x64_c1x1_swap_anyalign"})
    expect_refused(kTwoTiles, meeting(Reduction::separate, 2, kernel), unsupported,
                   "pieces of " + std::string(kernel) +
                       " cannot meet in slices: that takes a cooperative kernel of two consumer warpgroups at most, with aligned operands "
                       "of contiguous K, "
                       "with at most 64 accumulators a thread, or 16 where two CTAs share an SM");
  for (const char* kernel : {"bf16_rc_coop_64x64x128_c2x1_swap", "bf16_rc_ping_64x64x64_c1x1", "bf16_rc_coop_64x64x64_c1x1_swap_anyalign"})
    expect_refused(kTwoTiles, meeting(Reduction::cluster, 2, kernel), unsupported,
                   "pieces of " + std::string(kernel) + " cannot meet in a cluster of 2: that takes a cooperative kernel");
  expect_refused(kTwoTiles, meeting(Reduction::cluster, 8), unsupported, "h10 holds no cluster of 8 CTAs; take fewer splits", "h10");
  EXPECT_TRUE(plan(kTwoTiles, find_device("h10").value(), meeting(Reduction::cluster, 2)));
}

TEST(Reductions, RefusedWhereTheOptionsHaveNoMeaning) {
  constexpr auto invalid = ErrorCode::invalid_argument;
  for (const int splits : {1, 3, 5, 6, 7, 16, 64})
    expect_refused(
        kTwoTiles, meeting(Reduction::cluster, splits), invalid,
        "splits = " + std::to_string(splits) + " must be 2, 4 or 8 for pieces that meet in a cluster; others meet in the workspace");
  expect_refused({.m = 16, .n = 64, .k = 1 << 20}, meeting(Reduction::separate, 256), invalid, "at most 255 splits");
  PlanOptions tickets = meeting(Reduction::separate, 4);
  tickets.claim = WorkClaim::ticket;
  expect_refused(kTwoTiles, tickets, invalid, "pieces that meet in slices need fixed turn");
  tickets.reduction = Reduction::cluster;
  expect_refused(kTwoTiles, tickets, invalid,
                 "pieces that meet in a cluster need a kernel without one, fixed turn, and a CTA for each of the 8 pieces");
  for (const Reduction reduction : {Reduction::workspace, Reduction::separate, Reduction::cluster}) {
    const std::string text = std::string("reduction = ") + to_string(reduction) + " needs the scheduler split-k";
    expect_refused(kTwoTiles, {.reduction = reduction}, invalid, text);
    expect_refused(kTwoTiles, {.scheduler = SchedulerKind::stream_k, .reduction = reduction}, invalid, text);
  }
  for (const Reduction reduction : {Reduction::workspace, Reduction::separate})
    expect_refused(kTwoTiles, meeting(reduction, 65), invalid, "splits = 65 must be from 1 to 64");
}

TEST(Reductions, PlansThatDoNotFitTogether) {
  const auto refused = [](Plan made, const std::function<void(Plan&)>& change, const std::string& piece) {
    EXPECT_TRUE(check_plan(made));
    change(made);
    const Status status = check_plan(made);
    ASSERT_FALSE(status) << piece;
    EXPECT_NE(status.error().message.find(piece), std::string::npos) << status.error().message;
  };
  const Plan whole = planned(kTwoTiles, {.scheduler = SchedulerKind::data_parallel});
  refused(
      whole, [](Plan& p) { p.scheduler.reduction = Reduction::separate; },
      "reduction = separate goes with split-k only, not with data-parallel");
  const Plan slices = planned(kTwoTiles, meeting(Reduction::separate, 5)), cluster = planned(kTwoTiles, meeting(Reduction::cluster, 4));
  refused(
      slices, [](Plan& p) { p.worker_count = 9; }, "at most 255 splits, and a CTA or cluster for each of the 10 pieces");
  refused(
      slices, [](Plan& p) { p.scheduler.claim = WorkClaim::ticket; }, "fixed turn");
  refused(
      cluster, [](Plan& p) { p.worker_count = 4; }, "a CTA for each of the 8 pieces");
  refused(
      cluster, [](Plan& p) { p.scheduler.splits = 5; }, "splits = 5 must be 2, 4 or 8");
}

TEST(Reductions, JsonThereAndBack) {
  for (const Reduction reduction : {Reduction::workspace, Reduction::separate, Reduction::cluster})
    for (const auto& [constant_a, constant_b] : {std::pair{false, true}, {true, false}, {true, true}}) {
      GemmProblem problem = kTwoTiles;
      problem.constant_a = constant_a, problem.constant_b = constant_b;
      const Plan made = planned(problem, meeting(reduction, 4));
      const std::string text = to_json(made);
      const Result<Plan> read = plan_from_json(text);
      ASSERT_TRUE(read) << read.error().message;
      EXPECT_EQ(*read, made);
      EXPECT_EQ(read->scheduler.reduction, reduction);
      EXPECT_EQ(read->problem.constant_b, constant_b);
      // What belongs to the usual way is not written, and so older files can be read.
      EXPECT_EQ(text.find("\"reduction\"") == std::string::npos, reduction == Reduction::workspace);
    }
  std::string text = to_json(planned(kTwoTiles, meeting(Reduction::cluster, 4)));
  text.replace(text.find("\"cluster\""), 9, "\"huddle\"");
  const Result<Plan> wrong = plan_from_json(text);
  ASSERT_FALSE(wrong);
  EXPECT_NE(wrong.error().message.find("scheduler.reduction must be one of workspace, separate, cluster, not \"huddle\""),
            std::string::npos)
      << wrong.error().message;
}

// A reduction where nothing is cut belongs to no plan.
TEST(Reductions, JsonOfWholeTilesHasNone) {
  std::string text = to_json(planned(kTwoTiles, {.scheduler = SchedulerKind::stream_k, .keep_candidates = false}));
  const std::string kind = "\"kind\": \"stream-k\",";
  ASSERT_NE(text.find(kind), std::string::npos) << text;
  text.replace(text.find(kind), kind.size(), kind + " \"reduction\": \"separate\",");
  const Result<Plan> read = plan_from_json(text);
  ASSERT_FALSE(read);
  EXPECT_NE(read.error().message.find("reduction"), std::string::npos) << read.error().message;
}

TEST(Reductions, ThePlannerTakesThemWhereTheyHelp) {
  bool slices = false, cluster = false;
  for (const std::int64_t n : {2048, 4096, 7168, 8192})
    for (const std::int64_t k : {2048, 4096, 7168, 16384, 28672})
      for (const Plan made = planned({.m = 8, .n = n, .k = k}, {}); const Candidate& candidate : made.candidates) {
        slices |= candidate.scheduler.reduction == Reduction::separate;
        cluster |= candidate.scheduler.reduction == Reduction::cluster;
        EXPECT_TRUE(candidate.scheduler.reduction == Reduction::workspace || candidate.scheduler.kind == SchedulerKind::split_k);
      }
  EXPECT_TRUE(slices && cluster);
}

TEST(Constants, AreOfTheProblemAndSaidOfIt) {
  GemmProblem problem = kTwoTiles;
  EXPECT_EQ(describe(problem).find("constant"), std::string::npos);
  problem.constant_b = true;
  EXPECT_NE(describe(problem).find(", constant B"), std::string::npos) << describe(problem);
  const Plan made = planned(problem, {});
  EXPECT_TRUE(made.problem.constant_b && !made.problem.constant_a);
  problem.constant_a = true;
  EXPECT_NE(describe(problem).find(", constant A and B"), std::string::npos) << describe(problem);
  problem.constant_b = false;
  EXPECT_NE(describe(problem).find(", constant A"), std::string::npos) << describe(problem);
}

TEST(Levels, BatchInvariantPlansKeepToWholeTiles) {
  int cut = 0;
  for (const DeviceSpec& device : builtin_devices())
    for (const std::int64_t m : {1, 8, 64, 300, 512})
      for (const std::int64_t n : {256, 2048, 7168})
        for (const std::int64_t k : {512, 7168, 65536}) {
          const GemmProblem problem{.m = m, .n = n, .k = k};
          const Plan made = plan(problem, device, {.determinism = Determinism::batch_invariant}).value();
          EXPECT_EQ(split_tile_count(made.scheduler), 0) << describe(problem);
          for (const Candidate& candidate : made.candidates) EXPECT_LE(candidate.scheduler.kind, SchedulerKind::data_parallel);
          const Plan deterministic = plan(problem, device, {.determinism = Determinism::deterministic}).value();
          if (split_tile_count(deterministic.scheduler) > 0) ++cut;
          EXPECT_EQ(plan(problem, device, {.determinism = Determinism::fast}).value(), deterministic);
        }
  EXPECT_GT(cut, 20) << "nothing that the level would keep from being cut";
}

TEST(Levels, BatchInvarianceRefusesSchedulesThatCut) {
  for (const SchedulerKind kind : {SchedulerKind::split_k, SchedulerKind::stream_k, SchedulerKind::hybrid})
    expect_refused(kTwoTiles, {.determinism = Determinism::batch_invariant, .scheduler = kind}, ErrorCode::invalid_argument,
                   std::string("determinism = batch-invariant needs whole tiles, which ") + to_string(kind) +
                       " cuts; leave the scheduler free, or ask for deterministic");
  for (const SchedulerKind kind : {SchedulerKind::one_tile_per_cta, SchedulerKind::data_parallel})
    EXPECT_TRUE(plan(kTwoTiles, find_device("h200").value(), {.determinism = Determinism::batch_invariant, .scheduler = kind}));
}

}  // namespace
}  // namespace sluice
