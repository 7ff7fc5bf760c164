// What weights of 4 bits add to a kernel's layout.
#pragma once

#include "sluice/kernel_config.hpp"

#include "core/w4_layout.hpp"

namespace sluice {

// Whether P, the weights, comes as codes of 4 bits, which the consumers turn into numbers on their way into registers.
constexpr bool dequantises(const KernelConfig& c) { return c.type_b == DataType::int4; }
// Of groups that are whole slabs: whether the sums of each are promoted by its scales, as those of FP8 are, or else its weights are scaled,
// and rounded, before they are multiplied. With few rows promotion takes fewer instructions, where registers hold two sets of short sums.
constexpr bool promotes_slabs(const KernelConfig& c) {
  const bool three_warpgroups = c.tile_n > 2 * kW4BlockColumns;
  return is_fp8(c.type_a) || c.tile_m <= (three_warpgroups ? 32 : 64);
}
constexpr int slabs_of_tile(int tile_n, int tile_k) { return tile_n / kW4BlockColumns * (tile_k / kW4SlabElems); }
// What a stage fetches of weights of that format.
constexpr int packed_stage_bytes(const KernelConfig& c, const W4Format& format) {
  return slabs_of_tile(c.tile_n, c.tile_k) * w4_slab_bytes(format);
}
// Of a tile: room for the slabs of any format, up to where swizzled rows can begin.
constexpr int packed_tile_bytes(int tile_n, int tile_k) {
  constexpr int kAlignmentBytes = 1024;
  return (slabs_of_tile(tile_n, tile_k) * kW4LargestSlabBytes + kAlignmentBytes - 1) / kAlignmentBytes * kAlignmentBytes;
}

}  // namespace sluice
