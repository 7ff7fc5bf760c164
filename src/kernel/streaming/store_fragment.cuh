// What a warp has of a strip of 16 columns, by mma's layout of its sums (PTX ISA, "Matrix Fragments for mma.m16n8k16"), goes to memory.
#pragma once

#include <cstdint>

#include "kernel/epilogue/finish_elements.cuh"
#include "kernel/gemm_params.cuh"

namespace sluice {

// Nothing but rounded: all that the next launch waits for is little code, and that without a turn.
template <DataType type>
SLUICE_DEVICE void store_rounded_fragment(const EpilogueParams& params, const float (&total)[4], int m, int n) {
  auto* const d = static_cast<typename Element<type>::Type*>(params.d) + m * params.ldd_elems + n;
  SLUICE_UNROLL
  for (int e = 0; e < 4; ++e) {
    const int row = e % 2, column = e / 2 * 8;
    if (m + row < params.m && n + column < params.n)
      arch::store_global(d + row * params.ldd_elems + column, Element<type>::from_float(params.alpha * total[e]));
  }
}

// The fragment's rows begin at `first_row` of D, the strip's columns at `first_column`. `type`: of D, where path is StorePath::rounded.
template <DataType type>
SLUICE_DEVICE void store_fragment(const EpilogueParams& params, const float (&total)[4], int first_row, int first_column, int lane) {
  const int m = first_row + lane % 4 * 2, n = first_column + lane / 4;
  if (params.path == StorePath::rounded) return store_rounded_fragment<type>(params, total, m, n);
  SLUICE_NO_UNROLL
  for (int e = 0; e < 4; ++e) {
    const int row = m + e % 2, column = n + e / 2 * 8;
    if (row >= params.m || column >= params.n) continue;
    float x[1] = {params.alpha * (e < 2 ? (e == 0 ? total[0] : total[1]) : (e == 2 ? total[2] : total[3]))};
    finish_elements(params, row, column, 0, x);
  }
}

}  // namespace sluice
