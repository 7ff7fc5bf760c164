// One weight of 4 bits from packed ones, by the letter of core/w4_layout.hpp.
#pragma once

#include <cstdint>
#include <cstring>

#include "sluice/types.hpp"

#include "core/w4_layout.hpp"
#include "reference/number_conversion.hpp"

namespace sluice {

inline float from_16_bits(std::uint16_t bits, DataType type) { return type == DataType::bf16 ? bf16_to_float(bits) : fp16_to_float(bits); }
inline std::uint16_t to_16_bits(float number, DataType type) {
  return type == DataType::bf16 ? float_to_bf16(number) : float_to_fp16(number);
}

// Of column n and element k, packed for activations of `type`. Exact: fp32 holds a number of 5 bits times one of up to 11.
inline float w4_weight(const void* packed, std::int64_t n, std::int64_t k, std::int64_t slabs, const W4Format& format, DataType type) {
  const auto* const slab = static_cast<const std::uint8_t*>(packed) + w4_slab_offset(n, k, slabs, format);
  const int c = static_cast<int>(n % kW4BlockColumns), in_slab = static_cast<int>(k % kW4SlabElems);
  const int group = in_slab / w4_elems_per_scale(format);
  const W4CodePlace place = w4_code_place(c, in_slab, type);
  const int code = place.high ? slab[place.byte] >> 4 : slab[place.byte] & 15;
  const int zero = format.zero_points ? slab[w4_zero_byte(c, group, format)] : kW4MiddleCode;
  std::uint16_t bits = 0;
  std::memcpy(&bits, slab + w4_scale_byte(c, group), sizeof bits);
  return static_cast<float>(code - zero) * from_16_bits(bits, w4_scale_type(type));
}

}  // namespace sluice
