// What holds for schedules that cut tiles in k, whatever the shape: each k-tile once, each tile finished once, waits that cannot stall,
// work shared out evenly.
#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "core/check_scheduler.hpp"
#include "random_plans.hpp"
#include "scheduler/replay.hpp"
#include "scheduler/workspace.hpp"
#include "simulator/coverage.hpp"

namespace sluice {
namespace {

// A schedule and the number of clusters it is for.
struct Dealt {
  SchedulerParams params;
  std::int32_t units = 1;
};

// From `least` to `most`, both included. rapidcheck would begin with small numbers, which cut few tiles.
rc::Gen<std::int32_t> between(std::int32_t least, std::int32_t most) {
  return rc::gen::resize(rc::kNominalSize, rc::gen::inRange(least, most + 1));
}

// With the reduction through the workspace alone pieces wait for one another in the order of their items.
enum class Reductions { all, workspace };

// Pieces that meet in slices or in a cluster, or in the workspace after all.
void meet_at_random(SchedulerParams& p, std::int32_t most_splits) {
  p.reduction = *rc::gen::element(Reduction::workspace, Reduction::separate, Reduction::cluster);
  if (p.reduction == Reduction::workspace) return;
  if (p.reduction == Reduction::cluster) p.splits = most_splits >= 8 ? *rc::gen::element(2, 4, 8) : most_splits >= 4 ? 4 : 2;
  p.claim = WorkClaim::fixed;
  p.tiles_m /= p.cluster_m, p.tiles_n /= p.cluster_n;
  p.cluster_m = p.cluster_n = 1;
}

// Of any of the kinds that cut tiles; valid by construction, which check_scheduler() confirms.
Dealt random_dealt(Reductions reductions) {
  SchedulerParams p;
  p.kind = *rc::gen::element(SchedulerKind::split_k, SchedulerKind::stream_k, SchedulerKind::hybrid);
  p.raster = *rc::gen::element(Rasterization::along_m, Rasterization::along_n);
  p.claim = *rc::gen::element(WorkClaim::fixed, WorkClaim::ticket);
  p.cluster_m = *between(1, 2);
  p.cluster_n = *between(1, 2);
  p.tiles_m = p.cluster_m * *between(1, 11);
  p.tiles_n = p.cluster_n * *between(1, 7);
  p.groups = *between(1, 2);
  p.cohort = *between(1, 4);
  p.k_tiles = *rc::gen::weightedOneOf<std::int32_t>({{1, rc::gen::just(0)}, {12, between(1, 9)}, {12, between(1, 90)}});
  p.min_k_tiles = *rc::gen::oneOf(rc::gen::just(1), between(1, 11));
  const std::int32_t tiles = cluster_tiles(p);
  if (p.kind == SchedulerKind::split_k) {
    const std::int32_t most = std::max(1, p.k_tiles / p.min_k_tiles);
    p.splits = *between(1, most);
    if (reductions == Reductions::all && most >= 2) meet_at_random(p, most);
    if (p.reduction != Reduction::workspace) return {p, cluster_tiles(p) * p.splits};
    if (p.splits > 1) p.lead = *rc::gen::oneOf(rc::gen::just(0), between(0, p.k_tiles - p.splits * p.min_k_tiles));
    const std::int32_t items = tiles * p.splits;
    std::int32_t units = *between(1, items + 3 - 1);
    if (p.claim == WorkClaim::fixed && fixed_claim_can_stall(p, units)) units = items;
    return {p, units};
  }
  p.stream_k_ranges = *rc::gen::oneOf(between(1, 11), between(1, 150));
  if (*between(0, 2) == 0 && p.k_tiles > 0) {  // regions, as many as the tiles or a part of them
    p.stream_k_regions = *between(1, tiles);
    p.stream_k_ranges = p.stream_k_regions * *between(1, 5);
  }
  if (p.k_tiles > 0)
    p.stream_k_tiles = p.kind == SchedulerKind::stream_k ? tiles : *between(0, tiles / p.stream_k_regions) * p.stream_k_regions;
  if (p.kind == SchedulerKind::stream_k && p.stream_k_tiles % p.stream_k_regions != 0) {
    p.stream_k_ranges /= p.stream_k_regions;
    p.stream_k_regions = 1;
  }
  return {p, p.stream_k_ranges};
}

Dealt random_valid(Reductions reductions = Reductions::all) {
  const Dealt dealt = random_dealt(reductions);
  RC_LOG() << dealt.params << ", " << dealt.units << " clusters\n";
  const Status status = check_scheduler(dealt.params, dealt.units);
  if (!status) RC_FAIL(status.error().message);
  return dealt;
}

std::vector<WorkTile> items_of(const SchedulerParams& p) {
  std::vector<WorkTile> items;
  for (std::int32_t i = 0; i < item_count(p); ++i) items.push_back(item_at(p, i));
  return items;
}

using Place = std::tuple<std::int32_t, std::int32_t, std::int32_t>;
Place place(const WorkTile& tile) { return {tile.group, tile.tile_m, tile.tile_n}; }

// Tiles with the numbers of their items.
std::map<Place, std::vector<std::int32_t>> items_by_tile(const std::vector<WorkTile>& items) {
  std::map<Place, std::vector<std::int32_t>> tiles;
  for (std::size_t i = 0; i < items.size(); ++i)
    if (items[i].peers > 0) tiles[place(items[i])].push_back(static_cast<std::int32_t>(i));
  return tiles;
}

// The item that each item waits for.
std::vector<std::optional<std::int32_t>> waits_of(const std::vector<WorkTile>& items) {
  std::vector<std::optional<std::int32_t>> waits(items.size());
  for (const auto& [at, numbers] : items_by_tile(items))
    for (const std::int32_t i : numbers)
      for (const std::int32_t j : numbers)
        if (items[static_cast<std::size_t>(j)].peer + 1 == items[static_cast<std::size_t>(i)].peer) waits[static_cast<std::size_t>(i)] = j;
  return waits;
}

RC_GTEST_PROP(SplitSchedule, EachKTileIsComputedOnce, ()) {
  const SchedulerParams p = random_valid().params;
  std::vector<SimulatedPiece> pieces;
  for (const WorkTile& item : items_of(p))
    if (item.peers > 0) pieces.push_back({.tile = item});
  RC_ASSERT(count_coverage(p, pieces) == Coverage{});
}

RC_GTEST_PROP(SplitSchedule, PiecesAreNumberedAlongKAndTheLastFinishes, ()) {
  const SchedulerParams p = random_valid().params;
  const std::vector<WorkTile> items = items_of(p);
  std::map<std::int32_t, Place> tile_at_split;
  for (const auto& [at, numbers] : items_by_tile(items)) {
    std::vector<WorkTile> pieces;
    for (const std::int32_t i : numbers) pieces.push_back(items[static_cast<std::size_t>(i)]);
    std::sort(pieces.begin(), pieces.end(), [](const WorkTile& x, const WorkTile& y) { return x.k_begin < y.k_begin; });
    std::int32_t k = 0, peer = 0, finishers = 0;
    for (const WorkTile& piece : pieces) {
      RC_ASSERT(piece.peers == static_cast<std::int32_t>(pieces.size()));
      RC_ASSERT(piece.peer == peer++);
      RC_ASSERT(piece.k_begin == k);
      k = piece.k_end;
      if (piece.peer == piece.peers - 1) ++finishers;
      RC_ASSERT(piece.split_tile == pieces.front().split_tile);
      RC_ASSERT((piece.split_tile >= 0) == (piece.peers > 1));
      RC_ASSERT(p.reduction == Reduction::cluster || piece.split_tile < split_tile_count(p));
    }
    RC_ASSERT(k == p.k_tiles);
    RC_ASSERT(finishers == 1);
    // A place in the workspace belongs to one tile.
    if (pieces.size() > 1) RC_ASSERT(tile_at_split.emplace(pieces.front().split_tile, at).second);
  }
}

// Pieces leave their sums where nobody else does, within the workspace. Through it the last one keeps its own; in slices none does.
RC_GTEST_PROP(SplitSchedule, EveryPieceLeavesItsSumsInAPlaceOfItsOwn, ()) {
  const SchedulerParams p = random_valid().params;
  if (p.reduction == Reduction::cluster) {
    RC_ASSERT(deposit_count(p) == 0 && split_tile_count(p) == 0);
    return;
  }
  std::set<std::int32_t> places;
  for (const WorkTile& item : items_of(p)) {
    if (item.peers <= 1 || (p.reduction == Reduction::workspace && item.peer + 1 == item.peers)) continue;
    const std::int32_t at = deposit_place(item, item.peer, deposit_step(p));
    RC_ASSERT(at >= 0 && at < deposit_count(p));
    RC_ASSERT(places.insert(at).second);
  }
}

// Clusters are neighbouring CTAs, one for each item.
RC_GTEST_PROP(SplitSchedule, PiecesThatMeetInAClusterAreNeighbours, ()) {
  SchedulerParams p{.kind = SchedulerKind::split_k, .tiles_m = *between(1, 9), .tiles_n = *between(1, 7), .cohort = *between(1, 4)};
  p.reduction = Reduction::cluster;
  p.splits = *rc::gen::element(2, 4, 8);
  p.k_tiles = *between(p.splits, 90);
  const std::vector<WorkTile> items = items_of(p);
  RC_ASSERT(check_scheduler(p, static_cast<std::int64_t>(items.size())).ok());
  RC_ASSERT(!check_scheduler(p, static_cast<std::int64_t>(items.size()) - 1).ok());
  for (std::size_t i = 0; i < items.size(); ++i) {
    const std::size_t rank = i % static_cast<std::size_t>(p.splits);
    RC_ASSERT(items[i].peer == static_cast<std::int32_t>(rank));
    RC_ASSERT(place(items[i]) == place(items[i - rank]));
  }
}

RC_GTEST_PROP(SplitSchedule, AnItemWaitsForLowerNumbersOnly, ()) {
  const std::vector<std::optional<std::int32_t>> waits = waits_of(items_of(random_valid(Reductions::workspace).params));
  for (std::size_t i = 0; i < waits.size(); ++i)
    if (waits[i]) RC_ASSERT(*waits[i] < static_cast<std::int32_t>(i));
}

RC_GTEST_PROP(SplitSchedule, NoPieceIsShorterThanTheLeast, ()) {
  const SchedulerParams p = random_valid().params;
  for (const WorkTile& item : items_of(p))
    if (item.peers > 1) RC_ASSERT(item.k_end - item.k_begin >= p.min_k_tiles);
}

// The last piece is longer by the lead than it would be without one, and the others differ by one k-tile at most.
RC_GTEST_PROP(SplitSchedule, TheLastPieceIsLongerByTheLead, ()) {
  SchedulerParams p{.kind = SchedulerKind::split_k, .tiles_m = *between(1, 5), .tiles_n = *between(1, 5)};
  p.splits = *between(2, 9);
  p.k_tiles = *between(p.splits, 90);
  p.lead = *between(0, p.k_tiles - p.splits);
  const std::int32_t share = (p.k_tiles - p.lead) / p.splits;
  for (const WorkTile& item : items_of(p)) {
    const std::int32_t length = item.k_end - item.k_begin - (item.peer + 1 == item.peers ? p.lead : 0);
    RC_ASSERT(length == share || length == share + 1);
  }
  p.lead = p.k_tiles - p.splits + 1;
  RC_ASSERT(!check_scheduler(p, cluster_tiles(p) * p.splits).ok());
}

// The items of each cluster under fixed claim, with their numbers.
std::vector<std::vector<std::int32_t>> dealt_items(const Dealt& dealt) {
  std::vector<std::vector<std::int32_t>> of_unit(static_cast<std::size_t>(dealt.units));
  const std::vector<WorkTile> items = items_of(dealt.params);
  for (std::size_t i = 0; i < items.size(); ++i)
    if (items[i].peers > 0) of_unit[i % of_unit.size()].push_back(static_cast<std::int32_t>(i));
  return of_unit;
}

RC_GTEST_PROP(SplitSchedule, ASchedulerDealsTheItemsInFixedTurn, ()) {
  const Dealt dealt = random_valid();
  const auto of_unit = dealt_items(dealt);
  const int workers = *rc::gen::inRange(1, 3);
  for (std::int32_t unit = 0; unit < dealt.units; ++unit) {
    std::size_t count = 0;
    const auto& mine = of_unit[static_cast<std::size_t>(unit)];
    replay_unit(dealt.params, workers, unit, dealt.units, [&](const WorkTile& tile, int worker) {
      RC_ASSERT(count < mine.size());
      RC_ASSERT(tile == item_at(dealt.params, mine[count]));
      RC_ASSERT(worker == unit + static_cast<int>(count) % workers * dealt.units);
      ++count;
    });
    RC_ASSERT(count == mine.size());
  }
}

RC_GTEST_PROP(SplitSchedule, StreamKSharesOutTheWorkEvenly, ()) {
  Dealt dealt = random_valid();
  RC_PRE(dealt.params.kind != SchedulerKind::split_k);
  dealt.params.min_k_tiles = 1;
  const std::int32_t cut_k_tiles = dealt.params.stream_k_tiles / dealt.params.stream_k_regions * dealt.params.k_tiles;
  // Only the tiles that are cut.
  std::set<Place> region;
  for (std::int32_t i = 0; i < dealt.params.stream_k_tiles; ++i) region.insert(place(tile_at(dealt.params, i)));
  std::int32_t least = cut_k_tiles, most = 0;
  const std::vector<std::vector<std::int32_t>> of_unit = dealt_items(dealt);
  for (const auto& mine : of_unit) {
    std::int32_t sum = 0, cut = 0, whole = 0;
    for (const std::int32_t i : mine) {
      const WorkTile tile = item_at(dealt.params, i);
      if (tile.peers > 1) ++cut;
      if (region.contains(place(tile))) {
        sum += tile.k_end - tile.k_begin;
      } else {
        RC_ASSERT(tile.peers == 1);
        ++whole;
      }
    }
    RC_ASSERT(cut <= 2);
    const std::int32_t uncut = cluster_tiles(dealt.params) - dealt.params.stream_k_tiles;
    RC_ASSERT(whole == uncut / dealt.units || whole == uncut / dealt.units + (uncut % dealt.units == 0 ? 0 : 1));
    least = std::min(least, sum);
    most = std::max(most, sum);
  }
  RC_ASSERT(most - least <= 1);
}

// Clusters start in the order of their numbers, `resident` at a time, and leave when all their pieces are done. Each has workers that
// take its items in turn; a worker is busy with an item until the item's wait is over. Who moves next is up to an adversary. Returns
// the number of items that got done.
std::size_t run_with_residents(const Dealt& dealt, std::int32_t resident, std::size_t workers, std::uint32_t seed) {
  struct Unit {
    std::int32_t number;
    std::size_t taken = 0;
    std::vector<std::optional<std::int32_t>> busy;
  };
  const std::vector<WorkTile> items = items_of(dealt.params);
  const auto waits = waits_of(items);
  const auto of_unit = dealt_items(dealt);
  std::vector<bool> done(items.size());
  std::size_t ticket = 0, finished = 0;
  std::int32_t started = 0;
  std::vector<Unit> on_device;
  std::mt19937 adversary(seed);

  const auto take = [&](Unit& unit) -> std::optional<std::int32_t> {
    if (dealt.params.claim == WorkClaim::ticket) {
      while (ticket < items.size() && items[ticket].peers == 0) ++ticket;
      return ticket < items.size() ? std::optional(static_cast<std::int32_t>(ticket++)) : std::nullopt;
    }
    const auto& mine = of_unit[static_cast<std::size_t>(unit.number)];
    return unit.taken < mine.size() ? std::optional(mine[unit.taken]) : std::nullopt;
  };
  // One step of a unit: a worker finishes, or the one whose turn it is takes an item. False if neither can.
  const auto step = [&](Unit& unit) {
    const std::size_t first = adversary() % workers;
    for (std::size_t i = 0; i < workers; ++i) {
      std::optional<std::int32_t>& item = unit.busy[(first + i) % workers];
      if (!item) continue;
      const auto wait = waits[static_cast<std::size_t>(*item)];
      if (wait && !done[static_cast<std::size_t>(*wait)]) continue;
      done[static_cast<std::size_t>(*item)] = true;
      ++finished;
      item.reset();
      return true;
    }
    std::optional<std::int32_t>& turn = unit.busy[unit.taken % workers];
    if (turn) return false;
    turn = take(unit);
    if (turn) ++unit.taken;
    return turn.has_value();
  };

  for (bool moved = true; moved;) {
    moved = false;
    while (static_cast<std::int32_t>(on_device.size()) < resident && started < dealt.units)
      on_device.push_back({.number = started++, .busy = std::vector<std::optional<std::int32_t>>(workers)});
    std::shuffle(on_device.begin(), on_device.end(), adversary);
    for (auto unit = on_device.begin(); unit != on_device.end();) {
      // The adversary lets one run far ahead of the others.
      std::size_t steps = adversary() % 4 == 0 ? 1000 : 1 + adversary() % 3;
      bool could = false;
      while (steps-- > 0 && step(*unit)) could = true;
      moved = moved || could;
      const bool idle = std::none_of(unit->busy.begin(), unit->busy.end(), [](const auto& item) { return item.has_value(); });
      const bool leaves = !could && idle;  // nothing left to take
      moved = moved || leaves;
      unit = leaves ? on_device.erase(unit) : unit + 1;
    }
  }
  return finished;
}

RC_GTEST_PROP(SplitSchedule, NothingStallsWhenOnlySomeClustersAreResident, ()) {
  const Dealt dealt = random_valid(Reductions::workspace);
  std::size_t work = 0;
  for (const WorkTile& item : items_of(dealt.params)) work += item.peers > 0 ? 1 : 0;
  const std::size_t workers = *rc::gen::inRange<std::size_t>(1, 3);
  const std::uint32_t seed = *rc::gen::arbitrary<std::uint32_t>();
  std::set<std::int32_t> residents{1, 2, dealt.units, *rc::gen::inRange(1, dealt.units + 1)};
  for (const std::int32_t resident : residents) {
    RC_LOG() << resident << " resident, " << workers << " workers\n";
    RC_ASSERT(run_with_residents(dealt, resident, workers, seed) == work);
  }
}

// The rule is needed: without it there are split-K schedules that stall.
TEST(SplitSchedule, FixedTurnCanStallUnderSplitK) {
  const Dealt dealt{{.kind = SchedulerKind::split_k, .tiles_m = 3, .tiles_n = 1, .k_tiles = 4, .splits = 2}, 4};
  EXPECT_TRUE(fixed_claim_can_stall(dealt.params, dealt.units));
  EXPECT_FALSE(check_scheduler(dealt.params, dealt.units));
  EXPECT_EQ(run_with_residents(dealt, 4, 1, 0), 6u);
  EXPECT_LT(run_with_residents(dealt, 1, 1, 0), 6u);
}

}  // namespace
}  // namespace sluice
