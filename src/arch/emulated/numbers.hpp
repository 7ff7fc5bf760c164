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

inline float e5m2_to_float(std::uint8_t bits) { return from_e5m2_bits(bits); }
inline float e4m3_to_float(std::uint8_t bits) { return from_e4m3_bits(bits); }

}  // namespace sluice::arch::emulated
