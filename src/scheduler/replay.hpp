// Walking a plan's schedule on the CPU, for those who replay it.
#pragma once

#include <cstdint>
#include <utility>

#include "scheduler/scheduler.hpp"

namespace sluice {

// Calls visit(tile, worker) for the work tiles of one unit (a CTA or cluster) in the order its producer loads them, if they are dealt out
// (WorkClaim::fixed). `units` is how many there are; worker is the number within the whole grid, below units * workers_per_unit.
template <class Visit>
void replay_unit(const SchedulerParams& params, int workers_per_unit, std::int32_t unit, std::int32_t units, Visit&& visit) {
  const auto walk = [&](auto work) {
    WorkTile tile;
    int turn = 0;
    while (work.next(tile, turn)) visit(std::as_const(tile), unit + turn * units);
  };
  if (workers_per_unit == 1)
    walk(InterleavedWork<AnyScheduler, 1>(params, unit, units));
  else
    walk(InterleavedWork<AnyScheduler, 2>(params, unit, units));
}

}  // namespace sluice
