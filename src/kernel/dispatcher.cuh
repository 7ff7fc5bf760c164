// The warp that works out what a CTA does: it walks the schedule's list of items, and puts those that are this CTA's into the work ring.
#pragma once

#include "arch/arch.cuh"
#include "core/kernel_layout.hpp"
#include "kernel/gemm_params.cuh"
#include "kernel/places.cuh"
#include "kernel/tickets.cuh"
#include "kernel/work_ring.cuh"

namespace sluice {

template <KernelConfig config>
class Dispatcher {
 public:
  using Work = WorkRing<config>;

  SLUICE_DEVICE Dispatcher(const GemmParams& params, const Work& work, Tickets<config>& tickets)
      : params_(params), work_(work), tickets_(tickets) {}

  // Who takes items. A cluster in which pieces meet is none of the kernel's own: its CTAs take one each.
  static SLUICE_DEVICE int unit() { return cluster_size(config) > 1 ? arch::cluster_in_grid() : arch::cta_in_grid(); }
  static SLUICE_DEVICE int units() { return cluster_size(config) > 1 ? arch::clusters_in_grid() : arch::ctas_in_grid(); }

  // Whether items are known before the predecessor has finished: it may still use the memory of tickets, and be what sizes groups.
  static SLUICE_DEVICE bool known_early(const GemmParams& params) {
    return is_short(config) ? kPlain : params.scheduler.claim == WorkClaim::fixed && params.groups.grouping == Grouping::none;
  }

  // By the whole warp. The first item with work, `item` or behind it, goes into the ring at once.
  SLUICE_DEVICE void put_first(int& item) const {
    Places<config>::claim(params_.places, item);
    const auto& items = params_.schedule.items;
    TilePiece piece{.peers = 0};
    if (kPlain || !items.cuts()) {  // one after the other: this runs once, from cold instruction memory, and somebody waits for it
      if (item < items.count()) piece = items.piece_at(item, kPlain);
    } else {
      SLUICE_NO_UNROLL
      for (; item < items.count(); item += units())
        if (piece = items.piece_at(item); piece.peers > 0) break;
    }
    const WorkTile tile = of_this_cta(params_.schedule.order.place(piece));
    if (arch::lane() == 0) work_.put_first(tile);
  }

  // One thread. `item`: that of put_first().
  SLUICE_DEVICE void run(int item) const {
    const bool early = known_early(params_);
    const int items = params_.schedule.items.count();
    typename Work::Position at;
    Places<config>::count(params_.places);
    early ? at.advance() : arch::wait_for_predecessor();
    SLUICE_NO_UNROLL
    for (;;) {
      item = early ? item + units() : tickets_.next(params_.reduction.counter, items);
      if (item >= items) break;
      const WorkTile tile = of_this_cta(params_.schedule.item_at(item, kPlain));
      if (tile.peers > 0) work_.put(tile, at);
    }
    work_.put_end(at);
  }

 private:
  static constexpr bool kPlain = config.scope == KernelScope::plain;

  SLUICE_DEVICE WorkTile of_this_cta(WorkTile tile) const {
    tile.row_end = params_.epilogue.m;
    return work_.of_this_cta(tile);
  }

  const GemmParams& params_;
  const Work& work_;
  Tickets<config>& tickets_;
};

}  // namespace sluice
