// Conversions against the formats' definitions, over every 16-bit pattern.
#include <cmath>
#include <cstdint>
#include <limits>

#include <gtest/gtest.h>

#include "sluice/verify.hpp"

#include "reference/rounding.hpp"

namespace sluice {
namespace {

// The value that sign, exponent and fraction stand for.
double value_of(std::uint16_t bits, int exponent_bits, int fraction_bits) {
  const int exponent = (bits >> fraction_bits) & ((1 << exponent_bits) - 1);
  const int fraction = bits & ((1 << fraction_bits) - 1);
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const double sign = bits & 0x8000 ? -1 : 1;
  if (exponent == (1 << exponent_bits) - 1) return fraction ? std::nan("") : sign * std::numeric_limits<double>::infinity();
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias - fraction_bits);
  return sign * std::ldexp((1 << fraction_bits) + fraction, exponent - bias - fraction_bits);
}

template <class From, class To>
void check_every_pattern(int exponent_bits, int fraction_bits, From from, To to) {
  for (int pattern = 0; pattern < 0x10000; ++pattern) {
    const auto bits = static_cast<std::uint16_t>(pattern);
    const double expected = value_of(bits, exponent_bits, fraction_bits);
    const float got = from(bits);
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(got)) << pattern;
      ASSERT_EQ(to(got), 0x7fff) << pattern;
      continue;
    }
    ASSERT_EQ(static_cast<double>(got), expected) << pattern;
    ASSERT_EQ(std::signbit(got), std::signbit(expected)) << pattern;
    ASSERT_EQ(to(got), bits) << pattern;
  }
}

// The same for 8 bits. Only e5m2 has infinities; e4m3's largest exponent is one like the others, but for the fraction of all ones.
double fp8_value_of(std::uint8_t bits, DataType type) {
  if (type == DataType::e5m2) return value_of(static_cast<std::uint16_t>((bits & 0x80) << 8 | (bits & 0x7f)), 5, 2);
  const int exponent = bits >> 3 & 15, fraction = bits & 7;
  const double sign = bits & 0x80 ? -1 : 1;
  if (exponent == 15 && fraction == 7) return std::nan("");
  return sign * (exponent == 0 ? std::ldexp(fraction, -9) : std::ldexp(8 + fraction, exponent - 10));
}

float from_fp8(std::uint8_t bits, DataType type) { return type == DataType::e4m3 ? from_e4m3_bits(bits) : from_e5m2_bits(bits); }
std::uint8_t to_fp8(float value, DataType type) { return type == DataType::e4m3 ? to_e4m3_bits(value) : to_e5m2_bits(value); }

// Halfway between two neighbours goes to the even one, a touch more or less to the nearer.
template <class From, class To>
void check_rounding(std::uint16_t infinity, From from, To to) {
  for (std::uint16_t bits = 0; bits + 1 < infinity; ++bits) {
    const float low = from(bits), high = from(static_cast<std::uint16_t>(bits + 1));
    const float middle = static_cast<float>((static_cast<double>(low) + high) / 2);
    const std::uint16_t even = bits % 2 == 0 ? bits : static_cast<std::uint16_t>(bits + 1);
    ASSERT_EQ(to(middle), even) << bits;
    ASSERT_EQ(to(-middle), even | 0x8000) << bits;
    ASSERT_EQ(to(std::nextafter(middle, 0.0f)), bits) << bits;
    ASSERT_EQ(to(std::nextafter(middle, high)), bits + 1) << bits;
  }
}

TEST(Convert, EveryBf16PatternStandsForItsValue) { check_every_pattern(8, 7, from_bf16_bits, to_bf16_bits); }
TEST(Convert, EveryFp16PatternStandsForItsValue) { check_every_pattern(5, 10, from_fp16_bits, to_fp16_bits); }
TEST(Convert, Bf16RoundsToNearestEven) { check_rounding(0x7f80, from_bf16_bits, to_bf16_bits); }
TEST(Convert, Fp16RoundsToNearestEven) { check_rounding(0x7c00, from_fp16_bits, to_fp16_bits); }

TEST(Convert, EveryFp8PatternStandsForItsValue) {
  for (const DataType type : {DataType::e4m3, DataType::e5m2})
    for (int pattern = 0; pattern < 0x100; ++pattern) {
      const auto bits = static_cast<std::uint8_t>(pattern);
      const double expected = fp8_value_of(bits, type);
      const float got = from_fp8(bits, type);
      if (std::isnan(expected)) {
        EXPECT_TRUE(std::isnan(got)) << to_string(type) << ' ' << pattern;
        EXPECT_EQ(to_fp8(got, type), 0x7f) << to_string(type) << ' ' << pattern;
        continue;
      }
      EXPECT_EQ(static_cast<double>(got), expected) << to_string(type) << ' ' << pattern;
      EXPECT_EQ(std::signbit(got), std::signbit(expected)) << to_string(type) << ' ' << pattern;
      if (std::isinf(expected)) continue;
      EXPECT_EQ(to_fp8(got, type), bits) << to_string(type) << ' ' << pattern;
    }
  EXPECT_EQ(from_e4m3_bits(0x7e), 448.0f);
  EXPECT_EQ(from_e5m2_bits(0x7b), 57344.0f);
}

TEST(Convert, Fp8RoundsToNearestEven) {
  for (const DataType type : {DataType::e4m3, DataType::e5m2}) {
    const std::uint8_t largest = type == DataType::e4m3 ? 0x7e : 0x7b;
    for (std::uint8_t bits = 0; bits < largest; ++bits) {
      const float low = from_fp8(bits, type), high = from_fp8(static_cast<std::uint8_t>(bits + 1), type), middle = (low + high) / 2;
      const std::uint8_t even = bits % 2 == 0 ? bits : static_cast<std::uint8_t>(bits + 1);
      EXPECT_EQ(to_fp8(middle, type), even) << to_string(type) << ' ' << middle;
      EXPECT_EQ(to_fp8(-middle, type), even | 0x80) << to_string(type) << ' ' << middle;
      EXPECT_EQ(to_fp8(std::nextafter(middle, 0.0f), type), bits) << to_string(type) << ' ' << middle;
      EXPECT_EQ(to_fp8(std::nextafter(middle, high), type), bits + 1) << to_string(type) << ' ' << middle;
    }
  }
}

// A quantised operand with infinities in it would be of no use; the GPU's own conversions have a form that saturates, too.
TEST(Convert, WhatIsTooLargeForFp8BecomesTheLargest) {
  for (const float value : {448.0f, 449.0f, 464.0f, 480.0f, 1e10f, std::numeric_limits<float>::infinity()}) {
    EXPECT_EQ(to_e4m3_bits(value), 0x7e) << value;
    EXPECT_EQ(to_e4m3_bits(-value), 0xfe) << value;
  }
  for (const float value : {57344.0f, 61440.0f, 65536.0f, std::numeric_limits<float>::max(), std::numeric_limits<float>::infinity()}) {
    EXPECT_EQ(to_e5m2_bits(value), 0x7b) << value;
    EXPECT_EQ(to_e5m2_bits(-value), 0xfb) << value;
  }
}

TEST(Convert, WhatIsTooLargeBecomesInfinity) {
  EXPECT_EQ(to_fp16_bits(65519.996f), 0x7bff);
  EXPECT_EQ(to_fp16_bits(65520.0f), 0x7c00);
  EXPECT_EQ(to_fp16_bits(-1e10f), 0xfc00);
  EXPECT_EQ(to_bf16_bits(std::numeric_limits<float>::max()), 0x7f80);
  EXPECT_EQ(to_bf16_bits(-std::numeric_limits<float>::infinity()), 0xff80);
}

TEST(Convert, WhatIsTooSmallBecomesZeroWithItsSign) {
  EXPECT_EQ(to_fp16_bits(0x1p-25f), 0);  // halfway to the smallest denormal: even
  EXPECT_EQ(to_fp16_bits(std::nextafter(0x1p-25f, 1.0f)), 1);
  EXPECT_EQ(to_fp16_bits(-1e-20f), 0x8000);
  EXPECT_EQ(to_e4m3_bits(0x1p-10f), 0);
  EXPECT_EQ(to_e4m3_bits(std::nextafter(0x1p-10f, 1.0f)), 1);
  EXPECT_EQ(to_e5m2_bits(-0x1p-17f), 0x80);
  EXPECT_EQ(to_e5m2_bits(std::nextafter(-0x1p-17f, -1.0f)), 0x81);
  EXPECT_EQ(to_e5m2_bits(std::numeric_limits<float>::denorm_min()), 0);
}

// The verifier rounds with code of its own. Both must agree, on numbers between, at and beyond the types' values.
TEST(Convert, RoundingFromDoubleAgreesWithTheConversions) {
  std::uint32_t state = 1;
  for (int i = 0; i < 300000; ++i) {
    state = state * 1664525u + 1013904223u;
    const float value = std::bit_cast<float>(state);
    if (std::isnan(value)) continue;
    ASSERT_EQ(round_to(DataType::bf16, value), static_cast<double>(from_bf16_bits(to_bf16_bits(value)))) << value;
    ASSERT_EQ(round_to(DataType::fp16, value), static_cast<double>(from_fp16_bits(to_fp16_bits(value)))) << value;
    const double between = value * (1 + 0x1p-26);
    ASSERT_EQ(round_to(DataType::fp32, between), static_cast<double>(static_cast<float>(between))) << value;
  }
}

}  // namespace
}  // namespace sluice
