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

// WorkClaim::fixed: the items of a schedule, dealt round robin; those without work are passed over. Whole tiles with as many units as tiles
// are the classic launch of one tile per CTA.
class AnyScheduler {
 public:
  SLUICE_HOST_DEVICE AnyScheduler(const SchedulerParams& params, std::int32_t unit, std::int32_t unit_count)
      : schedule_(params), next_(unit), stride_(unit_count) {
    pass_over_empty_items();
  }

  SLUICE_HOST_DEVICE bool done() const { return next_ >= schedule_.items.count(); }

  SLUICE_HOST_DEVICE bool next(WorkTile& tile) {
    if (done()) return false;
    tile = schedule_.item_at(next_);
    next_ += stride_;
    pass_over_empty_items();
    return true;
  }

 private:
  // At once, so that done() need not look ahead.
  SLUICE_HOST_DEVICE void pass_over_empty_items() {
    while (!done() && schedule_.items.piece_at(next_).peers == 0) next_ += stride_;
  }

  Schedule<PlainDivisor> schedule_;
  std::int32_t next_;
  std::int32_t stride_;
};
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
