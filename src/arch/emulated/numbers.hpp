// The number formats of the tensor cores and the epilogue.
#pragma once

#include <bit>
#include <cstdint>

#include "sluice/verify.hpp"

namespace sluice::arch::emulated {

inline std::uint16_t float_to_bf16(float x) { return to_bf16_bits(x); }
inline std::uint16_t float_to_fp16(float x) { return to_fp16_bits(x); }
inline float bf16_to_float(std::uint16_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }
inline float fp16_to_float(std::uint16_t bits) { return from_fp16_bits(bits); }

// OCP 8-bit floating point: e4m3 has no infinities and one NaN, e5m2 is a short fp16.
inline float e5m2_to_float(std::uint8_t bits) { return from_fp16_bits(static_cast<std::uint16_t>(bits << 8)); }
inline float e4m3_to_float(std::uint8_t bits) {
  const int exponent = bits >> 3 & 15, fraction = bits & 7;
  const float sign = (bits & 0x80) != 0 ? -1.0f : 1.0f;
  if (exponent == 15 && fraction == 7) return std::bit_cast<float>(0x7fffffffu);
  if (exponent == 0) return sign * static_cast<float>(fraction) * 0x1p-9f;
  return sign * std::bit_cast<float>(static_cast<std::uint32_t>(exponent + 120) << 23 | static_cast<std::uint32_t>(fraction) << 20);
}

}  // namespace sluice::arch::emulated
