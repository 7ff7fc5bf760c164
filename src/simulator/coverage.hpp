// Is each k-tile of each output tile computed once?
#pragma once

#include <cstdint>
#include <vector>

#include "sluice/simulate.hpp"

namespace sluice {

struct Coverage {
  std::int64_t uncovered = 0;  // (tile, k-tile) pairs
  std::int64_t repeated = 0;   // the second and every further time, and what lies outside the output

  bool operator==(const Coverage&) const = default;
};

// Pieces may be whole tiles or any ranges of their k-tiles, in any order.
Coverage count_coverage(const SchedulerParams& params, const std::vector<SimulatedPiece>& pieces);

}  // namespace sluice
