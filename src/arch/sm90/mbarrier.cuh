// Barriers in shared memory that count arrivals of threads and bytes of asynchronous copies.
#pragma once

#include "arch/sm90/device.cuh"

namespace sluice::arch {

SLUICE_DEVICE void barrier_init(Barrier* barrier, int arrivals) { cuda::ptx::mbarrier_init(barrier, static_cast<std::uint32_t>(arrivals)); }
// Makes initialised barriers visible to the copy engine and to the other CTAs of the cluster (after the next cluster barrier).
SLUICE_DEVICE void fence_barrier_init() { cuda::ptx::fence_mbarrier_init(cuda::ptx::sem_release, cuda::ptx::scope_cluster); }

SLUICE_DEVICE void barrier_arrive(Barrier* barrier) { cuda::ptx::mbarrier_arrive(barrier); }

SLUICE_DEVICE void barrier_arrive_expect_bytes(Barrier* barrier, int bytes) {
  cuda::ptx::mbarrier_arrive_expect_tx(cuda::ptx::sem_release, cuda::ptx::scope_cta, cuda::ptx::space_shared, barrier,
                                       static_cast<std::uint32_t>(bytes));
}

// Arrives at the barrier that lies at the same place in the shared memory of CTA `cta` of the cluster. Relaxed: it says that this thread
// has finished reading, and publishes no writes. (A release at cluster scope costs a MEMBAR.ALL.GPU each time: 1907 us instead of 1437 for
// 8192 x 8192 x 8192 on an H200, November 2026.)
SLUICE_DEVICE void barrier_arrive_in_cluster_relaxed(Barrier* barrier, int cta) {
  asm volatile(
      "{\n\t.reg .b32 remote;\n\t"
      "mapa.shared::cluster.u32 remote, %0, %1;\n\t"
      "mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [remote];\n\t}" ::"r"(
          static_cast<std::uint32_t>(__cvta_generic_to_shared(barrier))),
      "r"(cta)
      : "memory");
}

// The same, publishing this thread's writes to the CTA that waits.
SLUICE_DEVICE void barrier_arrive_in_cluster(Barrier* barrier, int cta) {
  asm volatile(
      "{\n\t.reg .b32 remote;\n\t"
      "mapa.shared::cluster.u32 remote, %0, %1;\n\t"
      "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [remote];\n\t}" ::"r"(
          static_cast<std::uint32_t>(__cvta_generic_to_shared(barrier))),
      "r"(cta)
      : "memory");
}

// Returns when the phase with this parity is complete. A fresh barrier is in phase 0, and its phase "-1" (parity 1) is complete.
SLUICE_DEVICE void barrier_wait(Barrier* barrier, std::uint32_t parity) {
  // Without a hint the instruction gives up after some ten cycles: waiting producers took two thirds of all issue slots (ncu, H200, 21
  // November 2026).
  constexpr std::uint32_t kSuspendNs = 10'000'000;
  while (!cuda::ptx::mbarrier_try_wait_parity(barrier, parity, kSuspendNs)) {}
}
SLUICE_DEVICE bool barrier_has_ended(Barrier* barrier, std::uint32_t parity) {
  return cuda::ptx::mbarrier_test_wait_parity(barrier, parity);
}

}  // namespace sluice::arch
