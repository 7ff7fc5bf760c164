// A group of rows may end above those of a consumer warpgroup that shares a tile. What it would multiply is not stored: it leaves the
// tensor cores to the others.
#pragma once

#include "kernel/mainloop/wgmma_consumer.cuh"

namespace sluice {

template <KernelConfig config>
struct IdleConsumer {
  static SLUICE_DEVICE bool idles(const WorkTile& tile, int first_block) {
    if constexpr (swapped(config) || config.schedule == KernelSchedule::pingpong) return false;
    return first_block > 0 && tile.first_row + first_block * kWgmmaRows >= tile.row_end;
  }

  template <class Ring>
  static SLUICE_DEVICE void pass_over(Accumulators<config>& sums, const Ring& ring, typename Ring::Position& at, int k_tiles) {
    sums.clear();
    SLUICE_NO_UNROLL
    for (; k_tiles > 0; --k_tiles) {
      ring.wait_full(at);
      arch::sync_warp();  // a lane that came late would miss the stage's next round; elsewhere wgmma brings them together
      ring.release(at);
      at.advance();
    }
  }
};

}  // namespace sluice
