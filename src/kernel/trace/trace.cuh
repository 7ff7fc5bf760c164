// How a GEMM kernel tells what it does and when: the policy Trace of GemmKernel. Each role makes one, says which tile it begins and what
// it has come to. NoTrace names role and tile to whoever watches (nobody, on the GPU), and is gone when compiled.
#pragma once

#include "sluice/schedule.hpp"
#include "sluice/trace_event.hpp"

#include "arch/arch.cuh"
#include "kernel/gemm_params.cuh"

namespace sluice {

enum class Role { producing_thread, producing_warp, consumer };

class NoTrace {
 public:
  // By the threads of a role; `warpgroup`: of the consumers.
  SLUICE_DEVICE NoTrace(const GemmParams&, Role role, int warpgroup = 0) {
    arch::note_role(role != Role::consumer ? "producer" : warpgroup == 0 ? "consumer 0" : "consumer 1");
  }
  SLUICE_DEVICE void begin(const WorkTile& tile) { arch::note_work(tile.tile_m, tile.tile_n, tile.group, tile.k_begin, tile.k_end); }
  SLUICE_DEVICE void mark(TraceEvent) const {}
  // That the turn has come, and when the tile's first stage has been filled. By the whole warpgroup.
  template <class Ring>
  SLUICE_DEVICE void mark_first_data(const Ring&, const typename Ring::Position&, int) const {}
};

}  // namespace sluice
