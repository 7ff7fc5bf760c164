// The scale of numbers that share one: the rule of quantize() and of results in FP8.
#pragma once

#include <limits>

#include "sluice/types.hpp"

#include "arch/streaming.cuh"

namespace sluice {

// largest: of their magnitudes, NaNs left out. Not all are zeros.
SLUICE_DEVICE float scale_of_numbers(DataType type, float largest) {
  const float largest_number = type == DataType::e4m3 ? 448.0f : 57344.0f;
  return arch::maximum(largest / largest_number, std::numeric_limits<float>::min());  // one that has a reciprocal
}
// Zeros have the scale 1.
SLUICE_DEVICE float scale_of_block(DataType type, float largest) { return largest == 0.0f ? 1.0f : scale_of_numbers(type, largest); }

}  // namespace sluice
