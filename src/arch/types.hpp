// What both implementations of arch/ and the host share.
#pragma once

#include <cstdint>

namespace sluice::arch {

// What the copy engine must know of a tensor: for the GPU a CUtensorMap, filled in by cuTensorMapEncodeTiled; for the emulator what
// emulated::encode_tensor_map writes. Passed as a kernel parameter.
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

// An mbarrier: counts arrivals of threads and bytes of asynchronous copies. Lies in shared memory.
using Barrier = std::uint64_t;

// A place in this CTA's shared memory, in the 32 bits that instructions take. Address arithmetic belongs here rather than on pointers,
// which cost 64-bit registers (and ptxas 13.0 once miscompiled an epilogue that turned such pointers by exclusive or).
using SharedAddress = std::uint32_t;

// A place in the shared memory of some CTA of the cluster.
enum class ClusterAddress : std::uint32_t {};

// Moved in one access.
struct alignas(16) Floats4 {
  float values[4];
};

inline constexpr int kWgmmaDepthBytes = 32;  // of K: 16 elements of 16 bits, 32 of 8

// Which way an operand lies in shared memory, as wgmma's transpose immediates encode it.
enum class Major : int { k = 0, vector = 1 };

// How wgmma is told of a matrix in shared memory in rows of 128 bytes, swizzled by 128 bytes, starting at a multiple of 1024 bytes (PTX
// ISA, "Matrix Descriptor Format"). `stride_bytes` leads from eight such rows to the next eight. `leading_bytes` matters for Major::vector
// alone: it leads from 64 vectors to the next 64.
constexpr std::uint64_t encode_matrix_descriptor(SharedAddress start, int leading_bytes, int stride_bytes) {
  constexpr std::uint64_t kSwizzle128Bytes = std::uint64_t{1} << 62;
  const auto field = [](std::uint32_t bytes) { return static_cast<std::uint64_t>((bytes & 0x3FFFF) >> 4); };
  return field(start) | field(static_cast<std::uint32_t>(leading_bytes)) << 16 | field(static_cast<std::uint32_t>(stride_bytes)) << 32 |
         kSwizzle128Bytes;
}
// The descriptor of the same matrix, `bytes` further on.
constexpr std::uint64_t advance_descriptor(std::uint64_t descriptor, int bytes) {
  return descriptor + static_cast<std::uint64_t>(bytes >> 4);
}

}  // namespace sluice::arch
