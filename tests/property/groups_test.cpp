// What holds for the schedules of grouped problems, whatever the sizes of the groups that the device finds: all of each group is computed,
// once, within its rows, and within the room that the plan, which did not know the sizes, has reserved.
#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "core/check_scheduler.hpp"
#include "core/groups.hpp"
#include "core/kernel_layout.hpp"
#include "core/tile_parts.hpp"
#include "random_plans.hpp"
#include "scheduler/group_table.hpp"
#include "scheduler/single_items.hpp"
#include "scheduler/workspace.hpp"

namespace sluice {
namespace {

// From `least` to `most`, both included, whatever rapidcheck's size.
rc::Gen<std::int32_t> between(std::int32_t least, std::int32_t most) {
  return rc::gen::resize(rc::kNominalSize, rc::gen::inRange(least, most + 1));
}

using Sizes = std::vector<std::int32_t>;

struct Item {
  std::int32_t number;
  WorkTile tile;
};

// A plan, sizes that it has not seen, and what the kernel makes of both.
struct Grouped {
  Plan plan;
  Sizes sizes;
  GroupTable table;
  SchedulerParams schedule;
  std::vector<Item> items;  // with work

  Grouped(const Plan& made, const Sizes& groups)
      : plan(made),
        sizes(groups),
        table(made.problem, sizes.data(), made.kernel.tile_m * made.kernel.cluster_m),
        schedule(with_cluster_rows(made.scheduler, table.cluster_rows())) {
    for (std::int32_t i = 0; i < item_count(schedule); ++i) {
      const TilePiece piece = piece_at(schedule, i);
      if (piece.peers > 0) items.push_back({i, table.place(schedule, piece)});
    }
  }
};

// Rows of every group: none, few, about a tile, any; and now and then one that dwarfs the others.
Sizes random_rows(std::int32_t groups, std::int32_t tile_rows) {
  const int style = *between(0, 3);
  Sizes rows(static_cast<std::size_t>(groups));
  for (std::int32_t& r : rows) {
    const int drawn = style == 0 ? 0 : style == 1 ? 3 : *between(0, 3);
    r = drawn == 0 ? *between(0, 1) : drawn == 1 ? *between(1, 9) : drawn == 2 ? tile_rows + *between(-1, 1) : *between(0, 2 * tile_rows);
  }
  if (*between(0, 2) == 0) rows[static_cast<std::size_t>(*between(0, groups - 1))] = *between(0, 40 * tile_rows);
  return rows;
}

// Kernels that compute groups, and pieces of tiles if `cuts`.
const KernelConfig& random_kernel(bool cuts, bool ragged) {
  std::vector<const KernelConfig*> kernels;
  for (const KernelConfig& kernel : kernel_list())
    if (kernel.type_b != DataType::int4 && computes_groups(kernel) && (joins_pieces(kernel) || !cuts) &&
        (kernel.layout_a == Layout::row_major || !ragged))
      kernels.push_back(&kernel);
  return **rc::gen::elementOf(kernels);
}

// Any device, and ones of few SMs.
DeviceSpec random_sms() {
  DeviceSpec device = test::random_device();
  if (*between(0, 1) == 0) return device;
  device.sm_count = *between(4, 150);
  device.clusters_of_2 = device.sm_count / 2;
  return device;
}

struct Drawn {
  Plan plan;
  Sizes rows;  // of each group
};

Drawn random_plan() {
  PlanOptions options{.keep_candidates = false};
  options.scheduler =
      *rc::gen::element(SchedulerKind::data_parallel, SchedulerKind::split_k, SchedulerKind::stream_k, SchedulerKind::hybrid);
  const bool cuts = options.scheduler != SchedulerKind::data_parallel;
  options.claim = options.scheduler == SchedulerKind::split_k ? WorkClaim::ticket : *rc::gen::element(WorkClaim::fixed, WorkClaim::ticket);
  if (cuts) options.min_k_tiles = *between(0, 3);
  options.raster = *rc::gen::element(Rasterization::along_m, Rasterization::along_n);
  GemmProblem p;
  p.grouping = *rc::gen::element(Grouping::ragged, Grouping::masked);
  const bool ragged = p.grouping == Grouping::ragged;
  const KernelConfig& kernel = random_kernel(cuts, ragged);
  options.kernel_name = name(kernel);
  p.batch = *rc::gen::oneOf(between(1, 4), between(1, 40), between(1, 300));
  Sizes rows = random_rows(static_cast<std::int32_t>(p.batch), kernel.tile_m * kernel.cluster_m);
  // Room for them, and more.
  p.m = ragged ? std::accumulate(rows.begin(), rows.end(), std::int64_t{0}) : *std::max_element(rows.begin(), rows.end());
  p.m += *rc::gen::element(0, 1, 7, 500);
  if (p.m == 0) p.m = 1;
  p.n = *between(1, 3 * kernel.tile_n * kernel.cluster_n);
  p.k = *rc::gen::weightedOneOf<std::int32_t>(
      {{1, rc::gen::just(0)}, {8, between(1, 9 * kernel.tile_k)}, {2, between(1, 60 * kernel.tile_k)}});
  p.expected_rows = *rc::gen::element<std::int64_t>(0, 0, 1, 100, 100000);
  p.most_rows = *rc::gen::element<std::int64_t>(0, 0, 1, 100, 100000);  // a promise that groups may break
  p.type_a = kernel.type_a, p.type_b = kernel.type_b;
  p.layout_a = kernel.layout_a, p.layout_b = kernel.layout_b;
  const auto rounded = [](std::int64_t extent) { return std::max<std::int64_t>(16, (extent + 15) / 16 * 16); };
  p.lda = rounded(p.layout_a == Layout::row_major ? p.k : p.m);
  p.ldb = rounded(p.layout_b == Layout::row_major ? p.n : p.k);
  p.batch_stride_a = rounded(p.lda * (p.layout_a == Layout::row_major ? p.m : std::max<std::int64_t>(1, p.k)));
  const DeviceSpec device = random_sms();
  RC_LOG() << describe(p) << ", " << device.sm_count << " SMs, " << options.kernel_name << "\n";
  const Result<Plan> made = plan(p, device, options);
  // More flags or places than there are, clusters that do not fit.
  if (!made && (made.error().code == ErrorCode::too_large || made.error().code == ErrorCode::unsupported)) RC_DISCARD();
  if (!made) RC_FAIL(made.error().message);
  RC_LOG() << made->scheduler << "\n";
  return {*made, std::move(rows)};
}

Grouped random_grouped() {
  const auto [plan, rows] = random_plan();
  if (plan.problem.grouping == Grouping::masked) return {plan, rows};
  const std::int64_t spare = plan.problem.m - std::accumulate(rows.begin(), rows.end(), std::int64_t{0});
  Sizes offsets(1, *between(0, static_cast<std::int32_t>(spare)));
  for (const std::int32_t r : rows) offsets.push_back(offsets.back() + r);
  return {plan, offsets};
}

using Place = std::tuple<std::int32_t, std::int32_t, std::int32_t>;
Place place(const WorkTile& tile) { return {tile.group, tile.tile_m, tile.tile_n}; }

std::map<Place, std::vector<Item>> pieces_of_tiles(const Grouped& grouped) {
  std::map<Place, std::vector<Item>> tiles;
  for (const Item& item : grouped.items) tiles[place(item.tile)].push_back(item);
  for (auto& [at, pieces] : tiles)
    std::sort(pieces.begin(), pieces.end(), [](const Item& x, const Item& y) { return x.tile.peer < y.tile.peer; });
  return tiles;
}

// The tiles that the groups have, by the definition of a group.
std::set<Place> tiles_of_groups(const Grouped& grouped) {
  const auto& [problem, kernel] = std::tie(grouped.plan.problem, grouped.plan.kernel);
  std::set<Place> tiles;
  for (std::int32_t g = 0; g < problem.batch; ++g)
    for (std::int32_t row = 0; row < range_of_group(problem, grouped.sizes.data(), g).count; row += kernel.tile_m * kernel.cluster_m)
      for (std::int32_t column = 0; column < problem.n; column += kernel.tile_n * kernel.cluster_n)
        tiles.insert({g, row / kernel.tile_m, column / kernel.tile_n});
  return tiles;
}

RC_GTEST_PROP(GroupedSchedule, EachKTileOfEachGroupIsComputedOnce, ()) {
  const Grouped grouped = random_grouped();
  const std::map<Place, std::vector<Item>> tiles = pieces_of_tiles(grouped);
  for (const auto& [at, pieces] : tiles) {
    std::int32_t k = 0;
    for (const Item& piece : pieces) {
      RC_ASSERT(piece.tile.k_begin == k);
      RC_ASSERT(piece.tile.k_end > k || grouped.schedule.k_tiles == 0);
      k = piece.tile.k_end;
    }
    RC_ASSERT(k == grouped.schedule.k_tiles);
  }
  std::set<Place> computed;
  for (const auto& [at, pieces] : tiles) computed.insert(at);
  RC_ASSERT(computed == tiles_of_groups(grouped));
}

RC_GTEST_PROP(GroupedSchedule, OnePieceFinishesATileAndWaitsForLowerItems, ()) {
  const Grouped grouped = random_grouped();
  const std::int32_t units = grouped.plan.worker_count / workers_per_cta(grouped.plan.kernel);
  for (const auto& [at, pieces] : pieces_of_tiles(grouped)) {
    std::int32_t finishers = 0;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      const WorkTile& tile = pieces[i].tile;
      RC_ASSERT(tile.peer == static_cast<std::int32_t>(i));
      RC_ASSERT(tile.peers == static_cast<std::int32_t>(pieces.size()));
      if (tile.peer + 1 == tile.peers) ++finishers;
      if (i == 0) continue;
      RC_ASSERT(pieces[i - 1].number < pieces[i].number);
      // Dealt out: a cluster that has started waits for none that has not.
      if (grouped.schedule.claim == WorkClaim::fixed) RC_ASSERT(pieces[i - 1].number % units <= pieces[i].number % units);
    }
    RC_ASSERT(finishers == 1);
  }
}

// What the kernel takes from the plan's own schedule, made before any size was known (PartialSums).
void check_room(const Grouped& grouped) {
  const SchedulerParams& planned = grouped.plan.scheduler;
  const KernelConfig& kernel = grouped.plan.kernel;
  const std::int64_t parts = parts_per_cluster_tile(kernel);
  RC_ASSERT(item_count(grouped.schedule) <= kMostItems);
  std::map<std::int32_t, Place> flags;
  std::set<std::int32_t> deposits;
  for (const auto& [number, tile] : grouped.items) {
    RC_ASSERT((tile.split_tile >= 0) == (tile.peers > 1));
    if (tile.peers == 1) continue;
    RC_ASSERT(tile.split_tile < split_tile_count(planned));
    RC_ASSERT((tile.split_tile + 1) * parts <= kMostFlags);
    RC_ASSERT(flags.emplace(tile.split_tile, place(tile)).first->second == place(tile));
    if (tile.peer + 1 == tile.peers) continue;  // keeps its own sums
    const std::int32_t at = deposit_place(tile, tile.peer, deposit_step(planned));
    RC_ASSERT(at >= 0 && at < deposit_count(planned));
    RC_ASSERT(deposits.insert(at).second);
    RC_ASSERT(static_cast<std::size_t>(kFlagBytes + (at + 1) * parts * part_elems(kernel) * 4) <= grouped.plan.workspace_bytes);
  }
}

RC_GTEST_PROP(GroupedSchedule, PiecesStayInTheRoomThatThePlanReserved, ()) { check_room(random_grouped()); }

void check_rows(const Grouped& grouped) {
  const GemmProblem& problem = grouped.plan.problem;
  for (const auto& [number, tile] : grouped.items) {
    RC_ASSERT(tile.group >= 0 && tile.group < problem.batch);
    const GroupRange rows = range_of_group(problem, grouped.sizes.data(), tile.group);
    RC_ASSERT(tile.first_row == rows.first);
    RC_ASSERT(tile.row_end == rows.first + rows.count);
    RC_ASSERT(tile.row_end <= problem.m);
    RC_ASSERT(tile.first_row + tile.tile_m * grouped.plan.kernel.tile_m < tile.row_end);  // each has a row at least
    RC_ASSERT(tile.tile_n * grouped.plan.kernel.tile_n < problem.n);
  }
}

RC_GTEST_PROP(GroupedSchedule, TilesLieWithinTheRowsOfTheirGroup, ()) { check_rows(random_grouped()); }

// Tiles of even rows: one behind the other, none empty, none taller than a tile, and none a whole step taller than another.
RC_GTEST_PROP(GroupedSchedule, EvenTilesShareOutTheRowsOfAGroup, ()) {
  const auto [tile_m, step] = *rc::gen::element(std::pair{192, kWgmmaRows}, std::pair{256, kWgmmaRows}, std::pair{kWidestQ, kWidthStep});
  const std::int32_t count = *rc::gen::oneOf(between(1, 2000), between(1, 1 << 30));
  const GroupRange rows{*between(0, 1000), count};
  const std::int32_t tiles = cluster_rows_of(rows, tile_m), steps_at_most = tile_m / step;
  const std::int32_t fewest = (count + step - 1) / step / tiles;
  const std::int32_t first = std::max(0, *between(0, tiles - 1) - 20), last = std::min(tiles, first + 40);
  std::int32_t next = first == 0 ? rows.first : rows_of_even_tile(rows, step, tiles, first).first;
  for (std::int32_t tile = first; tile < last; ++tile) {
    const GroupRange its = rows_of_even_tile(rows, step, tiles, tile);
    RC_ASSERT(its.first == next && (its.first - rows.first) % step == 0);
    next = its.first + its.count;
    const std::int32_t steps = (its.count + step - 1) / step;
    RC_ASSERT(its.count > 0 && steps <= steps_at_most && steps >= fewest && steps <= fewest + 1);
  }
  if (last == tiles) RC_ASSERT(next == rows.first + count);
}

// The plan counts the most tiles that there can be, and not many more.
RC_GTEST_PROP(GroupedSchedule, ThePlanHasRoomForTheTilesAndNotForManyMore, ()) {
  const Grouped grouped = random_grouped();
  const GemmProblem& problem = grouped.plan.problem;
  RC_ASSERT(grouped.table.cluster_rows() <= clusters_m(grouped.plan.scheduler));
  RC_ASSERT(grouped.schedule.stream_k_tiles <= grouped.plan.scheduler.stream_k_tiles);  // whose k-tiles were checked to fit 32 bits
  const std::int64_t rows = std::int64_t{grouped.plan.kernel.tile_m} * grouped.plan.kernel.cluster_m;
  const std::int64_t most = problem.grouping == Grouping::ragged ? problem.m / rows + std::min(problem.batch, problem.m)
                                                                 : (problem.m + rows - 1) / rows * problem.batch;
  RC_ASSERT(clusters_m(grouped.plan.scheduler) == most);
}

// Numbers that are no sizes: nothing outside of the matrices and of the workspace is touched.
RC_GTEST_PROP(GroupedSchedule, WildSizesStayWithinTheMatrices, ()) {
  const Plan plan = random_plan().plan;
  const auto m = static_cast<std::int32_t>(plan.problem.m);
  Sizes sizes(static_cast<std::size_t>(group_numbers(plan.problem)));
  for (std::int32_t& size : sizes) size = *rc::gen::oneOf(between(0, m), between(-m, 2 * m), rc::gen::element(INT32_MIN, INT32_MAX));
  const Grouped grouped(plan, sizes);
  RC_ASSERT(cluster_tiles(grouped.schedule) <= cluster_tiles(plan.scheduler));
  check_rows(grouped);
  check_room(grouped);
}

}  // namespace
}  // namespace sluice
