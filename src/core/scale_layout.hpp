// Where the scale of an element of an FP8 operand lies: decided here for the kernels, the reference and the tests.
#pragma once

#include <cstdint>

#include "sluice/problem.hpp"

#include "core/host_device.hpp"

namespace sluice {

inline constexpr int kLog2ScaleBlock = 7;
inline constexpr int kScaleBlockElems = 1 << kLog2ScaleBlock;  // of K, and of vectors with Scaling::per_block_128

struct ScaleStrides {
  std::int64_t vector = 0;  // or block of vectors
  std::int64_t k_block = 0;
  std::int64_t batch = 0;
  int block_shift = 0;   // 7 where 128 vectors have the same
  bool along_k = false;  // applied to each 128 of K, and not to the whole sum

  SLUICE_HOST_DEVICE constexpr std::int64_t at(std::int64_t group, std::int64_t v, std::int64_t k) const {
    return group * batch + (v >> block_shift) * vector + (k >> kLog2ScaleBlock) * k_block;
  }
};

// A matrix's scales, as a matrix of their own: `others` times `adjacent` of them.
struct ScaleMatrix {
  std::int64_t adjacent;
  std::int64_t others;
};
SLUICE_HOST_DEVICE constexpr ScaleMatrix scale_matrix(Scaling scaling, Layout layout, std::int64_t vectors, std::int64_t k) {
  const auto blocks = [](std::int64_t extent) { return (extent + kScaleBlockElems - 1) / kScaleBlockElems; };
  const std::int64_t rows = scaling == Scaling::per_block_128 ? blocks(vectors) : scaling == Scaling::per_tensor ? 1 : vectors;
  const std::int64_t columns = scales_along_k(scaling) ? blocks(k) : 1;
  return layout == Layout::row_major ? ScaleMatrix{columns, rows} : ScaleMatrix{rows, columns};
}
// What kPacked means.
SLUICE_HOST_DEVICE constexpr std::int64_t packed_scale_leading(Scaling scaling, const ScaleMatrix& scales) {
  return !scales_along_k(scaling) ? 0 : scales.adjacent < 1 ? 1 : scales.adjacent;
}

SLUICE_HOST_DEVICE constexpr ScaleStrides scale_strides(Scaling scaling, Layout layout, std::int64_t leading, std::int64_t batch_stride) {
  ScaleStrides s{.batch = batch_stride, .along_k = scales_along_k(scaling)};
  if (s.along_k) {
    s.vector = layout == Layout::row_major ? leading : 1;
    s.k_block = layout == Layout::row_major ? 1 : leading;
  } else {
    s.vector = scaling == Scaling::per_vector ? 1 : 0;
  }
  s.block_shift = scaling == Scaling::per_block_128 ? kLog2ScaleBlock : 0;
  return s;
}

// Of a validated problem.
constexpr ScaleStrides scale_strides_a(const GemmProblem& p) {
  return scale_strides(p.scaling_a, p.scale_layout_a, p.ld_scale_a, p.batch_stride_scale_a);
}
constexpr ScaleStrides scale_strides_b(const GemmProblem& p) {
  return scale_strides(p.scaling_b, p.scale_layout_b, p.ld_scale_b, p.batch_stride_scale_b);
}
// along_k: along N.
constexpr ScaleStrides scale_strides_d(const GemmProblem& p) {
  return scale_strides(p.scaling_d, p.scale_layout_d, p.ld_scale_d, p.batch_stride_scale_d);
}
// Whether the scales of D are found, and written.
constexpr bool finds_scales(const GemmProblem& p) { return scales_along_k(p.scaling_d); }

}  // namespace sluice
