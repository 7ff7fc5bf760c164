// What a code of 4 bits becomes in e4m3: one table for each zero point, the same on both machines.
#pragma once

#include <cstdint>

namespace sluice::arch {

inline constexpr int kLargestZeroPoint = 16;  // core/w4_layout.hpp

// The numbers code - zero of the codes 0 to 15, in order, in bytes of e4m3.
struct alignas(16) CodeTable {
  std::uint32_t words[4];
};

// Exact up to 16: three bits of fraction.
constexpr std::uint32_t e4m3_of_integer(int value) {
  constexpr int kBias = 7, kFractionBits = 3, kSign = 0x80;
  const int magnitude = value < 0 ? -value : value;
  if (magnitude == 0) return 0;
  int exponent = 0;
  while (magnitude >> (exponent + 1) != 0) ++exponent;
  const int fraction = (magnitude << kFractionBits >> exponent) - (1 << kFractionBits);
  return static_cast<std::uint32_t>((value < 0 ? kSign : 0) | (exponent + kBias) << kFractionBits | fraction);
}

constexpr CodeTable code_table_of(int zero) {
  CodeTable table{};
  for (int code = 0; code < 16; ++code) table.words[code / 4] |= e4m3_of_integer(code - zero) << (8 * (code % 4));
  return table;
}
static_assert(e4m3_of_integer(1) == 0x38 && e4m3_of_integer(15) == 0x57 && e4m3_of_integer(-16) == 0xd8);

struct CodeTables {
  CodeTable of[kLargestZeroPoint + 1];
};
constexpr CodeTables all_code_tables() {
  CodeTables tables{};
  for (int zero = 0; zero <= kLargestZeroPoint; ++zero) tables.of[zero] = code_table_of(zero);
  return tables;
}

}  // namespace sluice::arch
