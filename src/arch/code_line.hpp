// How two codes of 4 bits become two numbers of 16 by one multiplication and addition: constants that are the same on both machines.
//
// Below the last bit of its exponent bf16 counts in steps of 2^-133, the smallest there is: subnormal numbers up to 127 of them, then those
// with an exponent of one. So a code in bits 0 to 3 is code x 2^-133, one in bits 4 to 7 is code x 2^-129, and (code - zero) x 2^-32 is one
// multiplication by a power of two and an addition, exact. With a scale in the factor, and -8 x scale, which is exact as well, for an
// addend, it is (code - 8) x scale x 2^-32, rounded once. 2^-32, because the factors would be too large without it: whoever adds up
// such numbers multiplies the sum by what they leave out.
// fp16 has too few exponents for that. Its codes are put into the last bits of 1024, where bit 0 counts 1, and nothing is left out.
#pragma once

#include <cstdint>

#include "sluice/types.hpp"

namespace sluice::arch {

// Where the codes of the first and the second row lie, in each half of a word; the next two after a shift by 8.
inline constexpr std::uint32_t kCodesOfFirstRow = 0x000f000f, kCodesOfSecondRow = 0x00f000f0;

// The number made of a row's code is factor x (kBase | code) + addend, of all four in both halves of a word.
struct CodeLine {
  std::uint32_t factors[2];  // of the rows
  std::uint32_t addends[2];
};

template <DataType type>
struct CodeNumbers;

template <>
struct CodeNumbers<DataType::bf16> {
  static constexpr std::uint32_t kBase = 0;
  static constexpr float kLeftOut = 0x1p32f;
  static constexpr std::uint32_t kFirstFactor = 0x72007200, kSecondFactor = 0x70007000;  // 2^101, 2^97
  static constexpr std::uint32_t kMinusEight = 0xb100b100;                               // -8 x 2^-32
  static constexpr std::uint32_t kMinusFirstFactor = 0xf200f200;                         // for a zero point in bits 0 to 3
};
template <>
struct CodeNumbers<DataType::fp16> {
  static constexpr std::uint32_t kBase = 0x64006400;  // 1024
  static constexpr float kLeftOut = 1;
  static constexpr std::uint32_t kFirstFactor = 0x3c003c00, kSecondFactor = 0x2c002c00;  // 1, 1/16
  static constexpr std::uint32_t kFirstAddend = 0xe400e400, kSecondAddend = 0xd400d400;  // -1024, -64: their last bits count 1 and 1/16
};

}  // namespace sluice::arch
