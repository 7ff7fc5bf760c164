// What holds for every schedule: each (tile, k-tile) is computed exactly once, in the documented order, near its neighbours.
#include <algorithm>
#include <cstdint>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "random_plans.hpp"
#include "scheduler/replay.hpp"
#include "scheduler/scheduler.hpp"
#include "scheduler/single_items.hpp"
#include "simulator/coverage.hpp"

namespace sluice {
namespace {

std::vector<WorkTile> tiles_of(const SchedulerParams& params, std::int32_t worker, std::int32_t workers) {
  std::vector<WorkTile> tiles;
  AnyScheduler scheduler(params, worker, workers);
  for (WorkTile tile; scheduler.next(tile);) tiles.push_back(tile);
  return tiles;
}

// From one worker to more than there are tiles.
std::int32_t any_worker_count(const SchedulerParams& params) { return *rc::gen::inRange(1, cluster_tiles(params) + 5); }

auto place(const WorkTile& tile) { return std::tie(tile.group, tile.tile_m, tile.tile_n); }

RC_GTEST_PROP(Schedule, TileOrderIsABijection, (const SchedulerParams& params)) {
  std::set<std::tuple<std::int32_t, std::int32_t, std::int32_t>> seen;
  for (std::int32_t index = 0; index < cluster_tiles(params); ++index) {
    const WorkTile tile = tile_at(params, index);
    RC_ASSERT(tile.tile_m >= 0 && tile.tile_m < params.tiles_m && tile.tile_m % params.cluster_m == 0);
    RC_ASSERT(tile.tile_n >= 0 && tile.tile_n < params.tiles_n && tile.tile_n % params.cluster_n == 0);
    RC_ASSERT(tile.group >= 0 && tile.group < params.groups);
    RC_ASSERT(tile.k_begin == 0);
    RC_ASSERT(tile.k_end == params.k_tiles);
    RC_ASSERT(seen.insert(place(tile)).second);
  }
  RC_ASSERT(static_cast<std::int64_t>(seen.size()) * params.cluster_m * params.cluster_n ==
            static_cast<std::int64_t>(params.tiles_m) * params.tiles_n * params.groups);
}

RC_GTEST_PROP(Schedule, EachKTileIsComputedOnce, (const SchedulerParams& params)) {
  const std::int32_t workers = any_worker_count(params);
  std::vector<SimulatedPiece> pieces;
  for (std::int32_t worker = 0; worker < workers; ++worker)
    for (const WorkTile& tile : tiles_of(params, worker, workers)) pieces.push_back({.worker = worker, .tile = tile});
  const Coverage coverage = count_coverage(params, pieces);
  RC_ASSERT(coverage.uncovered == 0);
  RC_ASSERT(coverage.repeated == 0);
}

RC_GTEST_PROP(Schedule, NoWorkerHasTwoTilesMoreThanAnother, (const SchedulerParams& params)) {
  const std::int32_t workers = any_worker_count(params);
  std::size_t least = static_cast<std::size_t>(cluster_tiles(params)), most = 0;
  for (std::int32_t worker = 0; worker < workers; ++worker) {
    const std::size_t count = tiles_of(params, worker, workers).size();
    least = std::min(least, count);
    most = std::max(most, count);
  }
  RC_ASSERT(most <= least + 1);
}

RC_GTEST_PROP(Schedule, WorkersOfACtaTakeTurnsAndEachItsOwnTiles, (const SchedulerParams& params)) {
  const std::int32_t units = any_worker_count(params);
  const std::int32_t workers = 2 * units;
  std::size_t all = 0;
  for (std::int32_t unit = 0; unit < units; ++unit) {
    std::vector<WorkTile> of_worker[2], in_order;
    InterleavedWork<AnyScheduler, 2> work(params, unit, units);
    WorkTile tile;
    for (int worker = 0, expected = 0; work.next(tile, worker); expected = 1 - worker) {
      RC_ASSERT(worker == expected);  // round robin deals alternately until the very end
      of_worker[worker].push_back(tile);
      in_order.push_back(tile);
    }
    RC_ASSERT(of_worker[0] == tiles_of(params, unit, workers));
    RC_ASSERT(of_worker[1] == tiles_of(params, unit + units, workers));
    // In the order of tile numbers, as one worker in the place of both would take them.
    RC_ASSERT(in_order == tiles_of(params, unit, units));
    all += in_order.size();
  }
  RC_ASSERT(all == static_cast<std::size_t>(cluster_tiles(params)));
}

RC_GTEST_PROP(Schedule, OneWorkerPerCtaInterleavesWithNobody, (const SchedulerParams& params)) {
  const std::int32_t units = any_worker_count(params);
  const std::int32_t unit = *rc::gen::inRange(0, units);
  std::vector<WorkTile> replayed;
  replay_unit(params, 1, unit, units, [&](const WorkTile& tile, int worker) {
    RC_ASSERT(worker == unit);
    replayed.push_back(tile);
  });
  RC_ASSERT(replayed == tiles_of(params, unit, units));
}

// The tiles in flight are a window of consecutive numbers. A full strip is `cohort` wide: w tiles of it span at most ceil(w / cohort) + 1
// steps along the strip, so that they read few panels of either operand, whatever the shape of the whole output.
RC_GTEST_PROP(Schedule, TilesInFlightFormABlock, (const SchedulerParams& params)) {
  const bool along_m = params.raster == Rasterization::along_m;
  const std::int32_t length = along_m ? clusters_m(params) : clusters_n(params);
  const std::int32_t across = along_m ? clusters_n(params) : clusters_m(params);
  const std::int32_t in_full_strips = across / params.cohort * params.cohort * length;  // the last strip may be narrower
  RC_PRE(in_full_strips > 0);
  const std::int32_t group = *rc::gen::inRange(0, params.groups);
  const std::int32_t begin = *rc::gen::inRange(0, in_full_strips);
  const std::int32_t end = std::min(in_full_strips, begin + *rc::gen::inRange(1, 200));

  std::set<std::int32_t> along, sides;
  for (std::int32_t i = begin; i < end; ++i) {
    const WorkTile tile = tile_at(params, group * cluster_tiles_per_group(params) + i);
    along.insert(along_m ? tile.tile_m : tile.tile_n);
    sides.insert(along_m ? tile.tile_n : tile.tile_m);
  }
  const std::int32_t window = end - begin;
  const std::int32_t strips = (end - 1) / (params.cohort * length) - begin / (params.cohort * length) + 1;
  RC_ASSERT(static_cast<std::int32_t>(sides.size()) <= strips * params.cohort);
  // A window over the end of one strip turns back beside itself: it does not jump to the other end.
  RC_ASSERT(static_cast<std::int32_t>(along.size()) <= (window + params.cohort - 1) / params.cohort + 1);
  const std::int32_t cluster = along_m ? params.cluster_m : params.cluster_n;
  RC_ASSERT(*along.rbegin() - *along.begin() == (static_cast<std::int32_t>(along.size()) - 1) * cluster);
}

RC_GTEST_PROP(Schedule, NeighboursInOrderAreNeighboursInTheOutput, (const SchedulerParams& params)) {
  const bool along_m = params.raster == Rasterization::along_m;
  const std::int32_t along_cluster = along_m ? params.cluster_m : params.cluster_n;
  for (std::int32_t index = 1; index < cluster_tiles_per_group(params); ++index) {
    const WorkTile before = tile_at(params, index - 1), tile = tile_at(params, index);
    const std::int32_t step = along_m ? tile.tile_m - before.tile_m : tile.tile_n - before.tile_n;
    RC_ASSERT(step == 0 || step == along_cluster || step == -along_cluster);
  }
}

}  // namespace
}  // namespace sluice
