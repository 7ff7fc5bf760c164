// What a launch passes to a GEMM kernel about the scales of its operands.
#pragma once

#include <cstdint>

namespace sluice {

// The scales of an FP8 operand: that of vector v over the b-th 128 of K in matrix g is
// data[(v >> block_shift) * vector_stride + b * k_stride + g * batch_stride].
struct ScaleParams {
  const float* data;  // null: none
  std::int64_t vector_stride;
  std::int64_t k_stride;
  std::int64_t batch_stride;
  std::int32_t vectors;      // of the operand
  std::int32_t block_shift;  // 7 where 128 vectors have the same
  bool along_k;              // applied to each 128 of K, and not to the whole sum
};

}  // namespace sluice
