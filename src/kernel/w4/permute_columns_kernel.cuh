// The kernel that brings columns of 16 bits into another order: it reads wherever the order says, of a few rows that L1 holds, and writes
// 16 bytes at a time.
#pragma once

#include <cstdint>

#include "arch/arch.cuh"
#include "core/w4_packing.hpp"
#include "kernel/w4/w4_params.hpp"

namespace sluice {

inline constexpr int kPermuteCtasPerSm = 8;

SLUICE_DEVICE void run_permute_columns_kernel(const PermuteColumnsParams& p) {
  arch::allow_successor();
  arch::wait_for_predecessor();
  struct alignas(16) Vector {
    std::uint16_t elements[kPermuteElems];
  };
  const int cta = arch::cta_in_grid(), rows = cta / p.strips, strip = cta - rows * p.strips;
  const int first_row = rows * kPermuteRows;
  const int column = (strip * kPermuteThreads + arch::warp_in_cta() * 32 + arch::lane()) * kPermuteElems;
  if (column >= p.k) return;
  std::int32_t source[kPermuteElems];
  SLUICE_UNROLL
  for (int i = 0; i < kPermuteElems; ++i) source[i] = column + i < p.k ? arch::load_global(p.order + column + i) : 0;
  SLUICE_UNROLL
  for (int r = 0; r < kPermuteRows; ++r) {
    const std::int64_t row = first_row + r;
    if (row >= p.m) return;
    Vector vector;
    SLUICE_UNROLL
    for (int i = 0; i < kPermuteElems; ++i) vector.elements[i] = arch::load_global(p.from + row * p.ld_from + source[i]);
    std::uint16_t* const target = p.to + row * p.ld_to + column;
    if (p.by_vectors) {
      arch::store_global(reinterpret_cast<Vector*>(target), vector);
    } else {
      SLUICE_UNROLL
      for (int i = 0; i < kPermuteElems; ++i)
        if (column + i < p.k) arch::store_global(target + i, vector.elements[i]);
    }
  }
}

}  // namespace sluice
