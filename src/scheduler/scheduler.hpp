// Schedulers deal work tiles to workers. They are plain code: the GPU, the simulator and the tests run the same lines.
#pragma once

#include <concepts>
#include <cstdint>
#include <utility>

#include "sluice/schedule.hpp"

#include "core/host_device.hpp"
#include "scheduler/tile_order.hpp"

namespace sluice {

// The contract. Built from (parameters, worker, worker count), a scheduler yields the work tiles of that worker until none is left.
// Over all workers each (tile, k-tile) comes exactly once.
template <class S>
concept Scheduler = std::constructible_from<S, const SchedulerParams&, std::int32_t, std::int32_t> && requires(S s, WorkTile tile) {
  { s.next(tile) } -> std::same_as<bool>;
  { std::as_const(s).done() } -> std::same_as<bool>;  // whether next() would say false
};

// Whole tiles, dealt round robin. With as many workers as tiles it is the classic launch of one tile per CTA.
class DataParallelScheduler {
 public:
  SLUICE_HOST_DEVICE DataParallelScheduler(const SchedulerParams& params, std::int32_t worker, std::int32_t worker_count)
      : params_(params), next_(worker), stride_(worker_count), end_(cluster_tiles(params)) {}

  SLUICE_HOST_DEVICE bool done() const { return next_ >= end_; }

  SLUICE_HOST_DEVICE bool next(WorkTile& tile) {
    if (done()) return false;
    tile = tile_at(params_, next_);
    next_ += stride_;
    return true;
  }

 private:
  const SchedulerParams& params_;
  std::int32_t next_;
  std::int32_t stride_;
  std::int32_t end_;
};
static_assert(Scheduler<DataParallelScheduler>);

// Workers of one CTA (or cluster) in turn: a tile for the first, one for the second, ... The producer loads in this order, and each
// consumer walks the same list and leaves out what is not its own.
template <Scheduler S, int workers>
class InterleavedWork {
 public:
  // `unit` is the cluster's number, `units` how many there are. Worker w of this unit is unit + w * units in the scheduler's count.
  SLUICE_HOST_DEVICE InterleavedWork(const SchedulerParams& params, std::int32_t unit, std::int32_t units)
      : first_(params, unit, units * workers), second_(params, unit + units, units * workers) {}

  // The next work tile and the worker it belongs to.
  SLUICE_HOST_DEVICE bool next(WorkTile& tile, int& worker) {
    for (int tries = 0; tries < workers; ++tries) {
      worker = turn_;
      turn_ = turn_ + 1 == workers ? 0 : turn_ + 1;
      if (worker == 0 ? first_.next(tile) : second_.next(tile)) return true;
    }
    return false;
  }

  // Whose work tile next() would give, or kNobody.
  SLUICE_HOST_DEVICE int next_worker() const {
    for (int tries = 0; tries < workers; ++tries) {
      const int worker = (turn_ + tries) % workers;
      if (!(worker == 0 ? first_ : second_).done()) return worker;
    }
    return kNobody;
  }
  static constexpr int kNobody = -1;

 private:
  static_assert(workers == 1 || workers == 2);
  S first_;
  S second_;  // unused when workers == 1
  int turn_ = 0;
};

}  // namespace sluice
