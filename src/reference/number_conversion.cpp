#include "reference/number_conversion.hpp"

#include "sluice/verify.hpp"

namespace sluice {

std::uint16_t to_bf16_bits(float value) { return float_to_bf16(value); }
float from_bf16_bits(std::uint16_t bits) { return bf16_to_float(bits); }
std::uint16_t to_fp16_bits(float value) { return float_to_fp16(value); }
float from_fp16_bits(std::uint16_t bits) { return fp16_to_float(bits); }
std::uint8_t to_e4m3_bits(float value) { return float_to_e4m3(value); }
float from_e4m3_bits(std::uint8_t bits) { return e4m3_to_float(bits); }
std::uint8_t to_e5m2_bits(float value) { return float_to_e5m2(value); }
float from_e5m2_bits(std::uint8_t bits) { return e5m2_to_float(bits); }

}  // namespace sluice
