// The dispatcher of grouped problems: it reads the groups' sizes, counts their tiles, and finds out for each tile to which group it
// belongs.
#pragma once

#include "kernel/dispatcher.cuh"
#include "scheduler/groups.hpp"

namespace sluice {

// What the device holds of a group. Where there is no such group the last one's is loaded: without a branch several loads are under way at
// once.
struct GroupNumbers {
  std::int32_t own, next;
};
SLUICE_DEVICE GroupNumbers numbers_of_group(const GroupParams& params, int group) {
  const std::int32_t* own = params.sizes + (group < params.count ? group : params.count - 1);
  return {arch::load_global(own), arch::load_global(own + (params.grouping == Grouping::masked ? 0 : 1))};
}
SLUICE_DEVICE GroupRange range_of_group(const GroupParams& params, int group, const GroupNumbers& numbers) {
  const GroupRange range = range_of_group(params.grouping, params.extent, numbers.own, numbers.next);
  return group < params.count ? range : GroupRange{};
}
SLUICE_DEVICE GroupRange range_of_group(const GroupParams& params, int group) {
  return range_of_group(params, group, numbers_of_group(params, group));
}

// The groups as they follow one another, 32 at a time, one for each lane of a warp. Used by the whole warp. Few registers: producers have
// few.
class GroupWindow {
 public:
  // Opens at the first groups, and counts the tiles of all.
  SLUICE_DEVICE GroupWindow(const GroupParams& params, int rows_per_cluster) : params_(params), rows_per_cluster_(rows_per_cluster) {
    constexpr int kAtOnce = 4;  // whose numbers a lane asks for before it waits: nobody has work until the last have come
    int sum = 0, of_first = 0;
    SLUICE_NO_UNROLL
    for (int first = arch::lane(); first < params_.count; first += 32 * kAtOnce) {
      GroupNumbers numbers[kAtOnce];
      SLUICE_UNROLL
      for (int i = 0; i < kAtOnce; ++i) numbers[i] = numbers_of_group(params_, first + 32 * i);
      SLUICE_UNROLL
      for (int i = 0; i < kAtOnce; ++i) {
        const int its = cluster_rows_of(range_of_group(params_, first + 32 * i, numbers[i]), rows_per_cluster_);
        if (i == 0 && first < 32) of_first = its;
        sum += its;
      }
    }
    all_ = arch::uniform(arch::warp_sum(sum));
    end_ = arch::prefix_sum(of_first);
  }

  // Rows of cluster tiles that all groups have together.
  SLUICE_DEVICE int cluster_rows() const { return all_; }

  // Whose a row of cluster tiles is; there must be such a row. Cheapest where rows rise from call to call.
  SLUICE_DEVICE GroupTiles find(int cluster_row) {
    int passed = arch::count_lanes(end_ <= cluster_row);
    if (passed == 0 && first_ > 0) {  // before this window, or in its first group
      open(0, 0);
      passed = arch::count_lanes(end_ <= cluster_row);
    }
    SLUICE_NO_UNROLL
    while (passed == 32) {
      open(first_ + 32, arch::from_lane(end_, 31));
      passed = arch::count_lanes(end_ <= cluster_row);
    }
    const GroupRange rows = rows_of(first_ + passed);
    const int cluster_rows = cluster_rows_of(rows, rows_per_cluster_);
    return {first_ + passed, arch::from_lane(end_, passed) - cluster_rows, cluster_rows, rows};
  }

 private:
  SLUICE_DEVICE GroupRange rows_of(int group) const { return range_of_group(params_, group); }

  // `before`: rows of cluster tiles of the groups before `first`.
  SLUICE_DEVICE void open(int first, int before) {
    first_ = first;
    end_ = before + arch::prefix_sum(cluster_rows_of(rows_of(first + arch::lane()), rows_per_cluster_));
  }

  const GroupParams& params_;
  const int rows_per_cluster_;
  int all_;
  int first_ = 0;  // group of lane 0
  int end_;        // behind this lane's group: rows of cluster tiles up to and with it
};

template <KernelConfig config>
class GroupedDispatcher {
 public:
  SLUICE_DEVICE GroupedDispatcher(const GemmParams& params, const WorkRing<config>& work, Tickets<config>& tickets)
      : params_(params), work_(work), tickets_(tickets) {}

  // By the whole warp.
  SLUICE_DEVICE void run() const {
    int item = Dispatcher<config>::unit();
    if constexpr (config.scope == KernelScope::groups) {  // others claim places for tiles of single products alone
      Places<config>::claim(params_.places, item);
      if (arch::lane() == 0) Places<config>::count(params_.places);
    }
    arch::wait_for_predecessor();
    if constexpr (computes_groups_along_k(config))
      if (params_.groups.grouping == Grouping::along_k) return run_along_k();
    GroupWindow groups(params_.groups, config.tile_m * config.cluster_m);
    const SchedulerParams scheduler = with_cluster_rows(params_.scheduler, groups.cluster_rows());
    const AnyItems<PlainDivisor> items(scheduler);
    typename WorkRing<config>::Position at;
    SLUICE_NO_UNROLL
    for (;; item += Dispatcher<config>::units()) {
      if (scheduler.claim == WorkClaim::ticket) item = next_ticket(items.count());
      if (item >= items.count()) break;
      const TilePiece piece = items.piece_at(arch::uniform(item), is_short(config));
      if (piece.peers == 0) continue;
      const GroupTiles group = groups.find(cluster_row_of(scheduler, piece));
      WorkTile tile = place_in_group(scheduler, piece, group);
      if constexpr (evens_out_rows(config)) {
        const GroupRange rows = rows_of_even_tile(group.rows, rows_of_step(config), group.cluster_rows, tile.tile_m);
        tile.first_row = rows.first - tile.tile_m * config.tile_m;  // from which of_this_cta() counts
        tile.row_end = rows.first + rows.count;
      }
      if (arch::lane() == 0)
        work_.put(work_.of_this_cta(tile), at);
      else
        at.advance();
    }
    if (arch::lane() == 0) work_.put_end(at);
  }

 private:
  // The tiles are a batch's; how much of K each has, its group says.
  SLUICE_DEVICE void run_along_k() const {
    const int items = params_.schedule.items.count();
    typename WorkRing<config>::Position at;
    int item = Dispatcher<config>::unit(), group = -1;
    GroupRange k;
    SLUICE_NO_UNROLL
    for (;; item += Dispatcher<config>::units()) {
      if (params_.scheduler.claim == WorkClaim::ticket) item = next_ticket(items);
      if (item >= items) break;
      WorkTile tile = params_.schedule.item_at(item);
      if (tile.group != group) {
        k = range_of_group(params_.groups, group = tile.group);
        if constexpr (promotes(config)) k = in_scale_blocks(k);
      }
      tile.row_end = params_.epilogue.m;
      give_k(params_.scheduler, config.tile_k, k, tile);
      if (arch::lane() == 0)
        work_.put(work_.of_this_cta(tile), at);
      else
        at.advance();
    }
    if (arch::lane() == 0) work_.put_end(at);
  }

  SLUICE_DEVICE int next_ticket(int items) const {
    int item = 0;
    if (arch::lane() == 0) item = tickets_.next(params_.reduction.counter, items);
    return arch::from_lane(item, 0);
  }

  const GemmParams& params_;
  const WorkRing<config>& work_;
  Tickets<config>& tickets_;
};

}  // namespace sluice
