// The tensor memory accelerator: boxes of tensors of up to three dimensions between global and shared memory.
#pragma once

#include "arch/sm90/device.cuh"
#include "arch/sm90/mbarrier.cuh"

namespace sluice::arch {

// A CUtensorMap, filled in on the host by cuTensorMapEncodeTiled and passed as a kernel parameter.
struct alignas(64) TensorMap {
  std::uint64_t opaque[16];
};

struct TensorCoordinates {
  int inner;  // in elements along the contiguous dimension
  int outer;
  int batch;
};

// What L2 should do with the lines a copy touches: the 64-bit policies that createpolicy.fractional would return for fraction 1.
enum class CachePolicy : std::uint64_t {
  evict_normal = 0x1000000000000000,
  evict_first = 0x12F0000000000000,
  evict_last = 0x14F0000000000000,
};

SLUICE_DEVICE void prefetch_tensor_map(const TensorMap& map) { asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory"); }

// A place in this CTA's shared memory, in the 32 bits that instructions take. Address arithmetic belongs here rather than on pointers,
// which cost 64-bit registers (and ptxas 13.0 once miscompiled an epilogue that turned such pointers by exclusive or).
using SharedAddress = std::uint32_t;
SLUICE_DEVICE SharedAddress shared_address(const void* pointer) { return static_cast<SharedAddress>(__cvta_generic_to_shared(pointer)); }

// Fetches a box into this CTA's shared memory; `barrier` receives its bytes. What lies outside the tensor arrives as zeros.
SLUICE_DEVICE void tma_load(void* destination, const TensorMap& map, TensorCoordinates at, Barrier* barrier, CachePolicy policy) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1, {%2, %3, %4}], [%5], %6;" ::
          "r"(shared_address(destination)),
      "l"(&map), "r"(at.inner), "r"(at.outer), "r"(at.batch), "r"(shared_address(barrier)), "l"(static_cast<std::uint64_t>(policy))
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
