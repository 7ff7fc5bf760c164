// bf16, fp16 and the two FP8 types as bits, and back. Branch-free towards fp32, so that loops over them are vectorised.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

namespace sluice {

inline float bf16_to_float(std::uint16_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }

inline float fp16_to_float(std::uint16_t bits) {
  constexpr std::uint32_t kRebias = (127 - 15) << 23;
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000u) << 16;
  const std::uint32_t exponent = bits & 0x7c00u;
  const std::uint32_t magnitude = static_cast<std::uint32_t>(bits & 0x7fffu) << 13;
  // 2^-14 (1 + fraction) - 2^-14 is exact, and no fp32 denormal is touched: the caller's thread may flush those to zero.
  constexpr std::uint32_t kSmallestNormal = 113u << 23;
  const float denormal = std::bit_cast<float>(magnitude + kSmallestNormal) - std::bit_cast<float>(kSmallestNormal);
  const std::uint32_t normal = magnitude + (exponent == 0x7c00u ? 2 * kRebias : kRebias);
  return std::bit_cast<float>((exponent == 0 ? std::bit_cast<std::uint32_t>(denormal) : normal) | sign);
}

// OCP 8-bit Floating Point Specification (2023). e5m2 is the upper half of an fp16. e4m3 has no infinities, and of the numbers with the
// largest exponent only the one of all ones is a NaN: seen as an fp16 whose exponent lacks its upper bit, all others are finite.
inline float e5m2_to_float(std::uint8_t bits) { return fp16_to_float(static_cast<std::uint16_t>(bits << 8)); }
inline float e4m3_to_float(std::uint8_t bits) {
  constexpr float kRebias = 1 << (15 - 7);
  const float value = kRebias * fp16_to_float(static_cast<std::uint16_t>((bits & 0x80) << 8 | (bits & 0x7f) << 7));
  return (bits & 0x7f) == 0x7f ? std::bit_cast<float>(0x7fffffffu) : value;
}

inline std::uint16_t float_to_bf16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fff;  // the GPU's one NaN
  return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

inline std::uint16_t float_to_fp16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint16_t sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000u);
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return 0x7fff;
  constexpr std::uint32_t kFirstThatRoundsToInfinity = 0x477ff000u;  // 65520
  if (magnitude >= kFirstThatRoundsToInfinity) return sign | 0x7c00u;
  constexpr std::uint32_t kSmallestNormal = 113u << 23;  // 2^-14
  if (magnitude < kSmallestNormal) {
    // The unit in the last place of 0.5 is 2^-24, fp16's smallest denormal: the addition rounds.
    const float rounded = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(rounded) - std::bit_cast<std::uint32_t>(0.5f)));
  }
  const std::uint32_t rebiased = magnitude - (112u << 23);
  return static_cast<std::uint16_t>(sign | ((rebiased + 0xfffu + ((rebiased >> 13) & 1u)) >> 13));
}

// To nearest even, and what is beyond the largest finite number becomes that: cvt.rn.satfinite, infinities included.
template <int fraction_bits, int bias>
std::uint8_t float_to_fp8(float value, float largest) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7f;
  const std::uint32_t sign = bits >> 24 & 0x80u;
  const std::uint32_t magnitude = std::min(bits & 0x7fffffffu, std::bit_cast<std::uint32_t>(largest));
  constexpr std::uint32_t kDropped = 23 - fraction_bits, kSmallestNormal = (128u - bias) << 23;
  if (magnitude < kSmallestNormal) {
    // A power of two whose unit in the last place is the smallest denormal: the addition rounds.
    const float unit = std::bit_cast<float>((128u - bias + kDropped) << 23);
    return static_cast<std::uint8_t>(
        sign | (std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + unit) - std::bit_cast<std::uint32_t>(unit)));
  }
  const std::uint32_t rebiased = magnitude - ((127u - bias) << 23);
  return static_cast<std::uint8_t>(sign | ((rebiased + (1u << (kDropped - 1)) - 1 + (rebiased >> kDropped & 1u)) >> kDropped));
}
inline std::uint8_t float_to_e4m3(float value) { return float_to_fp8<3, 7>(value, 448.0f); }
inline std::uint8_t float_to_e5m2(float value) { return float_to_fp8<2, 15>(value, 57344.0f); }

}  // namespace sluice
