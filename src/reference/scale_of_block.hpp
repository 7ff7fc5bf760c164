// The scale of numbers that share one: docs/quantize.md.
#pragma once

#include <algorithm>
#include <limits>

#include "sluice/types.hpp"

namespace sluice {

// largest: of their magnitudes.
inline float scale_of_block(DataType type, float largest) {
  if (largest == 0.0f) return 1.0f;
  const float largest_number = type == DataType::e4m3 ? 448.0f : 57344.0f;
  return std::max(largest / largest_number, std::numeric_limits<float>::min());
}

}  // namespace sluice
