// From codes of 4 bits to numbers of 16, two at a time.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <type_traits>

#include "sluice/types.hpp"

#include "arch/sm90/device.cuh"
#include "arch/sm90/numbers.cuh"

namespace sluice::arch {

// The number 2^7 (bf16) or 2^10 (fp16): the last bit of its mantissa counts 1, so that a code put there adds itself.
template <DataType type>
inline constexpr std::uint32_t kCodeOffset = type == DataType::bf16 ? 0x4300 : 0x6400;

// 16 bits in both halves of a word: a scale, and a zero point from 0 to 127 as the number that a code of its value would be.
SLUICE_DEVICE std::uint32_t in_both_halves(std::uint32_t bits) { return __byte_perm(bits, 0, 0x1010); }
template <DataType type>
SLUICE_DEVICE std::uint32_t zero_point_pair(std::uint32_t zero) {
  return in_both_halves(zero) | kCodeOffset<type> * 0x10001;
}

template <DataType type>
SLUICE_DEVICE auto as_pair(std::uint32_t bits) {
  using Pair = std::conditional_t<type == DataType::bf16, __nv_bfloat162, __half2>;
  return reinterpret_cast<const Pair&>(bits);
}
template <class Pair>
SLUICE_DEVICE std::uint32_t pair_bits(const Pair& pair) {
  return reinterpret_cast<const std::uint32_t&>(pair);
}

// (a & b) | c in one instruction: written in C++, two constants take two.
SLUICE_DEVICE std::uint32_t and_or(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
  std::uint32_t result;
  asm("lop3.b32 %0, %1, %2, %3, 0xEA;" : "=r"(result) : "r"(a), "r"(b), "r"(c));
  return result;
}

// The codes 0 to 3 of `word` and, beside each, code 4 to 7, less their zero point: exact. Numbers of code 0 and 2 have the first zero
// point, those of code 1 and 3 the second.
template <DataType type>
SLUICE_DEVICE void dequantise(std::uint32_t word, const std::uint32_t (&zeros)[2], std::uint32_t (&numbers)[4]) {
  constexpr std::uint32_t kCodes = 0x000f000f;
#pragma unroll
  for (int i = 0; i < 4; ++i)
    numbers[i] = pair_bits(__hsub2(as_pair<type>(and_or(word >> 4 * i, kCodes, kCodeOffset<type> * 0x10001)), as_pair<type>(zeros[i % 2])));
}

// Times their scales, rounded. (One fused multiply-add instead of both would round offset * scale, and be wrong by several steps.)
template <DataType type>
SLUICE_DEVICE void scale_pairs(std::uint32_t (&numbers)[4], const std::uint32_t (&scales)[2]) {
#pragma unroll
  for (int i = 0; i < 4; ++i) numbers[i] = pair_bits(__hmul2(as_pair<type>(numbers[i]), as_pair<type>(scales[i % 2])));
}

// The lower half of a word.
template <DataType type>
SLUICE_DEVICE float as_number(std::uint32_t bits) {
  const auto low = static_cast<std::uint16_t>(bits);
  return type == DataType::bf16 ? bf16_to_float(low) : fp16_to_float(low);
}

}  // namespace sluice::arch
