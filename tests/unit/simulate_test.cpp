// The worked examples of the literature, and the simulator's own arithmetic on schedules it has not met yet.
#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "sluice/sluice.hpp"

#include "scheduler/single_items.hpp"
#include "simulator/coverage.hpp"
#include "simulator/lanes.hpp"

namespace sluice {
namespace {

Simulation simulated(const GemmProblem& problem, const char* device, const PlanOptions& options) {
  const Result<Plan> made = plan(problem, find_device(device).value(), options);
  EXPECT_TRUE(made) << made.error().message;
  const Result<Simulation> simulation = simulate(*made);
  EXPECT_TRUE(simulation) << simulation.error().message;
  EXPECT_EQ(simulation->uncovered_k_tiles, 0);
  EXPECT_EQ(simulation->repeated_k_tiles, 0);
  return *simulation;
}

constexpr const char* kTile128 = "bf16_rc_coop_128x128x64_c1x1";
const GemmProblem kNineTiles{.m = 384, .n = 384, .k = 128};

// h10, nine tiles as stream-K deals them: 2.25 to each of four CTAs, in k-tiles of a quarter.
Simulation stream_k_by_hand() {
  Simulation s{.what = "nine tiles", .how = "stream-K by hand", .worker_count = 4, .k_tiles = 4, .sm_count = 4, .output_tiles = 9};
  for (int sm = 0; sm < 4; ++sm)
    for (int k = 9 * sm; k < 9 * (sm + 1);) {
      const int tile = k / 4, end = std::min(9 * (sm + 1), 4 * (tile + 1));
      const double begin = (k - 9 * sm) / 4.0;
      s.pieces.push_back({sm, sm, {tile / 3, tile % 3, 0, k % 4, end - 4 * tile}, begin, begin + (end - k) / 4.0});
      s.makespan = std::max(s.makespan, s.pieces.back().end);
      k = end;
    }
  s.waves = 4, s.utilisation = 1;
  return s;
}
const SchedulerParams kThreeByThree{.tiles_m = 3, .tiles_n = 3, .k_tiles = 4};

TEST(Simulate, NineTilesOnFourSmsAreThreeWaves) {
  const Simulation s = simulated(kNineTiles, "h10", {.kernel_name = kTile128});
  EXPECT_EQ(s.output_tiles, 9);
  EXPECT_EQ(s.waves, 3);
  EXPECT_DOUBLE_EQ(s.makespan, 3.0);
  EXPECT_DOUBLE_EQ(s.utilisation, 0.75);
  ASSERT_EQ(s.pieces.size(), 9u);
  EXPECT_EQ(std::count_if(s.pieces.begin(), s.pieces.end(), [](const SimulatedPiece& p) { return p.sm == 0; }), 3);
}

TEST(Simulate, HalvingTheTileWidthGivesFiveWavesAndNinetyPercent) {
  for (const KernelSchedule schedule : {KernelSchedule::cooperative, KernelSchedule::pingpong}) {
    const PlanOptions options{.schedule = schedule, .tile_m = 128, .tile_n = 64};
    const Result<Plan> made = plan(kNineTiles, find_device("h10").value(), options);
    if (!made) continue;  // no such kernel in pingpong
    const Simulation s = simulated(kNineTiles, "h10", options);
    EXPECT_EQ(s.output_tiles, 18);
    EXPECT_EQ(s.waves, 5);
    EXPECT_DOUBLE_EQ(s.makespan, 5.0);
    EXPECT_DOUBLE_EQ(s.utilisation, 0.9);
  }
}

TEST(Simulate, OneTileTooManyCostsAWholeWave) {
  for (const SchedulerKind kind : {SchedulerKind::data_parallel, SchedulerKind::one_tile_per_cta})
    for (const auto& [tiles, waves] : {std::pair{114, 1}, {115, 2}, {228, 2}, {229, 3}}) {
      const GemmProblem problem{.m = 128, .n = 128 * tiles, .k = 256};
      const Simulation s = simulated(problem, "h100-pcie", {.scheduler = kind, .kernel_name = kTile128});
      EXPECT_EQ(s.output_tiles, tiles);
      EXPECT_EQ(s.waves, waves) << tiles;
      EXPECT_DOUBLE_EQ(s.makespan, waves);
      EXPECT_NEAR(s.utilisation, static_cast<double>(tiles) / (114 * waves), 1e-12);
    }
}

TEST(Simulate, TwoAndAHalfWavesAreThree) {
  const Simulation s = simulated({.m = 1280, .n = 128, .k = 64}, "h10", {.kernel_name = kTile128});
  EXPECT_EQ(s.waves, 3);
  EXPECT_NEAR(s.utilisation, 10.0 / 12, 1e-12);
}

TEST(Simulate, PingpongWorkersTakeTurnsOnTheirSm) {
  const Simulation s = simulated({.m = 384, .n = 384, .k = 128}, "h10", {.kernel_name = "bf16_rc_ping_64x64x64_c1x1"});
  EXPECT_EQ(s.worker_count, 8);
  EXPECT_EQ(s.workers_per_cta, 2);
  EXPECT_EQ(s.output_tiles, 36);
  EXPECT_EQ(s.waves, 9);
  EXPECT_DOUBLE_EQ(s.makespan, 9.0);
  EXPECT_DOUBLE_EQ(s.utilisation, 1.0);
  for (const Lane& lane : lanes(s)) {
    ASSERT_EQ(lane.size(), 9u);
    for (std::size_t i = 0; i + 1 < lane.size(); ++i) {
      EXPECT_EQ(lane[i].piece->end, lane[i + 1].piece->begin);  // never both at once
      EXPECT_NE(lane[i].piece->worker, lane[i + 1].piece->worker);
      EXPECT_EQ(lane[i].piece->worker % 4, lane[i + 1].piece->worker % 4);
    }
  }
}

TEST(Simulate, AClusterOccupiesNeighbouringSms) {
  const Simulation s = simulated({.m = 1024, .n = 512, .k = 64}, "h10", {.kernel_name = "bf16_rc_coop_128x256x64_c2x1"});
  EXPECT_EQ(s.worker_count, 2);
  EXPECT_EQ(s.output_tiles, 16);
  EXPECT_EQ(s.waves, 4);
  EXPECT_DOUBLE_EQ(s.utilisation, 1.0);
  std::set<std::pair<int, int>> tiles;
  for (const Lane& lane : lanes(s))
    for (const LanePiece& piece : lane) tiles.insert({piece.tile_m, piece.tile_n});
  EXPECT_EQ(tiles.size(), 16u);  // the two SMs of a cluster compute different tiles
  for (const SimulatedPiece& piece : s.pieces) EXPECT_EQ(piece.sm, 2 * piece.worker);
}

// The striped partition: 24 k-tiles of six tiles on five SMs. Where each begins, in the order of the tiles.
TEST(Simulate, FiveRangesOfSixTilesAreStripes) {
  DeviceSpec five = find_device("h10").value();
  five.sm_count = 5;
  const PlanOptions options{.scheduler = SchedulerKind::stream_k, .raster = Rasterization::along_n, .kernel_name = kTile128};
  const Plan made = plan({.m = 256, .n = 384, .k = 256}, five, options).value();
  const Simulation s = simulate(made).value();
  EXPECT_EQ(s.output_tiles, 6);
  EXPECT_EQ(s.makespan, 1.25);
  std::vector<std::pair<int, int>> tiles;  // in the order in which they are walked
  for (int i = 0; i < 6; ++i) tiles.emplace_back(tile_at(made.scheduler, i).tile_m, tile_at(made.scheduler, i).tile_n);
  std::vector<int> first(5, 24), lengths(5, 0);
  for (const SimulatedPiece& piece : s.pieces) {
    const auto tile = std::find(tiles.begin(), tiles.end(), std::pair{piece.tile.tile_m, piece.tile.tile_n}) - tiles.begin();
    const auto sm = static_cast<std::size_t>(piece.sm);
    first[sm] = std::min(first[sm], static_cast<int>(tile) * 4 + piece.tile.k_begin);
    lengths[sm] += piece.tile.k_end - piece.tile.k_begin;
  }
  EXPECT_EQ(first, (std::vector<int>{0 * 4 + 0, 1 * 4 + 1, 2 * 4 + 2, 3 * 4 + 3, 5 * 4 + 0}));
  EXPECT_EQ(lengths, (std::vector<int>{5, 5, 5, 5, 4}));
}

TEST(Simulate, ASquareCohortSharesPanels) {
  DeviceSpec device = find_device("h200").value();
  device.sm_count = 64;
  device.clusters_of_2 = 32;
  const Simulation s = simulate(plan({.m = 8192, .n = 8192, .k = 64}, device, {.kernel_name = kTile128}).value()).value();
  std::set<int> rows, columns;
  for (const SimulatedPiece& piece : s.pieces)
    if (piece.begin == 0) rows.insert(piece.tile.tile_m), columns.insert(piece.tile.tile_n);
  EXPECT_EQ(rows.size(), 8u);
  EXPECT_EQ(columns.size(), 8u);
}

TEST(Simulate, SeventyTwoTilesLeaveSixtySmsIdleUnlessTheyAreCut) {
  const GemmProblem problem{.m = 1152, .n = 1024, .k = 4096};
  EXPECT_NEAR(simulated(problem, "h200", {.scheduler = SchedulerKind::data_parallel, .kernel_name = kTile128}).utilisation, 72.0 / 132,
              1e-12);
  EXPECT_GT(simulated(problem, "h200", {.scheduler = SchedulerKind::stream_k, .kernel_name = kTile128}).utilisation, 0.99);
}

TEST(Simulate, WithoutKTilesEachTileStillTakesItsTurn) {
  const Simulation s = simulated({.m = 384, .n = 384, .k = 256, .epilogue = {.alpha = 0, .beta = 1}}, "h10", {.kernel_name = kTile128});
  EXPECT_EQ(s.k_tiles, 0);
  EXPECT_EQ(s.output_tiles, 9);
  EXPECT_DOUBLE_EQ(s.makespan, 3.0);
}

TEST(Simulate, AnEmptyProblemIsAnEmptyPicture) {
  const Simulation s = simulated({.m = 0, .n = 384, .k = 64}, "h10", {});
  EXPECT_TRUE(s.pieces.empty());
  EXPECT_EQ(s.waves, 0);
  EXPECT_EQ(s.utilisation, 0);
  EXPECT_NE(to_text(s).find("0 tiles, 0 waves"), std::string::npos);
  EXPECT_NE(to_svg(s).find("</svg>"), std::string::npos);
}

TEST(Simulate, RefusesPlansThatDoNotFit) {
  Plan made = plan(kNineTiles, find_device("h10").value(), {.kernel_name = "bf16_rc_coop_128x256x64_c2x1"}).value();
  made.device.clusters_of_2 = 0;
  Result<Simulation> simulation = simulate(made);
  ASSERT_FALSE(simulation);
  EXPECT_EQ(simulation.error().code, ErrorCode::wrong_device);
  made.scheduler.tiles_n = 1;
  simulation = simulate(made);
  ASSERT_FALSE(simulation);
  EXPECT_NE(simulation.error().message.find("do not cover n = 384"), std::string::npos);
  const Result<Plan> huge = plan({.m = 1 << 19, .n = 1 << 19, .k = 64}, find_device("h200").value(), {.kernel_name = kTile128});
  ASSERT_TRUE(huge) << huge.error().message;
  simulation = simulate(*huge);
  ASSERT_FALSE(simulation);
  EXPECT_EQ(simulation.error().code, ErrorCode::too_large);
}

TEST(SimulateCoverage, SplitTilesAreCoveredByTheirPieces) {
  const Simulation s = stream_k_by_hand();
  EXPECT_EQ(s.makespan, 2.25);
  EXPECT_EQ(count_coverage(kThreeByThree, s.pieces), Coverage{});
}

TEST(SimulateCoverage, CountsWhatIsMissingAndWhatIsDoneTwice) {
  const std::vector<SimulatedPiece> all = stream_k_by_hand().pieces;
  std::vector<SimulatedPiece> pieces(all.begin() + 1, all.end());
  EXPECT_EQ(count_coverage(kThreeByThree, pieces), (Coverage{.uncovered = 4}));
  pieces = all;
  pieces[2].tile.k_end += 2;  // the quarter of tile (0,2) becomes three quarters: two k-tiles twice
  EXPECT_EQ(count_coverage(kThreeByThree, pieces), (Coverage{.repeated = 2}));
  pieces = all;
  pieces.push_back(all[0]);
  EXPECT_EQ(count_coverage(kThreeByThree, pieces), (Coverage{.repeated = 4}));
  pieces = all;
  pieces.push_back(all[0]);
  pieces.push_back(all[0]);
  pieces[pieces.size() - 2].tile.k_begin = 1, pieces[pieces.size() - 2].tile.k_end = 2;  // inside the whole tile
  pieces.back().tile.k_begin = 2;                                                        // and another part of it
  EXPECT_EQ(count_coverage(kThreeByThree, pieces), (Coverage{.repeated = 3}));
  pieces = all;
  pieces[0].tile.tile_m = 3;  // beyond the output
  EXPECT_EQ(count_coverage(kThreeByThree, pieces), (Coverage{.uncovered = 4, .repeated = 4}));
  pieces = all;
  pieces[1].tile.k_end = 6;  // beyond K
  EXPECT_EQ(count_coverage(kThreeByThree, pieces), (Coverage{.repeated = 2}));
}

TEST(SimulateCoverage, WithoutKTilesEachTileIsVisitedOnce) {
  SchedulerParams params = kThreeByThree;
  params.k_tiles = 0;
  std::vector<SimulatedPiece> pieces;
  for (int tile = 0; tile < 8; ++tile) pieces.push_back({0, 0, {tile / 3, tile % 3, 0, 0, 0}, 0, 0});
  EXPECT_EQ(count_coverage(params, pieces), (Coverage{.uncovered = 1}));
  pieces.push_back(pieces[0]);
  EXPECT_EQ(count_coverage(params, pieces), (Coverage{.uncovered = 1, .repeated = 1}));
}

TEST(SimulateText, DrawsALaneForEachSm) {
  const std::string text = to_text(simulated(kNineTiles, "h10", {.kernel_name = kTile128}), 80);
  EXPECT_NE(text.find("9 tiles, 3 waves, makespan 3.00 tiles, utilisation 75.0%, each k-tile computed once"), std::string::npos) << text;
  for (const char* lane : {"SM 0 |(0,0)", "SM 1 |", "SM 2 |", "SM 3 |"}) EXPECT_NE(text.find(lane), std::string::npos) << text;
  std::size_t idle = 0, begin = 0;
  for (std::size_t end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1)
    if (text.compare(begin, 3, "SM ") == 0) {
      EXPECT_EQ(end - begin, 80u) << text;
      idle += static_cast<std::size_t>(std::count(text.begin() + static_cast<long>(begin), text.begin() + static_cast<long>(end), '.'));
    }
  EXPECT_EQ(idle, 3u * 25) << text;  // three SMs idle for the last third of 74 columns
}

TEST(SimulateText, MoreTilesThanColumnsAndSplitTiles) {
  const std::string many = to_text(simulated({.m = 128 * 60, .n = 128 * 20, .k = 64}, "h10", {.kernel_name = kTile128}), 60);
  EXPECT_NE(many.find("300 waves"), std::string::npos);
  const std::string split = to_text(stream_k_by_hand(), 100);
  EXPECT_NE(split.find("(0,2) k1-3"), std::string::npos) << split;
  EXPECT_NE(split.find("makespan 2.25"), std::string::npos) << split;
}

TEST(SimulateText, SaysWhenAScheduleIsWrong) {
  Simulation s = stream_k_by_hand();
  s.uncovered_k_tiles = 1, s.repeated_k_tiles = 2;
  EXPECT_NE(to_text(s).find("WRONG: 1 k-tile not computed, 2 k-tiles computed again"), std::string::npos);
}

std::int64_t occurrences(const std::string& text, const std::string& word) {
  std::int64_t count = 0;
  for (std::size_t at = 0; (at = text.find(word, at)) != std::string::npos; at += word.size()) ++count;
  return count;
}

TEST(SimulateSvg, HasARectangleForEachTileAndStandsAlone) {
  const std::string svg = to_svg(simulated(kNineTiles, "h10", {.kernel_name = kTile128}));
  EXPECT_EQ(occurrences(svg, "<rect"), 1 + 4 + 9 + 1);  // background, lanes, tiles, legend
  EXPECT_EQ(occurrences(svg, ">(1,2)</text>"), 1);
  EXPECT_EQ(occurrences(svg, "utilisation 75.0%"), 1);
  EXPECT_EQ(occurrences(svg, "http"), 1);  // the name space, nothing to be fetched
  EXPECT_EQ(occurrences(svg, "<script"), 0);
  EXPECT_EQ(occurrences(svg, "->"), 0);  // escaped
}

TEST(SimulateSvg, ManySmsManyTilesAndClusters) {
  const Simulation s = simulated({.m = 16384, .n = 16384, .k = 512}, "h200", {.kernel_name = "bf16_rc_coop_128x256x64_c2x1"});
  const std::string svg = to_svg(s);
  EXPECT_EQ(occurrences(svg, ">SM "), 33);  // every fourth of 132
  EXPECT_EQ(occurrences(svg, "clusters of 2 x 1"), 1);
  EXPECT_GT(occurrences(svg, "<rect"), s.output_tiles);
  EXPECT_LT(svg.size(), 4u << 20);
}

TEST(SimulateSvg, PiecesOfATileShareAColour) {
  const std::string svg = to_svg(stream_k_by_hand());
  const auto colour_of = [&](const std::string& piece) {
    const std::size_t hint = svg.find("tile " + piece), fill = svg.rfind("fill=\"", hint);
    EXPECT_NE(hint, std::string::npos) << piece;
    return svg.substr(fill + 6, 7);
  };
  EXPECT_EQ(colour_of("(0,2) k0"), colour_of("(0,2) k1-3"));
  EXPECT_NE(colour_of("(0,2) k0"), colour_of("(0,1)"));
}

TEST(SimulateJson, HoldsWhatTheSimulationHolds) {
  const Simulation s = simulated(kNineTiles, "h10", {.kernel_name = kTile128});
  const nlohmann::json json = nlohmann::json::parse(to_json(s));
  EXPECT_EQ(json["waves"], 3);
  EXPECT_EQ(json["utilisation"], 0.75);
  EXPECT_EQ(json["pieces"].size(), 9u);
  EXPECT_EQ(json["pieces"][1]["sm"], s.pieces[1].sm);
  EXPECT_EQ(json["pieces"][1]["tile_m"], s.pieces[1].tile.tile_m);
  EXPECT_EQ(json["pieces"][1]["end"], s.pieces[1].end);
}

}  // namespace
}  // namespace sluice
