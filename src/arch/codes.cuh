// From codes of 4 bits to pairs of numbers of 16: nine instructions for eight codes (code_line.hpp).
#pragma once

#include <cstdint>

#include "arch/code_line.hpp"

namespace sluice::arch {

// code - zero: of the two rows' zero points, from 0 to 16.
template <DataType type>
SLUICE_DEVICE CodeLine line_of_zeros(std::uint32_t first, std::uint32_t second) {
  using Numbers = CodeNumbers<type>;
  CodeLine line{{Numbers::kFirstFactor, Numbers::kSecondFactor}, {}};
  if constexpr (type == DataType::bf16) {
    line.addends[0] = multiply_pairs<type>(in_both_halves(first), Numbers::kMinusFirstFactor);
    line.addends[1] = multiply_pairs<type>(in_both_halves(second), Numbers::kMinusFirstFactor);
  } else {
    line.addends[0] = in_both_halves(first) | Numbers::kFirstAddend;
    line.addends[1] = in_both_halves(second << 4) | Numbers::kSecondAddend;
  }
  return line;
}
// code - 8
template <DataType type>
SLUICE_DEVICE CodeLine middle_line() {
  using Numbers = CodeNumbers<type>;
  if constexpr (type == DataType::bf16)
    return {{Numbers::kFirstFactor, Numbers::kSecondFactor}, {Numbers::kMinusEight, Numbers::kMinusEight}};
  else
    return line_of_zeros<type>(8, 8);
}

// (code - 8) x scale, rounded once, in bf16: the rows' scales, in the lower and the upper half of a word.
template <DataType type>
SLUICE_DEVICE CodeLine line_of_scales(std::uint32_t scales) {
  using Numbers = CodeNumbers<type>;
  const std::uint32_t first = in_both_halves(scales), second = in_both_halves(scales >> 16);
  return {{multiply_pairs<type>(first, Numbers::kFirstFactor), multiply_pairs<type>(second, Numbers::kSecondFactor)},
          {multiply_pairs<type>(first, Numbers::kMinusEight), multiply_pairs<type>(second, Numbers::kMinusEight)}};
}

// The codes 0 to 3 of `word` and, beside each, code 4 to 7. Code 0 and 2 are of the first row, 1 and 3 of the second. What numbers leave
// out is CodeNumbers<type>::kLeftOut.
template <DataType type>
SLUICE_DEVICE void dequantise(std::uint32_t word, const CodeLine& line, std::uint32_t (&numbers)[4]) {
  constexpr std::uint32_t kBase = CodeNumbers<type>::kBase;
  const std::uint32_t behind = word >> 8;
  numbers[0] = multiply_add_pairs<type>(and_or(word, kCodesOfFirstRow, kBase), line.factors[0], line.addends[0]);
  numbers[1] = multiply_add_pairs<type>(and_or(word, kCodesOfSecondRow, kBase), line.factors[1], line.addends[1]);
  numbers[2] = multiply_add_pairs<type>(and_or(behind, kCodesOfFirstRow, kBase), line.factors[0], line.addends[0]);
  numbers[3] = multiply_add_pairs<type>(and_or(behind, kCodesOfSecondRow, kBase), line.factors[1], line.addends[1]);
}

// Times the rows' scales, rounded.
template <DataType type>
SLUICE_DEVICE void scale_pairs(std::uint32_t (&numbers)[4], std::uint32_t scales) {
  const std::uint32_t first = in_both_halves(scales), second = in_both_halves(scales >> 16);
  SLUICE_UNROLL
  for (int i = 0; i < 4; ++i) numbers[i] = multiply_pairs<type>(numbers[i], i % 2 == 0 ? first : second);
}

}  // namespace sluice::arch
