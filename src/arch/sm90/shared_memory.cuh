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

// Ordinary stores and loads.
SLUICE_DEVICE void store_shared(SharedAddress address, float value) {
  asm volatile("st.shared.f32 [%0], %1;" ::"r"(address), "f"(value) : "memory");
}
SLUICE_DEVICE void store_shared(SharedAddress address, float first, float second) {
  asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(address), "f"(first), "f"(second) : "memory");
}
SLUICE_DEVICE void store_shared(SharedAddress address, const std::uint32_t (&words)[4]) {
  asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(words[0]), "r"(words[1]), "r"(words[2]), "r"(words[3])
               : "memory");
}
SLUICE_DEVICE void load_shared(SharedAddress address, std::uint32_t (&words)[4]) {
  asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
               : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
               : "r"(address)
               : "memory");
}
SLUICE_DEVICE void load_shared(SharedAddress address, float (&values)[2]) {
  asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(values[0]), "=f"(values[1]) : "r"(address) : "memory");
}
SLUICE_DEVICE void load_shared(SharedAddress address, float (&values)[4]) {
  asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(values[0]), "=f"(values[1]), "=f"(values[2]), "=f"(values[3])
               : "r"(address)
               : "memory");
}

// stmatrix: four or two 8x8 matrices of 16-bit elements, each transposed on its way or not; lanes 8i..8i+7 give the addresses of the rows
// that matrix i becomes in shared memory.
template <bool transposed>
SLUICE_DEVICE void store_matrices(SharedAddress row, const std::uint32_t (&m)[4]) {
  if constexpr (transposed)
    asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(row), "r"(m[0]), "r"(m[1]), "r"(m[2]),
                 "r"(m[3])
                 : "memory");
  else
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(row), "r"(m[0]), "r"(m[1]), "r"(m[2]), "r"(m[3])
                 : "memory");
}
template <bool transposed>
SLUICE_DEVICE void store_matrices(SharedAddress row, const std::uint32_t (&m)[2]) {
  if constexpr (transposed)
    asm volatile("stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%0], {%1, %2};" ::"r"(row), "r"(m[0]), "r"(m[1]) : "memory");
  else
    asm volatile("stmatrix.sync.aligned.m8n8.x2.shared.b16 [%0], {%1, %2};" ::"r"(row), "r"(m[0]), "r"(m[1]) : "memory");
}

}  // namespace sluice::arch
