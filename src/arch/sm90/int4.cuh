// From codes of 4 bits to numbers: of 16 bits two at a time, of e4m3 four at a time.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <type_traits>

#include "sluice/types.hpp"

#include "arch/code_table.hpp"
#include "arch/sm90/device.cuh"
#include "arch/sm90/numbers.cuh"

namespace sluice::arch {

// 16 bits in both halves of a word.
SLUICE_DEVICE std::uint32_t in_both_halves(std::uint32_t bits) { return __byte_perm(bits, 0, 0x1010); }

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

// Of both halves, rounded once. (Subnormal numbers of bf16 are what they are.)
template <DataType type>
SLUICE_DEVICE std::uint32_t multiply_pairs(std::uint32_t a, std::uint32_t b) {
  return pair_bits(__hmul2(as_pair<type>(a), as_pair<type>(b)));
}
template <DataType type>
SLUICE_DEVICE std::uint32_t multiply_add_pairs(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
  return pair_bits(__hfma2(as_pair<type>(a), as_pair<type>(b), as_pair<type>(c)));
}

// The lower half of a word.
template <DataType type>
SLUICE_DEVICE float as_number(std::uint32_t bits) {
  const auto low = static_cast<std::uint16_t>(bits);
  return type == DataType::bf16 ? bf16_to_float(low) : fp16_to_float(low);
}

// Numbers of e4m3 are looked up: there are 16.
static __device__ const CodeTables kCodeTables = all_code_tables();

// That of a zero point; of one above 16, which no source has, that of 16.
SLUICE_DEVICE CodeTable code_table(std::uint32_t zero) {
  const CodeTable* const table = kCodeTables.of + min(zero, static_cast<std::uint32_t>(kLargestZeroPoint));
  const uint4 words = __ldg(reinterpret_cast<const uint4*>(table));
  return {{words.x, words.y, words.z, words.w}};
}

// (Written in C++, __byte_perm() masks the selector first.)
SLUICE_DEVICE std::uint32_t permute_bytes(std::uint32_t low, std::uint32_t high, std::uint32_t selector) {
  std::uint32_t bytes;
  asm("prmt.b32 %0, %1, %2, %3;" : "=r"(bytes) : "r"(low), "r"(high), "r"(selector));
  return bytes;
}

// Codes 0 to 3 of `word` by the first table, 4 to 7 by the second. A byte permutation takes one of 8 bytes by the low three bits of each 4
// of its selector's lower 16, and reads the fourth as a wish for signs: so one for each half of a table, and one more that chooses by the
// codes' fourth bits.
SLUICE_DEVICE void look_up_codes(std::uint32_t word, const CodeTable& low, const CodeTable& high, std::uint32_t& first,
                                 std::uint32_t& second) {
  constexpr std::uint32_t kLowBits = 0x77777777, kFourthBit = 0x44444444, kInOrder = 0x32103210;
  const std::uint32_t selector = word & kLowBits, chosen = and_or(word >> 1, kFourthBit, kInOrder);
  const auto four = [](const CodeTable& t, std::uint32_t select, std::uint32_t choose) {
    return permute_bytes(permute_bytes(t.words[0], t.words[1], select), permute_bytes(t.words[2], t.words[3], select), choose);
  };
  first = four(low, selector, chosen);
  second = four(high, selector >> 16, chosen >> 16);
}

}  // namespace sluice::arch

#include "arch/codes.cuh"
