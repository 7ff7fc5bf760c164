// The dispatcher of general groups: it reads how many tiles each group has, and finds out for each item which group's tile it is.
#pragma once

#include "arch/arch.cuh"
#include "kernel/dispatcher.cuh"
#include "kernel/general/general_params.cuh"
#include "kernel/tickets.cuh"
#include "kernel/work_ring.cuh"

namespace sluice {

// The groups as they follow one another, 32 at a time, one for each lane of a warp, as GroupWindow has those of rows. Used by the whole
// warp.
class TileWindow {
 public:
  SLUICE_DEVICE explicit TileWindow(const GeneralGroups& groups) : groups_(groups) { open(0, 0); }

  // Cluster tiles that all groups have together.
  SLUICE_DEVICE int all() const {
    int sum = 0;
    SLUICE_NO_UNROLL
    for (int group = arch::lane(); group < groups_.count; group += 32) sum += tiles_of(group);
    return arch::warp_sum(sum);
  }

  // Whose tile number `index` is, and how many tiles lie before that group's first. There must be such a tile. Cheapest where they rise
  // from call to call.
  SLUICE_DEVICE int find(int index, int& before) {
    int passed = arch::count_lanes(end_ <= index);
    if (passed == 0 && first_ > 0) {  // before this window, or in its first group
      open(0, 0);
      passed = arch::count_lanes(end_ <= index);
    }
    SLUICE_NO_UNROLL
    while (passed == 32) {
      open(first_ + 32, arch::from_lane(end_, 31));
      passed = arch::count_lanes(end_ <= index);
    }
    before = arch::from_lane(end_, passed) - tiles_of(first_ + passed);
    return first_ + passed;
  }

 private:
  SLUICE_DEVICE int tiles_of(int group) const { return group < groups_.count ? arch::load_global(&groups_.sizes[group].cluster_tiles) : 0; }

  // `before`: tiles of the groups before `first`.
  SLUICE_DEVICE void open(int first, int before) {
    first_ = first;
    end_ = before + arch::prefix_sum(tiles_of(first + arch::lane()));
  }

  const GeneralGroups& groups_;
  int first_;  // group of lane 0
  int end_;    // behind this lane's group: tiles up to and with it
};

template <KernelConfig config>
class GeneralDispatcher {
 public:
  SLUICE_DEVICE GeneralDispatcher(const GeneralGemmParams& params, const WorkRing<config>& work, Tickets<config>& tickets)
      : params_(params), work_(work), tickets_(tickets) {}

  // By the whole warp.
  SLUICE_DEVICE void run() const {
    arch::wait_for_predecessor();
    TileWindow groups(params_.general);
    const int items = arch::uniform(groups.all());
    typename WorkRing<config>::Position at;
    int item = Dispatcher<config>::unit();
    SLUICE_NO_UNROLL
    for (;; item += Dispatcher<config>::units()) {
      if (params_.scheduler.claim == WorkClaim::ticket) item = next_ticket(items);
      if (item >= items) break;
      int before = 0;
      const int group = arch::uniform(groups.find(item, before));
      const GroupSizes sizes = arch::load_global(&params_.general.sizes[group]);
      const WorkTile tile = tile_of_group(params_.scheduler, params_.general.tile, group, sizes, arch::uniform(item - before));
      if (arch::lane() == 0)
        work_.put(work_.of_this_cta(tile), at);
      else
        at.advance();
    }
    if (arch::lane() == 0) work_.put_end(at);
  }

 private:
  SLUICE_DEVICE int next_ticket(int items) const {
    int item = 0;
    if (arch::lane() == 0) item = tickets_.next(params_.reduction.counter, items);
    return arch::from_lane(item, 0);
  }

  const GeneralGemmParams& params_;
  const WorkRing<config>& work_;
  Tickets<config>& tickets_;
};

}  // namespace sluice
