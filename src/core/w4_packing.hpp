// How the threads of the packing kernels share out their work: decided here for the kernels and for those who launch them.
#pragma once

#include <cstdint>

#include "sluice/w4.hpp"

#include "core/host_device.hpp"
#include "core/w4_layout.hpp"

namespace sluice {

// A CTA packs a slab: each thread makes 16 bytes of its codes, what a thread of a warpgroup will take of a chunk, and at most one scale.
inline constexpr int kPackW4Threads = kW4CodeBytes / 16;
inline constexpr int kW4StepsPerChunk = kW4ChunkElems / 16;
static_assert(kPackW4Threads == 256 && kW4LargestGroupsPerSlab * kW4BlockColumns <= kPackW4Threads);

// What lies in the 16 bytes of a thread of a chunk, w4_code_place() turned round: in two columns 8 apart, of which this is the first, and
// in word `step` number `which` of four elements of K, this one of the chunk.
SLUICE_HOST_DEVICE constexpr int w4_first_column(int thread) { return thread / 32 * 16 + thread % 32 / 4; }
SLUICE_HOST_DEVICE constexpr int w4_element_at(int thread, int step, int which, DataType activations) {
  const int lane = thread % 4;
  return step * 16 + (size_bytes(activations) == 1 ? lane * 4 + which : lane * 2 + which % 2 * 8 + which / 2);
}
// Whose scale lies at that place of a group, w4_place_in_group() turned round.
SLUICE_HOST_DEVICE constexpr int w4_column_at_place(int place) { return place / 16 * 16 + place % 16 / 2 + place % 2 * 8; }

constexpr bool w4_elements_are_where_codes_are(DataType activations) {
  for (int thread = 0; thread < 128; ++thread)
    for (int step = 0; step < kW4StepsPerChunk; ++step)
      for (int code = 0; code < 8; ++code) {
        const int row = code % 2, k = w4_element_at(thread, step, code / 2, activations), nibble = w4_nibble(row, code / 2, activations);
        const W4CodePlace place = w4_code_place(w4_first_column(thread) + row * 8, k, activations);
        if (place.byte != thread * 16 + step * 4 + nibble / 2 || place.high != (nibble % 2 != 0)) return false;
      }
  for (int c = 0; c < kW4BlockColumns; ++c)
    if (w4_column_at_place(w4_place_in_group(c)) != c) return false;
  return true;
}
static_assert(w4_elements_are_where_codes_are(DataType::bf16) && w4_elements_are_where_codes_are(DataType::e4m3));

// In which 4 bits of its word AWQ keeps a column: those of even number come first.
SLUICE_HOST_DEVICE constexpr int awq_nibble(int column) { return column % 8 / 2 + column % 2 * 4; }

constexpr std::int64_t w4_group_of(std::int64_t k, const W4Format& f) { return f.group_size == 0 ? 0 : k / f.group_size; }

// A code of no element. Where the group has others, its scale is not 0, and the zero point makes the weight 0; 16 has no code, and 15 is
// next.
SLUICE_HOST_DEVICE constexpr int w4_padding_code(int zero) { return zero < 15 ? zero : 15; }

// permute_columns(): a thread makes 16 bytes of each of some rows, so that it reads its part of the order once for all of them.
inline constexpr int kPermuteThreads = 128;
inline constexpr int kPermuteElems = 8;
inline constexpr int kPermuteRows = 8;
constexpr std::int64_t permute_strips(std::int64_t k) {
  return (k + kPermuteElems * kPermuteThreads - 1) / (kPermuteElems * kPermuteThreads);
}
constexpr std::int64_t permute_ctas(const PermuteColumnsProblem& p) {
  return (p.m + kPermuteRows - 1) / kPermuteRows * permute_strips(p.k);
}

}  // namespace sluice
