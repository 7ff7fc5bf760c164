// Tensor maps that kernels make themselves: in shared memory from one that the host encoded, then out to global memory. Whoever uses such a
// map acquires it first, since the copy engine reads maps by a way of its own (PTX ISA, "tensormap proxy").
#pragma once

#include "arch/sm90/device.cuh"

namespace sluice::arch {

// One field of the map at `map`, which is aligned to 128 bytes. By one thread, when the bytes that it begins with are there.
SLUICE_DEVICE void replace_address(SharedAddress map, const void* data) {
  asm volatile("tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%0], %1;" ::"r"(map),
               "l"(reinterpret_cast<std::uint64_t>(data))
               : "memory");
}
// direction: 0 is the contiguous one.
template <int direction>
SLUICE_DEVICE void replace_extent(SharedAddress map, std::uint32_t elems) {
  asm volatile("tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%0], %1, %2;" ::"r"(map), "n"(direction), "r"(elems) : "memory");
}
// direction: 1 is the first that has a stride. From CUDA 12.5 on the instruction takes bytes.
template <int direction>
SLUICE_DEVICE void replace_stride(SharedAddress map, std::uint64_t bytes) {
  asm volatile("tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [%0], %1, %2;" ::"r"(map), "n"(direction - 1), "l"(bytes)
               : "memory");
}

// Copies a map out to where acquire_tensor_map() finds it. By a whole warp that has seen the map finished.
SLUICE_DEVICE void publish_tensor_map(TensorMap* to, SharedAddress map) {
  asm volatile("tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%0], [%1], 128;" ::"l"(to), "r"(map)
               : "memory");
}

// Before a thread passes a published map to the copy engine for the first time.
SLUICE_DEVICE void acquire_tensor_map(const TensorMap& map) {
  asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(&map) : "memory");
}

}  // namespace sluice::arch
