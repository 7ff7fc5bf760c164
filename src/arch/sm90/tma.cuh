// The tensor memory accelerator: boxes of tensors of up to three dimensions between global and shared memory.
#pragma once

#include "arch/sm90/device.cuh"
#include "arch/sm90/mbarrier.cuh"

namespace sluice::arch {

SLUICE_DEVICE void prefetch_tensor_map(const TensorMap& map) { asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory"); }

SLUICE_DEVICE SharedAddress shared_address(const void* pointer) { return static_cast<SharedAddress>(__cvta_generic_to_shared(pointer)); }

// Fetches a box into this CTA's shared memory; `barrier` receives its bytes. What lies outside the tensor arrives as zeros.
SLUICE_DEVICE void tma_load(void* destination, const TensorMap& map, TensorCoordinates at, Barrier* barrier, CachePolicy policy) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1, {%2, %3, %4}], [%5], %6;" ::
          "r"(shared_address(destination)),
      "l"(&map), "r"(at.inner), "r"(at.outer), "r"(at.batch), "r"(shared_address(barrier)), "l"(static_cast<std::uint64_t>(policy))
      : "memory");
}

// Fetches a box as far as L2, where a later load finds it.
SLUICE_DEVICE void tma_prefetch(const TensorMap& map, TensorCoordinates at) {
  asm volatile("cp.async.bulk.prefetch.tensor.3d.L2.global.tile [%0, {%1, %2, %3}];" ::"l"(&map), "r"(at.inner), "r"(at.outer),
               "r"(at.batch)
               : "memory");
}

// The same box into all CTAs of the cluster named in the mask, at the same place; each one's own `barrier` receives the bytes.
SLUICE_DEVICE void tma_load_multicast(void* destination, const TensorMap& map, TensorCoordinates at, Barrier* barrier,
                                      std::uint16_t cta_mask, CachePolicy policy) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster.L2::cache_hint "
      "[%0], [%1, {%2, %3, %4}], [%5], %6, %7;" ::"r"(shared_address(destination)),
      "l"(&map), "r"(at.inner), "r"(at.outer), "r"(at.batch), "r"(shared_address(barrier)), "h"(cta_mask),
      "l"(static_cast<std::uint64_t>(policy))
      : "memory");
}

// Writes a box; what lies outside the tensor is dropped. Belongs to the calling thread's open bulk group.
SLUICE_DEVICE void tma_store(const TensorMap& map, TensorCoordinates at, SharedAddress source) {
  asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%0, {%1, %2, %3}], [%4];" ::"l"(&map), "r"(at.inner), "r"(at.outer),
               "r"(at.batch), "r"(source)
               : "memory");
}

SLUICE_DEVICE void bulk_commit() { cuda::ptx::cp_async_bulk_commit_group(); }

// Waits until at most `groups` of the calling thread's bulk groups still read shared memory.
template <int groups>
SLUICE_DEVICE void bulk_wait_read() {
  cuda::ptx::cp_async_bulk_wait_group_read(cuda::ptx::n32_t<groups>());
}

}  // namespace sluice::arch
