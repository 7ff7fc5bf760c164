// What weights of 4 bits add to a kernel's layout.
#pragma once

#include "sluice/kernel_config.hpp"

#include "core/w4_layout.hpp"

namespace sluice {

// Whether P, the weights, comes as codes of 4 bits, which the consumers turn into numbers on their way into registers.
constexpr bool dequantises(const KernelConfig& c) { return c.type_b == DataType::int4; }
// Of groups that are whole slabs: whether codes are scaled, and rounded, in the operation that makes numbers of them (arch/code_line.hpp).
// Then all kernels do so, and give a row the same bits.
constexpr bool scales_with_codes(DataType type_a, bool zero_points) { return type_a == DataType::bf16 && !zero_points; }
// Else, whether the sums of each slab are promoted by its scales, as those of FP8 are, or its weights are scaled, and rounded, before they
// are multiplied. With few rows promotion takes fewer instructions, where registers hold two sets of short sums.
constexpr bool promotes_slabs(const KernelConfig& c, bool zero_points) {
  const bool three_warpgroups = c.tile_n > 2 * kW4BlockColumns;
  return is_fp8(c.type_a) || (!scales_with_codes(c.type_a, zero_points) && c.tile_m <= (three_warpgroups ? 32 : 64));
}
// A stage has whole slabs of each block, or half of one: a chunk of codes and the scales and zero points of its groups, at places that are
// the same for all formats.
constexpr bool halves_slabs(int tile_k) { return tile_k < kW4SlabElems; }
constexpr int slabs_of_block(int tile_k) { return halves_slabs(tile_k) ? 1 : tile_k / kW4SlabElems; }
inline constexpr int kW4HalfScaleOffset = kW4ChunkBytes;
inline constexpr int kW4HalfZeroOffset = kW4HalfScaleOffset + kW4LargestGroupsPerSlab / 2 * kW4ScaleBytes;
// Groups that half a slab needs: of four or two every second half has its own, one is that of both.
SLUICE_HOST_DEVICE constexpr int w4_groups_of_half(int groups_per_slab) { return groups_per_slab > 1 ? groups_per_slab / 2 : 1; }
constexpr int w4_half_slab_bytes(int groups_per_slab, bool zero_points) {
  return kW4ChunkBytes + w4_groups_of_half(groups_per_slab) * (kW4ScaleBytes + (zero_points ? kW4ZeroBytes : 0));
}
// From one slab, or half of one, to the next in shared memory.
constexpr int packed_slab_stride(int tile_k) { return halves_slabs(tile_k) ? kW4LargestSlabBytes / 2 : kW4LargestSlabBytes; }
// What a stage fetches of weights of that format.
constexpr int packed_stage_bytes(const KernelConfig& c, const W4Format& format) {
  const int slab = halves_slabs(c.tile_k) ? w4_half_slab_bytes(w4_groups_per_slab(format), format.zero_points) : w4_slab_bytes(format);
  return c.tile_n / kW4BlockColumns * slabs_of_block(c.tile_k) * slab;
}
// Of a tile: room for the slabs of any format, up to where swizzled rows can begin.
constexpr int packed_tile_bytes(int tile_n, int tile_k) {
  constexpr int kAlignmentBytes = 1024;
  const int bytes = tile_n / kW4BlockColumns * slabs_of_block(tile_k) * packed_slab_stride(tile_k);
  return (bytes + kAlignmentBytes - 1) / kAlignmentBytes * kAlignmentBytes;
}

}  // namespace sluice
