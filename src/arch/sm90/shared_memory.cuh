// Ordinary accesses to shared memory, and their order with the asynchronous ones.
#pragma once

#include "arch/sm90/device.cuh"
#include "arch/sm90/tma.cuh"

namespace sluice::arch {

// The CTA's dynamic shared memory. Swizzled tiles need 1024 bytes of alignment.
SLUICE_DEVICE std::byte* dynamic_shared_memory() {
  extern __shared__ __align__(1024) std::byte bytes[];
  return bytes;
}

// Makes this thread's ordinary stores to shared memory visible to wgmma and the copy engine. Every writing thread fences, then a
// barrier, then the asynchronous access.
SLUICE_DEVICE void fence_shared_for_async() { cuda::ptx::fence_proxy_async(cuda::ptx::space_shared); }

// stmatrix: four 8x8 matrices of 16-bit elements; lanes 8i..8i+7 give the addresses of the rows of matrix i.
SLUICE_DEVICE void store_matrices(void* row, std::uint32_t m0, std::uint32_t m1, std::uint32_t m2, std::uint32_t m3) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(shared_address(row)), "r"(m0), "r"(m1), "r"(m2), "r"(m3)
               : "memory");
}
// The same, each matrix transposed on its way.
SLUICE_DEVICE void store_matrices_transposed(void* row, std::uint32_t m0, std::uint32_t m1, std::uint32_t m2, std::uint32_t m3) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(shared_address(row)), "r"(m0), "r"(m1), "r"(m2),
               "r"(m3)
               : "memory");
}

}  // namespace sluice::arch
