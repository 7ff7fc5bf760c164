// Plays a plan in time: clusters start, take their items, wait for one another, and make room.
#pragma once

#include "sluice/error.hpp"
#include "sluice/simulate.hpp"

namespace sluice {

// Fills in result.pieces, by worker and then by time. At most `resident_units` clusters are on the device at once; 0: as many as fit.
// Fails if clusters wait for each other for ever.
Status play(const Plan& plan, int resident_units, Simulation& result);

}  // namespace sluice
