// The copy engine without tensor boxes, and its additions.
#pragma once

#include "arch/sm90/device.cuh"
#include "arch/sm90/tma.cuh"

namespace sluice::arch {

// Plain runs of bytes, 16-byte aligned and a multiple of 16 long: into shared memory, and from it.
SLUICE_DEVICE void bulk_load(SharedAddress destination, const void* source, int bytes, Barrier* barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(destination), "l"(source),
               "r"(bytes), "r"(shared_address(barrier))
               : "memory");
}
// With what L2 should do with the lines; and as far as L2 only.
SLUICE_DEVICE void bulk_load(SharedAddress destination, const void* source, int bytes, Barrier* barrier, CachePolicy policy) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], %2, [%3], %4;" ::"r"(destination),
      "l"(source), "r"(bytes), "r"(shared_address(barrier)), "l"(static_cast<std::uint64_t>(policy))
      : "memory");
}
SLUICE_DEVICE void bulk_prefetch(const void* source, int bytes) {
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(source), "r"(bytes) : "memory");
}
SLUICE_DEVICE void bulk_store(void* destination, SharedAddress source, int bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(destination), "r"(source), "r"(bytes) : "memory");
}
SLUICE_DEVICE void bulk_reduce_add(float* destination, SharedAddress source, int bytes) {
  asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], %2;" ::"l"(destination), "r"(source), "r"(bytes)
               : "memory");
}

// A box as in tma_store(), adding to what is there (fp32 sums, or 16-bit ones rounded after each addition, by the tensor map's type).
SLUICE_DEVICE void tma_reduce_add(const TensorMap& map, TensorCoordinates at, SharedAddress source) {
  asm volatile("cp.reduce.async.bulk.tensor.3d.global.shared::cta.add.tile.bulk_group [%0, {%1, %2, %3}], [%4];" ::"l"(&map), "r"(at.inner),
               "r"(at.outer), "r"(at.batch), "r"(source)
               : "memory");
}

// Waits until at most `groups` of the calling thread's bulk groups are still running: what the others wrote is visible to this thread.
template <int groups>
SLUICE_DEVICE void bulk_wait() {
  cuda::ptx::cp_async_bulk_wait_group(cuda::ptx::n32_t<groups>());
}

}  // namespace sluice::arch
