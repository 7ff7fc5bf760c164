// Boxes of D in fp32 in a staging buffer: results of that type on their way to the copy engine, and those of any type whose elements are
// finished one by one, with C, bias and activation.
#pragma once

#include "kernel/epilogue/elements.cuh"
#include "kernel/epilogue/finish_elements.cuh"
#include "kernel/epilogue/fp8_results.cuh"

namespace sluice {

template <KernelConfig config>
class Fp32Boxes {
 public:
  // Columns [first_q, first_q + width) of one block's fragments into a box, as TileStore::write_box() has them.
  template <int width, int count>
  static SLUICE_DEVICE void write(const EpilogueParams& params, const float (&values)[count], int first_q, float alpha,
                                  arch::SharedAddress buffer) {
    const float factor = applied_to_sums<config>(params) ? 1.0f : alpha;
    const int thread = arch::opaque(arch::thread_in_warpgroup()), warp = thread / 32, lane = thread % 32;
    SLUICE_UNROLL
    for (int j = 0; j < width / 8; ++j) {
      SLUICE_UNROLL
      for (int half = 0; half < 2; ++half) {
        const int p = warp * 16 + half * 8 + lane / 4, q = j * 8 + lane % 4 * 2;
        const float low = factor * values[first_q / 2 + 4 * j + 2 * half];
        const float high = factor * values[first_q / 2 + 4 * j + 2 * half + 1];
        if constexpr (kTransposed) {
          arch::store_shared(in_box<width>(buffer, q, p), low);
          arch::store_shared(in_box<width>(buffer, q + 1, p), high);
        } else {
          arch::store_shared(in_box<width>(buffer, p, q), low, high);
        }
      }
    }
  }

  // A few neighbouring elements of a row of D at a time: alpha is applied already. Four, unless the accumulators leave too few registers.
  // Of the box's columns of Q, [begin, end).
  template <int width>
  static SLUICE_DEVICE void finish(const EpilogueParams& params, BoxCorner at, arch::SharedAddress buffer, int begin, int end) {
    constexpr int kGroup = accumulators_per_thread(config) > 176 ? 2 : 4;
    constexpr int kRows = kTransposed ? width : kWgmmaRows;
    constexpr int kGroupsPerRow = (kTransposed ? kWgmmaRows : width) / kGroup;
    const bool in_fp8 = promotes(config) && is_fp8(params.type_d);
    const float inverse = in_fp8 ? inverse_scale<config>(params, at.batch) : 1.0f;
    SLUICE_NO_UNROLL
    for (int i = arch::opaque(arch::thread_in_warpgroup()); i < kRows * kGroupsPerRow; i += kWarpgroupThreads) {
      const int row = i / kGroupsPerRow, column = i % kGroupsPerRow * kGroup;
      if (at.m + row >= at.row_end || at.n + column >= params.n) continue;
      if ((kTransposed ? row : column) < begin || (kTransposed ? row : column) >= end) continue;
      float sums[kGroup];
      arch::load_shared(in_box<width>(buffer, row, column), sums);
      if constexpr (promotes(config)) {
        if (in_fp8) {
          finish_in_fp8<config>(params, at.m + row, at.n + column, at.batch, sums, inverse);
          continue;
        }
      }
      finish_elements(params, at.m + row, at.n + column, at.batch, sums);
    }
  }

 private:
  static constexpr bool kTransposed = swapped(config);

  // Where element (row, column) of the box's part of D lies. Swapped boxes have 64 columns, in two halves of 32.
  template <int width>
  static SLUICE_DEVICE arch::SharedAddress in_box(arch::SharedAddress buffer, int row, int column) {
    if constexpr (kTransposed)
      return buffer + column / 32 * (width * kSwizzleBytes) + packet_offset<kSwizzleBytes>(row, column % 32 / 4) + column % 4 * 4;
    else
      return buffer + packet_offset<width * 4>(row, column / 4) + column % 4 * 4;
  }
};

}  // namespace sluice
