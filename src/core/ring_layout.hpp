// What follows from a KernelConfig whose schedule is streaming and whose weights are numbers of 16 bits (kernel/streaming/ring_kernel.cuh).
#pragma once

#include "sluice/kernel_config.hpp"

namespace sluice {

inline constexpr int kRingWarps = 8;
inline constexpr int kRingThreads = 32 * kRingWarps;

// Each warp has a ring of its own. A stage holds 64 elements of K, 128 bytes, of the rows of A and of two strips of 16 columns.
inline constexpr int kRingStages = 2;
inline constexpr int kRingStrips = 2;
inline constexpr int kRingElems = 64;
inline constexpr int kRingRowBytes = 2 * kRingElems;
constexpr int ring_strip_bytes(const KernelConfig& c) { return c.tile_n * kRingRowBytes; }
constexpr int ring_stage_bytes(const KernelConfig& c) { return kRingStrips * ring_strip_bytes(c) + c.tile_m * kRingRowBytes; }

// What the warps have added up of two strips, twice where half an SM has room for it, so that one can be filled while the other is read.
constexpr int ring_sum_bytes(const KernelConfig& c) { return c.tile_m * kRingStrips * c.tile_n * 4; }  // of a warp
constexpr int ring_sum_buffers(const KernelConfig& c) { return c.tile_m <= 8 ? 2 : 1; }

constexpr int ring_sums_offset(const KernelConfig& c) { return kRingWarps * kRingStages * ring_stage_bytes(c); }
constexpr int ring_barrier_offset(const KernelConfig& c) {
  return ring_sums_offset(c) + ring_sum_buffers(c) * kRingWarps * ring_sum_bytes(c);
}
constexpr int ring_shared_bytes(const KernelConfig& c) { return ring_barrier_offset(c) + kRingWarps * kRingStages * 8; }

}  // namespace sluice
