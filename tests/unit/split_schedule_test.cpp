// Schedules that cut tiles in k: the worked examples of the literature, what the planner makes of its options, what plans refuse.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "sluice/sluice.hpp"

#include "core/check_plan.hpp"
#include "gemm_data.hpp"
#include "planned.hpp"
#include "scheduler/single_items.hpp"
#include "scheduler/workspace.hpp"
#include "simulator/lanes.hpp"

namespace sluice {
namespace {

constexpr const char* kTile128 = "bf16_rc_coop_128x128x64_c1x1";
const GemmProblem kNineTiles{.m = 384, .n = 384, .k = 4096};  // 64 k-tiles
const GemmProblem kTwoTiles{.m = 256, .n = 128, .k = 4096};

PlanOptions with(SchedulerKind kind) { return {.scheduler = kind, .kernel_name = kTile128}; }

Plan planned(const GemmProblem& problem, const PlanOptions& options, const char* device = "h10") {
  return planned_on(device, problem, options);
}

Simulation simulated(const Plan& made, const SimulateOptions& options = {}) {
  const Result<Simulation> simulation = simulate(made, options);
  EXPECT_TRUE(simulation) << simulation.error().message;
  EXPECT_EQ(simulation->uncovered_k_tiles, 0);
  EXPECT_EQ(simulation->repeated_k_tiles, 0);
  return *simulation;
}

// The number that tile_at() gives a tile, so that the examples can speak of tiles 0 to 8.
std::int32_t number_of(const SchedulerParams& params, const WorkTile& tile) {
  for (std::int32_t i = 0; i < cluster_tiles(params); ++i) {
    const WorkTile whole = tile_at(params, i);
    if (whole.tile_m == tile.tile_m && whole.tile_n == tile.tile_n && whole.group == tile.group) return i;
  }
  return -1;
}

// "2[0,16) 0 1": a worker's pieces in order, as tile numbers with the k-tiles of those that are not whole.
std::string work_of(const Plan& made, const Simulation& simulation, int worker) {
  std::string text;
  for (const SimulatedPiece& piece : simulation.pieces) {
    if (piece.worker != worker) continue;
    text += (text.empty() ? "" : " ") + std::to_string(number_of(made.scheduler, piece.tile));
    if (piece.tile.peers > 1) text += "[" + std::to_string(piece.tile.k_begin) + "," + std::to_string(piece.tile.k_end) + ")";
  }
  return text;
}

// Nine tiles on four SMs, 2.25 each. What the next CTA waits for comes first, what completes a tile last.
TEST(SplitSchedule, NineTilesUnderStreamK) {
  const Plan made = planned(kNineTiles, with(SchedulerKind::stream_k));
  EXPECT_EQ(made.scheduler.stream_k_tiles, 9);
  EXPECT_EQ(made.worker_count, 4);
  const Simulation s = simulated(made);
  EXPECT_DOUBLE_EQ(s.makespan, 2.25);
  EXPECT_DOUBLE_EQ(s.utilisation, 1.0);
  EXPECT_DOUBLE_EQ(s.waiting, 0.0);
  EXPECT_EQ(work_of(made, s, 0), "2[0,16) 0 1");
  EXPECT_EQ(work_of(made, s, 1), "4[0,32) 3 2[16,64)");
  EXPECT_EQ(work_of(made, s, 2), "6[0,48) 5 4[32,64)");
  EXPECT_EQ(work_of(made, s, 3), "7 8 6[48,64)");
}

// Tiles 0 to 4 cut, 1.25 to each CTA; tiles 5 to 8 whole, one each.
TEST(SplitSchedule, NineTilesUnderHybridStreamK) {
  const Plan made = planned(kNineTiles, with(SchedulerKind::hybrid));
  EXPECT_EQ(made.scheduler.stream_k_tiles, 5);
  const Simulation s = simulated(made);
  EXPECT_DOUBLE_EQ(s.makespan, 2.25);
  EXPECT_DOUBLE_EQ(s.utilisation, 1.0);
  EXPECT_EQ(work_of(made, s, 0), "1[0,16) 0 5");
  EXPECT_EQ(work_of(made, s, 1), "2[0,32) 6 1[16,64)");
  EXPECT_EQ(work_of(made, s, 2), "3[0,48) 7 2[32,64)");
  EXPECT_EQ(work_of(made, s, 3), "4 8 3[48,64)");
}

// Four CTAs, two tiles: with as many regions as tiles, stream-K is split-K.
TEST(SplitSchedule, RegionsAsManyAsTilesAreSplitK) {
  PlanOptions regions = with(SchedulerKind::stream_k), splits = with(SchedulerKind::split_k);
  regions.stream_k_regions = 2;
  splits.splits = 2;
  splits.lead = -1;
  const Plan by_regions = planned(kTwoTiles, regions), by_splits = planned(kTwoTiles, splits);
  const Simulation r = simulated(by_regions), s = simulated(by_splits);
  EXPECT_DOUBLE_EQ(r.makespan, 0.5);
  EXPECT_DOUBLE_EQ(s.makespan, 0.5);
  for (const auto& [worker, work] : {std::pair{0, "0[0,32)"}, {1, "0[32,64)"}, {2, "1[0,32)"}, {3, "1[32,64)"}})
    EXPECT_EQ(work_of(by_regions, r, worker), work);
  // Split-K has all first halves before all second ones.
  for (const auto& [worker, work] : {std::pair{0, "0[0,32)"}, {1, "1[0,32)"}, {2, "0[32,64)"}, {3, "1[32,64)"}})
    EXPECT_EQ(work_of(by_splits, s, worker), work);
}

TEST(SplitSchedule, SplitKFillsTheDeviceUnlessTold) {
  EXPECT_EQ(planned(kTwoTiles, with(SchedulerKind::split_k)).scheduler.splits, 2);
  EXPECT_EQ(planned(kTwoTiles, with(SchedulerKind::split_k), "h200").scheduler.splits, 64);  // 66 would fill it: as many as k-tiles
  EXPECT_EQ(planned(kNineTiles, with(SchedulerKind::split_k), "h200").scheduler.splits, 14);
  EXPECT_EQ(planned(kNineTiles, with(SchedulerKind::split_k)).scheduler.splits, 2);
}

TEST(SplitSchedule, WholeWavesLeaveHybridNothingToCut) {
  const Plan made = planned({.m = 1024, .n = 128, .k = 512}, with(SchedulerKind::hybrid));
  EXPECT_EQ(made.scheduler.stream_k_tiles, 0);
  EXPECT_DOUBLE_EQ(simulated(made).makespan, 2.0);
}

TEST(SplitSchedule, FewerTilesThanClustersAreAllCut) {
  const Plan made = planned(kNineTiles, with(SchedulerKind::hybrid), "h200");
  EXPECT_EQ(made.scheduler.stream_k_tiles, 9);
  EXPECT_EQ(made.worker_count, 132);
  EXPECT_DOUBLE_EQ(simulated(made).makespan, 5.0 / 64);  // 576 k-tiles over 132 SMs: 5 at most
}

TEST(SplitSchedule, PiecesBelowTheLeastAreNotCutOff) {
  PlanOptions options = with(SchedulerKind::stream_k);
  options.min_k_tiles = 20;  // a quarter of a tile has 16
  const Plan made = planned(kNineTiles, options);
  const Simulation s = simulated(made);
  EXPECT_EQ(work_of(made, s, 0), "0 1");
  EXPECT_EQ(work_of(made, s, 1), "4[0,32) 2 3");
  EXPECT_EQ(work_of(made, s, 3), "7 8");
}

TEST(SplitSchedule, WithoutKTilesNothingIsCut) {
  for (const SchedulerKind kind : {SchedulerKind::split_k, SchedulerKind::stream_k, SchedulerKind::hybrid}) {
    GemmProblem problem = kNineTiles;
    problem.epilogue = {.alpha = 0, .beta = 1};
    const Plan made = planned(problem, with(kind));
    EXPECT_EQ(split_tile_count(made.scheduler), 0);
    EXPECT_EQ(simulated(made).pieces.size(), 9u);
  }
}

// Held up by another kernel: two SMs, or one, take longer and get everything done, whoever deals out the work.
TEST(SplitSchedule, FewResidentClustersFinishEverything) {
  for (const SchedulerKind kind : {SchedulerKind::split_k, SchedulerKind::stream_k, SchedulerKind::hybrid})
    for (const WorkClaim claim : {WorkClaim::fixed, WorkClaim::ticket}) {
      PlanOptions options = with(kind);
      options.claim = claim;
      const Plan made = planned(kNineTiles, options);
      for (const int resident : {1, 2, 3, 4}) {
        const Simulation s = simulated(made, {.resident_units = resident});
        EXPECT_GE(s.makespan, 9.0 / resident - 1e-9) << describe(made.problem);
        if (claim == WorkClaim::fixed) continue;
        EXPECT_LT(s.makespan, 9.0 / resident + 1) << to_text(s);
      }
    }
  EXPECT_FALSE(simulate(planned(kNineTiles, {}), {.resident_units = -1}));
}

TEST(SplitSchedule, TheLastPieceWaitsForTheOthersWhichGoOn) {
  PlanOptions options = with(SchedulerKind::stream_k);
  const Simulation s = simulated(planned({.m = 128, .n = 128, .k = 4096}, options, "h10"));
  ASSERT_EQ(s.pieces.size(), 4u);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_DOUBLE_EQ(s.pieces[i].done, 0.25);
  EXPECT_DOUBLE_EQ(s.makespan, 0.25);

  const Plan five = planned({.m = 128, .n = 128, .k = 64 * 5}, options, "h10");  // ranges of 2, 1, 1 and 1 k-tiles
  const Simulation uneven = simulated(five);
  EXPECT_DOUBLE_EQ(uneven.pieces[3].end, 0.2);
  EXPECT_DOUBLE_EQ(uneven.pieces[3].done, 0.4);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(uneven.pieces[i].done, uneven.pieces[i].end);
  EXPECT_DOUBLE_EQ(uneven.waiting, 0.2);
  EXPECT_NE(to_text(uneven).find("waiting 0.20"), std::string::npos);
  EXPECT_NE(to_text(uneven).find("~"), std::string::npos);
}

TEST(SplitSchedule, PicturesTellPiecesFromFinishers) {
  const Simulation s = simulated(planned(kNineTiles, with(SchedulerKind::stream_k)));
  const std::string text = to_text(s), svg = to_svg(s);
  EXPECT_NE(text.find("9 tiles in 12 pieces, makespan 2.25 tiles, utilisation 100.0%"), std::string::npos) << text;
  EXPECT_NE(text.find("(1,1) k0-31 1/2"), std::string::npos) << text;
  EXPECT_NE(text.find("k0-9 1/2 = "), std::string::npos) << text;
  EXPECT_NE(svg.find("pale: its sums go on"), std::string::npos);
  std::size_t threads = 0;
  for (std::size_t at = 0; (at = svg.find("stroke-dasharray", at)) != std::string::npos; ++at) ++threads;
  EXPECT_EQ(threads, 3u);
  const std::string whole = to_svg(simulated(planned(kNineTiles, with(SchedulerKind::data_parallel))));
  EXPECT_EQ(whole.find("pale"), std::string::npos);
}

void expect_refused(const GemmProblem& problem, const PlanOptions& options, const std::vector<std::string>& pieces) {
  const Result<Plan> made = plan(problem, find_device("h10").value(), options);
  ASSERT_FALSE(made) << pieces.front();
  EXPECT_EQ(made.error().code, ErrorCode::invalid_argument);
  for (const std::string& piece : pieces) EXPECT_NE(made.error().message.find(piece), std::string::npos) << made.error().message;
}

// Where all pieces run at once the last one is given the time that it would wait, unless it is told how much, or nothing.
TEST(SplitSchedule, TheLastPieceIsLongerUnlessTold) {
  const GemmProblem p{.m = 128, .n = 4096, .k = 4096};
  PlanOptions options{.scheduler = SchedulerKind::split_k, .splits = 2, .kernel_name = "bf16_rc_coop_128x64x64_c1x1_swap"};
  const Plan led = planned(p, options, "h200");
  EXPECT_GT(led.scheduler.lead, 4);
  EXPECT_LE(led.scheduler.lead, 32);
  options.lead = 6;
  EXPECT_EQ(planned(p, options, "h200").scheduler.lead, 6);
  options.lead = -1;
  const Plan equal = planned(p, options, "h200");
  EXPECT_EQ(equal.scheduler.lead, 0);
  EXPECT_LT(led.predicted.reduction_us, equal.predicted.reduction_us);
  options.reduction = Reduction::separate;
  options.lead = 0;
  EXPECT_EQ(planned(p, options, "h200").scheduler.lead, 0);  // nobody waits longer than others
  options.lead = 3;
  expect_refused(p, options, {"lead = 3 must be from 0 to 0"});
  options = {.scheduler = SchedulerKind::split_k, .splits = 2, .lead = 63};
  expect_refused(kTwoTiles, options, {"lead = 63 must be from 0 to 62"});
  expect_refused(kTwoTiles, {.lead = 2}, {"lead = 2", "needs the scheduler split-k"});
  expect_refused(kTwoTiles, {.scheduler = SchedulerKind::split_k, .lead = -2}, {"lead = -2"});
}

TEST(SplitSchedule, OptionsThatCannotBe) {
  PlanOptions options = with(SchedulerKind::split_k);
  options.splits = 65;
  expect_refused(kNineTiles, options, {"splits = 65", "from 1 to 64"});
  options.splits = 9, options.min_k_tiles = 8;
  expect_refused(kNineTiles, options, {"splits = 9", "from 1 to 8", "pieces of 8"});
  options.splits = -1;
  expect_refused(kNineTiles, options, {"splits = -1", "negative"});
  options = with(SchedulerKind::stream_k), options.splits = 2;
  expect_refused(kNineTiles, options, {"splits = 2 needs the scheduler split-k"});
  options = with(SchedulerKind::stream_k), options.stream_k_regions = 2;
  expect_refused(kNineTiles, options, {"stream_k_regions = 2", "9 tiles", "4 clusters"});
  options = {.min_k_tiles = 2};
  expect_refused(kNineTiles, options, {"min_k_tiles = 2 needs"});
  options = {.stream_k_regions = 2};
  expect_refused(kNineTiles, options, {"stream_k_regions = 2 needs"});
  options = with(SchedulerKind::stream_k);
  expect_refused({.m = 1 << 20, .n = 1 << 18, .k = 1 << 14}, options, {"2^30", "use hybrid"});
  options = with(SchedulerKind::split_k), options.splits = 128;
  expect_refused({.m = 1 << 20, .n = 1 << 18, .k = 1 << 14}, options, {"splits = 128", "2^29"});
}

TEST(SplitSchedule, PlansThatDoNotFitTogether) {
  const auto refused = [](Plan made, const std::function<void(Plan&)>& change, const std::string& piece) {
    change(made);
    const Status status = check_plan(made);
    ASSERT_FALSE(status) << piece;
    EXPECT_NE(status.error().message.find(piece), std::string::npos) << status.error().message;
  };
  const Plan stream = planned(kNineTiles, with(SchedulerKind::stream_k));
  refused(
      stream, [](Plan& p) { p.scheduler.stream_k_tiles = 10; }, "stream_k_tiles = 10");
  refused(
      stream, [](Plan& p) { p.scheduler.stream_k_tiles = 8; }, "must be all 9");
  refused(
      stream, [](Plan& p) { p.scheduler.stream_k_ranges = 5; }, "stream_k_ranges = 5 must be the number of clusters, 4");
  refused(
      stream, [](Plan& p) { p.scheduler.stream_k_regions = 0; }, "stream_k_regions = 0");
  refused(
      stream, [](Plan& p) { p.scheduler.min_k_tiles = 0; }, "min_k_tiles = 0");
  refused(
      stream, [](Plan& p) { p.scheduler.splits = 2; }, "splits = 2 must be 1 under stream-k");
  const Plan split = planned(kNineTiles, with(SchedulerKind::split_k));
  refused(
      split, [](Plan& p) { p.worker_count = 4; }, "18 pieces dealt to 4 clusters");
  refused(
      split, [](Plan& p) { p.scheduler.stream_k_tiles = 1; }, "under split-k");
  refused(
      split, [](Plan& p) { p.scheduler.splits = 0; }, "splits = 0");
  refused(
      split, [](Plan& p) { p.scheduler.lead = 63; }, "lead = 63 must be from 0 to 62");
  refused(
      stream, [](Plan& p) { p.scheduler.lead = 1; }, "lead = 1 must be 0 under stream-k");
}

TEST(SplitSchedule, JsonThereAndBack) {
  for (const SchedulerKind kind : {SchedulerKind::split_k, SchedulerKind::stream_k, SchedulerKind::hybrid})
    for (const WorkClaim claim : {WorkClaim::fixed, WorkClaim::ticket}) {
      PlanOptions options = with(kind);
      options.claim = claim;
      options.min_k_tiles = 3;
      if (kind == SchedulerKind::split_k) options.splits = 5, options.lead = 7;
      const Plan made = planned(kNineTiles, options);
      const Result<Plan> read = plan_from_json(to_json(made));
      ASSERT_TRUE(read) << read.error().message;
      EXPECT_EQ(*read, made);
    }
  // Fields that do not belong to whole tiles are not written, and so older files can be read.
  const std::string whole = to_json(planned(kNineTiles, with(SchedulerKind::data_parallel)));
  for (const char* field : {"claim", "splits", "lead", "min_k_tiles", "stream_k"}) EXPECT_EQ(whole.find(field), std::string::npos) << field;
  std::string wrong = to_json(planned(kNineTiles, with(SchedulerKind::stream_k)));
  wrong.replace(wrong.find("\"stream_k_tiles\": 9"), 19, "\"stream_k_tiles\": 8");
  EXPECT_FALSE(plan_from_json(wrong));
}

// Deep products of few tiles are cut without being asked for; shallow ones are not, nor where the options leave no choice.
TEST(SplitSchedule, ThePlannerCutsTilesThatLeaveSmsIdle) {
  const GemmProblem deep{.m = 32, .n = 64, .k = 65536};
  GemmProblem unaligned = deep;
  unaligned.alignment_a_bytes = 2;
  for (const DeviceSpec& device : builtin_devices()) {
    const Plan made = plan(deep, device).value();
    EXPECT_GT(split_tile_count(made.scheduler), 0) << device.name;
    EXPECT_EQ(made.scheduler.claim, WorkClaim::fixed);
    EXPECT_GT(made.grid_ctas, 1);
    EXPECT_GT(made.workspace_bytes, 0u);
    EXPECT_LT(made.predicted.total_us, plan(deep, device, {.scheduler = SchedulerKind::data_parallel}).value().predicted.total_us);
    for (const Plan& whole : {plan({.m = 384, .n = 384, .k = 128}, device).value(), plan(unaligned, device).value(),
                              plan(deep, device, {.claim = WorkClaim::ticket}).value(),
                              plan(deep, device, {.scheduler = SchedulerKind::data_parallel}).value()})
      EXPECT_EQ(split_tile_count(whole.scheduler), 0) << device.name << ", " << describe(whole.problem);
  }
}

// The order of summation is the plan's, not the threads': the same bits however many there are, and the exact product of integers.
TEST(SplitSchedule, TheCpuAddsPiecesInTheOrderOfK) {
  for (const SchedulerKind kind : {SchedulerKind::split_k, SchedulerKind::stream_k, SchedulerKind::hybrid})
    for (const char* kernel : {"bf16_rc_coop_128x128x64_c1x1", "bf16_rc_coop_128x256x64_c2x1", "bf16_rc_ping_64x64x64_c1x1"}) {
      const PlanOptions options{.scheduler = kind, .kernel_name = kernel};
      const GemmProblem problem{.m = 520, .n = 190, .k = 520, .type_d = DataType::fp32};
      test::GemmData exact(problem, test::Values::integers);
      const Plan made = test::plan_on_h10(exact.problem, options).value();
      EXPECT_GT(split_tile_count(made.scheduler), 0);
      ASSERT_TRUE(run_on_cpu(made, exact.arguments(), 4));
      for (std::int64_t row = 0; row < problem.m; row += 13)
        for (std::int64_t column = 0; column < problem.n; column += 7)
          ASSERT_EQ(exact.d.get(exact.index_d(0, row, column)), exact.before_activation(0, row, column)) << kernel << row << ',' << column;
      test::GemmData one(problem, test::Values::normal), many(problem, test::Values::normal);
      ASSERT_TRUE(run_on_cpu(made, one.arguments(), 1));
      ASSERT_TRUE(run_on_cpu(made, many.arguments(), 7));
      for (std::int64_t i = 0; i < problem.m * problem.n; ++i) ASSERT_EQ(one.d.get(i), many.d.get(i));
      EXPECT_TRUE(verify(one.problem, one.arguments(), nullptr)->ok());
    }
}

}  // namespace
}  // namespace sluice
