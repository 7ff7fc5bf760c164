// What the lanes of a converged warp find out together.
#pragma once

#include "arch/sm90/device.cuh"
#include "arch/sm90/threads.cuh"

namespace sluice::arch {

SLUICE_DEVICE int from_lane(int value, int lane) { return __shfl_sync(~0u, value, lane); }
SLUICE_DEVICE int lowest_bit(std::uint32_t bits) { return __ffs(static_cast<int>(bits)) - 1; }  // of a word that is not 0
SLUICE_DEVICE int count_lanes(bool value) { return __popc(__ballot_sync(~0u, value)); }
SLUICE_DEVICE int warp_sum(int value) { return __reduce_add_sync(~0u, value); }

// Of the lanes up to and with this one.
SLUICE_DEVICE int prefix_sum(int value) {
  SLUICE_UNROLL
  for (int step = 1; step < 32; step *= 2) {
    const int below = __shfl_up_sync(~0u, value, step);
    if (lane() >= step) value += below;
  }
  return value;
}

}  // namespace sluice::arch
