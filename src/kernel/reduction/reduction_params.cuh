// Where pieces of a tile meet: see scheduler/workspace.hpp. Worked out for the launch: a GPU divides in some 150 cycles, on the way from
// the last product to the result.
#pragma once

#include <cstdint>

#include "core/tile_parts_table.hpp"

namespace sluice {

struct ReductionParams {
  std::uint32_t* flags;
  std::uint32_t* counter;  // WorkClaim::ticket
  float* sums;
  std::int32_t deposit_step;
  TileParts parts;  // that pieces finish together: Reduction::cluster and separate
};

}  // namespace sluice
