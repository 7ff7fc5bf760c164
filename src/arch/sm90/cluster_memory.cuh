// The shared memory of the other CTAs of the cluster. It must not be touched after its CTA has ended.
#pragma once

#include "arch/sm90/device.cuh"
#include "arch/sm90/tma.cuh"

namespace sluice::arch {

// The same place in the shared memory of CTA `cta` of the cluster.
SLUICE_DEVICE ClusterAddress in_cta(SharedAddress address, int cta) {
  std::uint32_t mapped;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(mapped) : "r"(address), "r"(cta));
  return ClusterAddress{mapped};
}

SLUICE_DEVICE void load_cluster(ClusterAddress address, float (&values)[4]) {
  asm volatile("ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(values[0]), "=f"(values[1]), "=f"(values[2]), "=f"(values[3])
               : "r"(static_cast<std::uint32_t>(address))
               : "memory");
}

// Pushes four floats; `barrier`, in the same CTA, receives their 16 bytes when they have landed.
SLUICE_DEVICE void store_async(ClusterAddress address, const float (&values)[4], ClusterAddress barrier) {
  asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%0], {%1, %2, %3, %4}, [%5];" ::"r"(
                   static_cast<std::uint32_t>(address)),
               "f"(values[0]), "f"(values[1]), "f"(values[2]), "f"(values[3]), "r"(static_cast<std::uint32_t>(barrier))
               : "memory");
}

// Pushes a run of bytes, 16-byte aligned and a multiple of 16 long, through the copy engine.
SLUICE_DEVICE void bulk_copy_to_cluster(ClusterAddress destination, SharedAddress source, int bytes, ClusterAddress barrier) {
  asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                   static_cast<std::uint32_t>(destination)),
               "r"(source), "r"(bytes), "r"(static_cast<std::uint32_t>(barrier))
               : "memory");
}

// As cluster_arrive_relaxed(), publishing this thread's writes, those to other CTAs' shared memory included.
SLUICE_DEVICE void cluster_arrive() { cuda::ptx::barrier_cluster_arrive(cuda::ptx::sem_release); }

}  // namespace sluice::arch
