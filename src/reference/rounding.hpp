// Rounding of a double to the output types, written from the formats' definitions and sharing nothing with number_conversion.hpp.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "sluice/types.hpp"

namespace sluice {

struct FloatFormat {
  int significand_bits;   // the hidden one included
  int smallest_exponent;  // of a normal number 1.f x 2^e
  int largest_exponent;
};

constexpr FloatFormat format_of(DataType type) {
  switch (type) {
    case DataType::bf16:
      return {8, -126, 127};
    case DataType::fp16:
      return {11, -14, 15};
    case DataType::e4m3:
      return {4, -6, 8};
    case DataType::e5m2:
      return {3, -14, 15};
    case DataType::fp32:
    case DataType::int4:  // never results
      break;
  }
  return {24, -126, 127};
}

// To nearest, ties to even, denormals kept; beyond the largest finite number to infinity, or in FP8 to that number.
inline double round_to(DataType type, double value) {
  const double largest_fp8 = type == DataType::e4m3 ? 448 : 57344;
  if (is_fp8(type) && std::abs(value) >= largest_fp8) return std::copysign(largest_fp8, value);
  if (value == 0 || !std::isfinite(value)) return value;
  const FloatFormat format = format_of(type);
  const int exponent = std::max(std::ilogb(value), format.smallest_exponent) - (format.significand_bits - 1);
  const double rounded = std::scalbn(std::nearbyint(std::scalbn(value, -exponent)), exponent);
  const double limit = std::scalbn(1.0, format.largest_exponent + 1);
  return std::abs(rounded) < limit ? rounded : std::copysign(std::numeric_limits<double>::infinity(), value);
}

}  // namespace sluice
