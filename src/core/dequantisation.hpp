// What weights of 4 bits add to a kernel's layout.
#pragma once

#include "sluice/kernel_config.hpp"

#include "core/w4_layout.hpp"

namespace sluice {

// Whether P, the weights, comes as codes of 4 bits, which the consumers turn into numbers on their way into registers.
constexpr bool dequantises(const KernelConfig& c) { return c.type_b == DataType::int4; }
// Of a tile: room for the slabs of any format, up to where swizzled rows can begin.
constexpr int packed_tile_bytes(int tile_n, int tile_k) {
  constexpr int kAlignmentBytes = 1024;
  const int slabs = tile_n / kW4BlockColumns * (tile_k / kW4SlabElems);
  return (slabs * kW4LargestSlabBytes + kAlignmentBytes - 1) / kAlignmentBytes * kAlignmentBytes;
}

}  // namespace sluice
