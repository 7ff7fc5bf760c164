// What a launch passes to a GEMM kernel about scales.
#pragma once

#include <cstdint>

#include "core/scale_layout.hpp"

namespace sluice {

// Of one FP8 operand.
struct ScaleParams {
  const float* data;  // null: none
  ScaleStrides strides;
  std::int32_t vectors;  // of the operand
  bool runs;  // those of neighbouring vectors are neighbours, a tile's first lies at a multiple of 16 bytes, and its last ends at one
};

// Of D in FP8.
struct ResultScaleParams {
  float* data;  // null: none
  ScaleStrides strides;
};

}  // namespace sluice
