// How weights of 4 bits are packed: decided here for the kernels, the packing and the tests. docs/w4.md draws it.
//
// A block is 64 columns of B, a slab 128 elements of K of a block: 4096 bytes of codes, in the order in which the threads of a warpgroup
// take them as wgmma's operand from registers (PTX ISA, "Register Fragments for wgmma.mma_async.m64nNk16", matrix A, and, beside
// activations of 8 bits, m64nNk32), then the scales and the zero points of the slab's groups. The slabs of a block follow one another along
// K, then comes the next block. Columns and elements of K are filled up with weights of zero, so that every tile of a kernel is there in
// whole.
#pragma once

#include <cstdint>

#include "sluice/types.hpp"
#include "sluice/w4_format.hpp"

#include "core/host_device.hpp"

namespace sluice {

inline constexpr int kW4BlockColumns = 64;
inline constexpr int kW4SlabElems = 128;
inline constexpr int kW4ChunkElems = 64;  // of K: what a thread takes in 16 bytes, four steps of wgmma
inline constexpr int kW4ChunksPerSlab = kW4SlabElems / kW4ChunkElems;
inline constexpr int kW4CodeBytes = kW4BlockColumns * kW4SlabElems / 2;
inline constexpr int kW4ChunkBytes = kW4BlockColumns * kW4ChunkElems / 2;
inline constexpr int kW4ScaleBytes = kW4BlockColumns * 2;  // of a group of a block
inline constexpr int kW4ZeroBytes = kW4BlockColumns;
inline constexpr int kW4PaddedColumns = 128;  // tiles are no larger, or multiples
inline constexpr int kW4PaddedElems = 256;
inline constexpr int kW4MiddleCode = 8;    // stands for 0 where there are no zero points
inline constexpr int kW4LargestZero = 16;  // GPTQ stores zero points less one

// Of the scales that lie in a slab, beside activations of that type: those of 8 bits have none of their own, and fp16 holds what
// checkpoints have.
SLUICE_HOST_DEVICE constexpr DataType w4_scale_type(DataType activations) {
  return activations == DataType::bf16 ? DataType::bf16 : DataType::fp16;
}

// Groups whose scales a slab holds: of larger ones each slab has a copy.
SLUICE_HOST_DEVICE constexpr int w4_groups_per_slab(const W4Format& f) {
  return f.group_size > 0 && f.group_size < kW4SlabElems ? kW4SlabElems / f.group_size : 1;
}
// Elements of K that share one of them.
SLUICE_HOST_DEVICE constexpr int w4_elems_per_scale(const W4Format& f) { return kW4SlabElems / w4_groups_per_slab(f); }
SLUICE_HOST_DEVICE constexpr int w4_slab_bytes(const W4Format& f) {
  return kW4CodeBytes + w4_groups_per_slab(f) * (kW4ScaleBytes + (f.zero_points ? kW4ZeroBytes : 0));
}
// The most that a format makes of it.
inline constexpr int kW4LargestSlabBytes = w4_slab_bytes({.group_size = 32, .zero_points = true});
inline constexpr int kW4LargestGroupsPerSlab = w4_groups_per_slab({.group_size = 32});

SLUICE_HOST_DEVICE constexpr std::int64_t w4_blocks(std::int64_t n) {
  return (n + kW4PaddedColumns - 1) / kW4PaddedColumns * (kW4PaddedColumns / kW4BlockColumns);
}
SLUICE_HOST_DEVICE constexpr std::int64_t w4_slabs(std::int64_t k) {
  return (k + kW4PaddedElems - 1) / kW4PaddedElems * (kW4PaddedElems / kW4SlabElems);
}
SLUICE_HOST_DEVICE constexpr std::int64_t w4_matrix_bytes(std::int64_t n, std::int64_t k, const W4Format& f) {
  return w4_blocks(n) * w4_slabs(k) * w4_slab_bytes(f);
}
// Where the slab of column n and element k begins.
SLUICE_HOST_DEVICE constexpr std::int64_t w4_slab_offset(std::int64_t n, std::int64_t k, std::int64_t slabs, const W4Format& f) {
  return (n / kW4BlockColumns * slabs + k / kW4SlabElems) * w4_slab_bytes(f);
}

// A word has, of 16 elements of K, four that a lane of a quad has, in two columns 8 apart (row 0 and 1 of the fragment's 16).
//   16 bits: register r of the fragment is row r % 2 and half r / 2 of the 16; the low elements of its pairs lie in the lower 16 bits
//   8 bits: register r is row r % 2 and has four neighbours along K; those of the first row lie in the lower 16 bits
SLUICE_HOST_DEVICE constexpr int w4_quad_lane(int k, DataType activations) { return size_bytes(activations) == 1 ? k / 4 : k % 8 / 2; }
SLUICE_HOST_DEVICE constexpr int w4_which_of_lane(int k, DataType activations) {
  return size_bytes(activations) == 1 ? k % 4 : k / 8 + k % 2 * 2;
}
// In which 4 bits of the word number `which` of the lane lies.
SLUICE_HOST_DEVICE constexpr int w4_nibble(int row, int which, DataType activations) {
  return size_bytes(activations) == 1 ? which + row * 4 : row + which * 2;
}

// Within a slab: column c of its 64, element k of its 128. A code is the low 4 bits of a byte, or the high ones.
struct W4CodePlace {
  int byte;
  bool high;
};
SLUICE_HOST_DEVICE constexpr W4CodePlace w4_code_place(int c, int k, DataType activations) {
  const int chunk = k / kW4ChunkElems, step = k % kW4ChunkElems / 16, kk = k % 16;
  const int thread = c / 16 * 32 + c % 8 * 4 + w4_quad_lane(kk, activations);
  const int nibble = w4_nibble(c / 8 % 2, w4_which_of_lane(kk, activations), activations);
  return {chunk * kW4ChunkBytes + thread * 16 + step * 4 + nibble / 2, nibble % 2 != 0};
}
// Scales and zero points of columns c and c + 8, which a thread needs together, are neighbours.
SLUICE_HOST_DEVICE constexpr int w4_place_in_group(int c) { return (c / 16 * 8 + c % 8) * 2 + c / 8 % 2; }
SLUICE_HOST_DEVICE constexpr int w4_scale_byte(int c, int group) { return kW4CodeBytes + group * kW4ScaleBytes + w4_place_in_group(c) * 2; }
SLUICE_HOST_DEVICE constexpr int w4_zero_byte(int c, int group, const W4Format& f) {
  return kW4CodeBytes + w4_groups_per_slab(f) * kW4ScaleBytes + group * kW4ZeroBytes + w4_place_in_group(c);
}

}  // namespace sluice
