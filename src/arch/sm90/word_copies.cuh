// Single words of shared memory: fetched by a thread that does not wait for them, for what no tensor map can address, read, and let go of.
#pragma once

#include "arch/sm90/device.cuh"
#include "arch/sm90/shared_memory.cuh"

namespace sluice::arch {

// Not inside: 0 is written, and nothing read.
SLUICE_DEVICE void copy_word_async(SharedAddress destination, const float* source, bool inside) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(destination), "l"(source), "r"(inside ? 4 : 0) : "memory");
}

// Arrives when all words that this thread has asked for have come. Counts as one of the arrivals that the barrier was made for.
SLUICE_DEVICE void barrier_arrive_when_copied(Barrier* barrier) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(shared_address(barrier)) : "memory");
}

SLUICE_DEVICE void load_shared(SharedAddress address, float (&value)[1]) {
  asm volatile("ld.shared.f32 %0, [%1];" : "=f"(value[0]) : "r"(address) : "memory");
}

// By lane l < ctas of a warp at the barrier of CTA l: as barrier_arrive_in_cluster_relaxed(), but as a release within this CTA, `own`.
// Without a branch, which would cost more than all the rest (ncu, H200, 21 November 2026).
SLUICE_DEVICE void barrier_arrive_in_lanes(Barrier* barrier, int lane, int own, int ctas) {
  asm volatile(
      "{\n\t.reg .b32 remote;\n\t.reg .pred here, there;\n\t"
      "setp.eq.s32 here, %1, %2;\n\t"
      "setp.lt.s32 there, %1, %3;\n\t"
      "@here setp.ne.s32 there, %1, %2;\n\t"
      "mapa.shared::cluster.u32 remote, %0, %4;\n\t"
      "@here mbarrier.arrive.release.cta.shared::cta.b64 _, [%0];\n\t"
      "@there mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [remote];\n\t}" ::"r"(
          static_cast<std::uint32_t>(__cvta_generic_to_shared(barrier))),
      "r"(lane), "r"(own), "r"(ctas), "r"(lane < ctas ? lane : 0)
      : "memory");
}

// Ordinary loads of a word and of half of one.
SLUICE_DEVICE void load_shared(SharedAddress address, std::uint32_t& word) {
  asm volatile("ld.shared.b32 %0, [%1];" : "=r"(word) : "r"(address) : "memory");
}
SLUICE_DEVICE void load_shared(SharedAddress address, std::uint16_t& bits) {
  asm volatile("ld.shared.b16 %0, [%1];" : "=h"(bits) : "r"(address) : "memory");
}

}  // namespace sluice::arch
