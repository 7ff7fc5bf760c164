// Schedulers deal a list's items to CTAs and clusters, for those who replay a schedule on the CPU. In a kernel the dispatcher walks the
// same list (scheduler/items.hpp) itself.
#pragma once

#include <concepts>
#include <cstdint>
#include <utility>

#include "sluice/schedule.hpp"

#include "core/host_device.hpp"
#include "scheduler/items.hpp"
#include "scheduler/plain_divisor.hpp"

namespace sluice {

// The contract. Built from (parameters, unit, unit count), where a unit is a CTA or a cluster, a scheduler yields the work tiles of that
// unit until none is left. Over all units each (tile, k-tile) comes exactly once.
template <class S>
concept Scheduler = std::constructible_from<S, const SchedulerParams&, std::int32_t, std::int32_t> && requires(S s, WorkTile tile) {
  { s.next(tile) } -> std::same_as<bool>;
  { std::as_const(s).done() } -> std::same_as<bool>;  // whether next() would say false
};

// The contract. Made of a schedule's parameters, with all that does not depend on the item worked out. Over all items below count() each
// (tile, k-tile) comes exactly once. Some may be without work (peers == 0) and are to be passed over.
template <class L>
concept ItemList = std::constructible_from<L, const SchedulerParams&> && requires(const L& list, std::int32_t item) {
  { list.count() } -> std::same_as<std::int32_t>;
  { list.piece_at(item) } -> std::same_as<TilePiece>;
};

// WorkClaim::fixed: the items of a list, dealt round robin.
template <ItemList Items>
class ItemScheduler {
 public:
  SLUICE_HOST_DEVICE ItemScheduler(const SchedulerParams& params, std::int32_t unit, std::int32_t unit_count)
      : items_(params), order_(params), next_(unit), stride_(unit_count), end_(items_.count()) {
    pass_over_empty_items();
  }

  SLUICE_HOST_DEVICE bool done() const { return next_ >= end_; }

  SLUICE_HOST_DEVICE bool next(WorkTile& tile) {
    if (done()) return false;
    tile = order_.place(items_.piece_at(next_));
    next_ += stride_;
    pass_over_empty_items();
    return true;
  }

 private:
  // At once, so that done() need not look ahead.
  SLUICE_HOST_DEVICE void pass_over_empty_items() {
    while (!done() && items_.piece_at(next_).peers == 0) next_ += stride_;
  }

  Items items_;
  TileOrder<PlainDivisor> order_;
  std::int32_t next_;
  std::int32_t stride_;
  std::int32_t end_;
};

// Of any kind. Whole tiles with as many units as tiles are the classic launch of one tile per CTA.
using AnyScheduler = ItemScheduler<AnyItems<PlainDivisor>>;
static_assert(Scheduler<AnyScheduler>);

// The workers of a unit take its work tiles in turn: one for the first, one for the second, ... The producer loads in this order, and
// each consumer walks the same list and leaves out what is not its own.
//
// Dealing to units and not to workers is what keeps the waits safe in pingpong too: a unit's items have rising numbers, whoever of its
// workers has them, and a worker that waits for another unit holds up its own unit only.
template <Scheduler S, int workers>
class InterleavedWork {
 public:
  SLUICE_HOST_DEVICE InterleavedWork(const SchedulerParams& params, std::int32_t unit, std::int32_t units) : work_(params, unit, units) {}

  // The next work tile and the worker it belongs to.
  SLUICE_HOST_DEVICE bool next(WorkTile& tile, int& worker) {
    worker = turn_;
    if (!work_.next(tile)) return false;
    if constexpr (workers > 1) turn_ = turn_ + 1 == workers ? 0 : turn_ + 1;
    return true;
  }

  // Whose work tile next() would give, or kNobody.
  SLUICE_HOST_DEVICE int next_worker() const { return work_.done() ? kNobody : turn_; }
  static constexpr int kNobody = -1;

 private:
  S work_;
  int turn_ = 0;
};

}  // namespace sluice
