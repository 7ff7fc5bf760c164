// Who am I, and barriers among the threads of a CTA or a cluster.
#pragma once

#include <type_traits>

#include "arch/sm90/device.cuh"

namespace sluice::arch {

SLUICE_DEVICE int thread_in_warpgroup() { return static_cast<int>(threadIdx.x) % 128; }
SLUICE_DEVICE int lane() { return static_cast<int>(threadIdx.x) % 32; }

SLUICE_DEVICE int cta_in_cluster() { return static_cast<int>(cuda::ptx::get_sreg_cluster_ctarank()); }
SLUICE_DEVICE int cluster_in_grid() { return static_cast<int>(cuda::ptx::get_sreg_clusterid_x()); }
SLUICE_DEVICE int cta_in_grid() { return static_cast<int>(blockIdx.x); }
SLUICE_DEVICE int ctas_in_grid() { return static_cast<int>(gridDim.x); }
SLUICE_DEVICE int clusters_in_grid() { return static_cast<int>(cuda::ptx::get_sreg_nclusterid_x()); }

// What all lanes of a converged warp hold, told to the compiler: what follows from it needs one register for the whole warp.
SLUICE_DEVICE int uniform(int value) { return __shfl_sync(~0u, value, 0); }

SLUICE_DEVICE int warp_in_cta() { return uniform(static_cast<int>(threadIdx.x) / 32); }
SLUICE_DEVICE int warpgroup_in_cta() { return uniform(static_cast<int>(threadIdx.x) / 128); }

// True in exactly one lane of a converged warp.
SLUICE_DEVICE bool elect_one() {
  std::uint32_t elected;
  asm volatile(
      "{\n\t.reg .pred p;\n\t"
      "elect.sync _|p, 0xffffffff;\n\t"
      "selp.u32 %0, 1, 0, p;\n\t}"
      : "=r"(elected));
  return elected != 0;
}

SLUICE_DEVICE void sync_warp() { __syncwarp(); }
SLUICE_DEVICE void sync_cta() { __syncthreads(); }

// Named barriers: `threads` counts everybody who syncs or arrives.
SLUICE_DEVICE void named_barrier_sync(int id, int threads) { asm volatile("barrier.cta.sync %0, %1;" ::"r"(id), "r"(threads) : "memory"); }
SLUICE_DEVICE void named_barrier_arrive(int id, int threads) {
  asm volatile("barrier.cta.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

// A barrier of the whole cluster, in two halves. Relaxed: it orders no ordinary memory accesses.
SLUICE_DEVICE void cluster_arrive_relaxed() { cuda::ptx::barrier_cluster_arrive(cuda::ptx::sem_relaxed); }
SLUICE_DEVICE void cluster_wait() { cuda::ptx::barrier_cluster_wait(cuda::ptx::sem_acquire); }

// Moves registers between warpgroups; every warp of the warpgroup must call it. A multiple of 8 from 24 to 240.
template <int registers>
SLUICE_DEVICE void lower_register_limit() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(registers));
}
template <int registers>
SLUICE_DEVICE void raise_register_limit() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(registers));
}

// The same value, but the compiler does not know: what depends on it is worked out where it is written, and needs no register before.
template <class Word>
SLUICE_DEVICE Word opaque(Word value) {
  if constexpr (std::is_same_v<Word, float>)
    asm volatile("" : "+f"(value));
  else
    asm volatile("" : "+r"(value));
  return value;
}

}  // namespace sluice::arch
