#include "reference/fp8_result.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "reference/rounding.hpp"
#include "reference/scale_of_block.hpp"

namespace sluice {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

}  // namespace

// A NaN has no part in the greatest magnitude, and what may be one need not have.
void LargestMagnitude::add(const ElementBound& value) {
  if (value.anything) {
    highest_ = kInfinity;
  } else if (!std::isnan(value.lowest)) {
    const double low = std::abs(value.lowest), high = std::abs(value.highest);
    const bool around_zero = value.nan_allowed || (value.lowest <= 0 && value.highest >= 0);
    lowest_ = std::max(lowest_, around_zero ? 0.0 : std::min(low, high));
    highest_ = std::max({highest_, low, high});
  }
}

// Both ends are numbers of fp32, and the rule rises with the magnitude, but for that of 0.
bool LargestMagnitude::allows(DataType type, float scale) const {
  if (lowest_ == 0 && scale == 1.0f) return true;
  const float lowest = lowest_ == 0 ? std::numeric_limits<float>::denorm_min() : static_cast<float>(lowest_);
  return highest_ > 0 && scale >= scale_of_block(type, lowest) && scale <= scale_of_block(type, static_cast<float>(highest_));
}

ElementBound quantised(const ElementBound& value, float scale, DataType type) {
  if (value.anything) return value;
  const float inverse = 1.0f / scale;
  const float one = static_cast<float>(value.lowest) * inverse, other = static_cast<float>(value.highest) * inverse;
  ElementBound bound;
  bound.nan_allowed = value.nan_allowed || std::isnan(one) || std::isnan(other) ||
                      (std::isinf(inverse) && value.lowest <= 0 && value.highest >= 0);  // 0 times infinity
  // Multiplying and rounding are monotone: what lies between two numbers comes to lie between their results.
  bound.lowest = round_to(type, std::min(one, other));
  bound.highest = round_to(type, std::max(one, other));
  bound.reference = std::clamp(value.reference * inverse, round_to(type, -kInfinity), round_to(type, kInfinity));
  return bound;
}

}  // namespace sluice
