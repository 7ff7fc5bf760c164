// Codes of 4 bits become numbers of 16 (arch/codes.cuh): every code, zero point and place in a word, and scales over the whole range that
// docs/w4.md promises.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <random>

#include "arch/arch.cuh"

namespace sluice {
namespace {

// Number `which` of a code's place: 0 to 3 in the lower halves, 4 to 7 in the upper ones.
template <DataType type>
float number_of(const std::uint32_t (&numbers)[4], int which) {
  return arch::as_number<type>(numbers[which % 4] >> which / 4 * 16) * arch::CodeNumbers<type>::kLeftOut;
}
int code_of(std::uint32_t word, int which) { return static_cast<int>(word >> 4 * which & 15); }

template <DataType type>
void expect_exact(std::uint32_t word, int first_zero, int second_zero, const arch::CodeLine& line) {
  std::uint32_t numbers[4];
  arch::dequantise<type>(word, line, numbers);
  for (int which = 0; which < 8; ++which) {
    const int zero = which % 2 == 0 ? first_zero : second_zero;
    ASSERT_EQ(number_of<type>(numbers, which), static_cast<float>(code_of(word, which) - zero)) << "code " << which << " of " << word;
  }
}

template <DataType type>
void expect_every_code_exact() {
  std::mt19937 random(1);
  for (int first = 0; first <= 16; ++first) {
    for (int second = 0; second <= 16; ++second) {
      const arch::CodeLine line = arch::line_of_zeros<type>(static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(second));
      for (std::uint32_t code = 0; code < 16; ++code) expect_exact<type>(code * 0x11111111, first, second, line);
      for (int i = 0; i < 8; ++i) expect_exact<type>(static_cast<std::uint32_t>(random()), first, second, line);
    }
  }
  expect_exact<type>(0xfedcba98, 8, 8, arch::middle_line<type>());
  expect_exact<type>(0x76543210, 8, 8, arch::middle_line<type>());
}

TEST(Codes, LessTheirZeroPointsAreExact) {
  expect_every_code_exact<DataType::bf16>();
  expect_every_code_exact<DataType::fp16>();
}

// One multiplication and addition rounds once, as (code - 8) x scale rounded to bf16 does.
TEST(Codes, TimesAScaleAreRoundedOnce) {
  std::mt19937 random(2);
  for (int exponent = -94; exponent <= 26; ++exponent) {
    for (int i = 0; i < 200; ++i) {
      const auto scale_bits = [&] {
        return static_cast<std::uint32_t>((exponent + 127) << 7 | static_cast<int>(random() & 127) | static_cast<int>(random() & 1) << 15);
      };
      const std::uint32_t scales = scale_bits() | scale_bits() << 16, word = static_cast<std::uint32_t>(random());
      std::uint32_t numbers[4];
      arch::dequantise<DataType::bf16>(word, arch::line_of_scales<DataType::bf16>(scales), numbers);
      for (int which = 0; which < 8; ++which) {
        const float scale = arch::as_number<DataType::bf16>(which % 2 == 0 ? scales : scales >> 16);
        const float exact = static_cast<float>(code_of(word, which) - 8) * scale;  // 12 bits
        const float rounded = arch::as_number<DataType::bf16>(arch::as_bits<DataType::bf16>(exact));
        ASSERT_EQ(number_of<DataType::bf16>(numbers, which), rounded) << "scale " << scale << ", code " << code_of(word, which);
      }
    }
  }
}

TEST(Codes, OfAScaleOfZeroAreZero) {
  std::uint32_t numbers[4];
  arch::dequantise<DataType::bf16>(0x0f1e2d3c, arch::line_of_scales<DataType::bf16>(0), numbers);
  for (int which = 0; which < 8; ++which) EXPECT_EQ(number_of<DataType::bf16>(numbers, which), 0.0f);
}

}  // namespace
}  // namespace sluice
