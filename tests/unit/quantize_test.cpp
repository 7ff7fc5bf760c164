// What quantize() refuses, and known answers of the reference.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "sluice/quantize.hpp"
#include "sluice/verify.hpp"

#include "core/quantize_config.hpp"

namespace sluice {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct Quantised {
  std::vector<std::uint8_t> q;
  std::vector<float> scale;
};

Quantised quantised(QuantizeProblem p, const std::vector<float>& x, const std::vector<float>& y = {}) {
  p.type_x = DataType::fp32;
  const QuantizeProblem valid = *validate(p);
  Quantised result{std::vector<std::uint8_t>(static_cast<std::size_t>(p.m * valid.ldq), 0xee),
                   std::vector<float>(static_cast<std::size_t>(scale_elems(valid)), -7.0f)};
  const Status status = quantize_on_cpu(p, {.x = x.data(), .y = y.data(), .q = result.q.data(), .scale = result.scale.data()});
  EXPECT_TRUE(status.ok());
  return result;
}

template <class Change>
Error refusal(Change change) {
  QuantizeProblem p{.m = 256, .k = 1000};
  change(p);
  const Result<QuantizeProblem> valid = validate(p);
  return valid ? Error{ErrorCode::internal, "accepted"} : valid.error();
}

TEST(QuantizeProblem, PackedStridesAreFilledIn) {
  const QuantizeProblem p = *validate(QuantizeProblem{.m = 300, .k = 1000});
  EXPECT_EQ(p.ldx, 1000);
  EXPECT_EQ(p.ldq, 1000);
  EXPECT_EQ(p.ld_scale, 8);
  EXPECT_EQ(scale_elems(p), 2400);
  const QuantizeProblem columns = *validate(QuantizeProblem{.m = 300, .k = 1000, .scale_layout = Layout::column_major});
  EXPECT_EQ(columns.ld_scale, 300);
  EXPECT_EQ(scale_elems(columns), 2400);
  const QuantizeProblem blocks = *validate(
      QuantizeProblem{.m = 300, .k = 1000, .scaling = Scaling::per_block_128, .scale_layout = Layout::column_major, .ld_scale = 5});
  EXPECT_EQ(scale_elems(blocks), 7 * 5 + 3);
  EXPECT_EQ(*validate(p), p);
}

// Scales lie as those of an operand of a product do.
TEST(QuantizeProblem, ScalesAreThoseOfAnOperand) {
  for (const Scaling scaling : {Scaling::per_vector, Scaling::per_vector_128, Scaling::per_block_128})
    for (const Layout layout : {Layout::row_major, Layout::column_major}) {
      const QuantizeProblem p = *validate(QuantizeProblem{.m = 300, .k = 1040, .scaling = scaling, .scale_layout = layout});
      const GemmProblem product = *validate(GemmProblem{.m = 300,
                                                        .n = 16,
                                                        .k = 1040,
                                                        .type_a = DataType::e4m3,
                                                        .type_b = DataType::e4m3,
                                                        .scaling_a = scaling,
                                                        .scale_layout_a = layout});
      EXPECT_EQ(p.ld_scale, product.ld_scale_a);
      EXPECT_EQ(scale_elems(p), scale_elems_a(product));
    }
}

TEST(QuantizeProblem, RefusalsSayWhatIsWrong) {
  const auto says = [](const Error& error, ErrorCode code, const std::string& text) {
    EXPECT_EQ(error.code, code) << error.message;
    EXPECT_NE(error.message.find(text), std::string::npos) << error.message;
  };
  using enum ErrorCode;
  says(refusal([](auto& p) { p.m = -1; }), invalid_argument, "m = -1 is negative");
  says(refusal([](auto& p) { p.k = std::int64_t{1} << 31; }), too_large, "k = 2147483648 is over the limit");
  says(refusal([](auto& p) { p.ldx = 999; }), invalid_argument, "ldx = 999 is shorter than the 1000");
  says(refusal([](auto& p) { p.ldq = 5; }), invalid_argument, "ldq = 5 is shorter");
  says(refusal([](auto& p) { p.ldx = std::int64_t{1} << 40; }), too_large, "ldx = 1099511627776 is over the limit");
  says(refusal([](auto& p) { p.input = QuantizeInput::silu_times, p.ldy = 7; }), invalid_argument, "ldy = 7");
  says(refusal([](auto& p) { p.ldy = 7, p.ldx = 1; }), invalid_argument, "ldx = 1");  // y is not read, its ldy of no interest
  says(refusal([](auto& p) { p.ld_scale = 7; }), invalid_argument, "ld_scale = 7 is shorter than the 8 scales");
  says(refusal([](auto& p) { p.ld_scale = std::int64_t{1} << 33; }), invalid_argument, "ld_scale = 8589934592 is not in");
  says(refusal([](auto& p) { p.scaling = Scaling::per_vector, p.ld_scale = -5; }), invalid_argument, "ld_scale = -5 is not in");
  says(refusal([](auto& p) { p.scaling = Scaling::per_vector, p.ld_scale = std::int64_t{1} << 33; }), invalid_argument, "is not in");
  says(refusal([](auto& p) { p.m = 2000000, p.k = 200000; }), too_large, "puts the last scale at element 3125999999");
  says(refusal([](auto& p) { p.type_x = DataType::e4m3; }), unsupported, "type_x = e4m3");
  says(refusal([](auto& p) { p.type_q = DataType::bf16; }), unsupported, "type_q = bf16");
  says(refusal([](auto& p) { p.scaling = Scaling::per_tensor; }), unsupported, "scaling = tensor");
  says(refusal([](auto& p) { p.scale_layout = static_cast<Layout>(9); }), invalid_argument, "none of the enumeration's values");
}

TEST(QuantizeProblem, PointersAreChecked) {
  const QuantizeProblem p{.m = 1, .k = 4, .input = QuantizeInput::silu_times};
  alignas(16) std::byte memory[64];
  const QuantizeArguments good{.x = memory, .y = memory, .q = memory + 16, .scale = reinterpret_cast<float*>(memory + 32)};
  const auto code = [&](auto change) {
    QuantizeArguments arguments = good;
    change(arguments);
    const Status status = quantize_on_cpu(p, arguments);
    return status ? ErrorCode::internal : status.error().code;
  };
  EXPECT_EQ(code([](auto& a) { a.x = nullptr; }), ErrorCode::invalid_argument);
  EXPECT_EQ(code([](auto& a) { a.y = nullptr; }), ErrorCode::invalid_argument);
  EXPECT_EQ(code([](auto& a) { a.q = nullptr; }), ErrorCode::invalid_argument);
  EXPECT_EQ(code([](auto& a) { a.scale = nullptr; }), ErrorCode::invalid_argument);
  EXPECT_EQ(code([&](auto& a) { a.x = memory + 1; }), ErrorCode::misaligned);
  EXPECT_EQ(code([&](auto& a) { a.y = memory + 3; }), ErrorCode::misaligned);
  EXPECT_EQ(code([&](auto& a) { a.scale = reinterpret_cast<float*>(memory + 34); }), ErrorCode::misaligned);
  EXPECT_EQ(code([&](auto& a) { a.q = memory + 17; }), ErrorCode::internal) << "bytes lie anywhere";
  EXPECT_TRUE(quantize_on_cpu({.m = 0, .k = 4}, {}).ok());
  EXPECT_TRUE(quantize_on_cpu({.m = 4, .k = 0}, {}).ok());
}

TEST(Quantize, KnownNumbers) {
  // The largest, 224, is half of 448: the scale is 0.5, and numbers are doubled.
  const Quantised got = quantised({.m = 1, .k = 4}, {1.0f, -224.0f, 0.53125f, -0.0f});
  EXPECT_EQ(got.scale, std::vector<float>{0.5f});
  EXPECT_EQ(got.q, (std::vector<std::uint8_t>{to_e4m3_bits(2.0f), to_e4m3_bits(-448.0f), to_e4m3_bits(1.0f), 0x80}));  // 1.0625: to even
  const Quantised e5m2 = quantised({.m = 1, .k = 2, .type_q = DataType::e5m2}, {28672.0f, 3.0f});
  EXPECT_EQ(e5m2.scale, std::vector<float>{0.5f});
  EXPECT_EQ(e5m2.q, (std::vector<std::uint8_t>{to_e5m2_bits(57344.0f), to_e5m2_bits(6.0f)}));
}

TEST(Quantize, ScalesAsPowersOfTwoAreRoundedUp) {
  const auto scale_for = [](float largest) { return quantised({.m = 1, .k = 1, .power_of_two_scales = true}, {largest}).scale[0]; };
  EXPECT_EQ(scale_for(448.0f), 1.0f);
  EXPECT_EQ(scale_for(448.5f), 2.0f);
  EXPECT_EQ(scale_for(-225.0f), 1.0f);
  EXPECT_EQ(scale_for(224.0f), 0.5f);
  EXPECT_EQ(scale_for(1e-39f), 0x1p-126f);
  EXPECT_EQ(scale_for(kInfinity), kInfinity);
  EXPECT_EQ(scale_for(0.0f), 1.0f);
}

TEST(Quantize, BlocksOfZerosAndOfNextToNothing) {
  const Quantised zeros = quantised({.m = 1, .k = 3}, {0.0f, 0.0f, -0.0f});
  EXPECT_EQ(zeros.scale, std::vector<float>{1.0f});
  EXPECT_EQ(zeros.q, (std::vector<std::uint8_t>{0, 0, 0x80}));
  // 1e-39 / 448 is a denormal, whose reciprocal would be infinite.
  const Quantised tiny = quantised({.m = 1, .k = 2}, {1e-39f, 0.0f});
  EXPECT_EQ(tiny.scale, std::vector<float>{0x1p-126f});
  EXPECT_EQ(tiny.q, (std::vector<std::uint8_t>{to_e4m3_bits(1e-39f * 0x1p126f), 0}));
}

TEST(Quantize, WhatIsNotFiniteIsSeen) {
  const Quantised nan = quantised({.m = 1, .k = 3}, {448.0f, std::nanf(""), 1.0f});
  EXPECT_EQ(nan.scale, std::vector<float>{1.0f});
  EXPECT_EQ(nan.q, (std::vector<std::uint8_t>{0x7e, 0x7f, to_e4m3_bits(1.0f)}));
  const Quantised infinite = quantised({.m = 1, .k = 3}, {1.0f, -kInfinity, 2.0f});
  EXPECT_EQ(infinite.scale, std::vector<float>{kInfinity});
  for (const std::uint8_t q : infinite.q) EXPECT_TRUE(std::isnan(from_e4m3_bits(q) * infinite.scale[0]));
}

TEST(Quantize, SiluTimes) {
  const std::vector<float> x = {0.0f, 2.0f, -3.0f, 100.0f}, y = {5.0f, -1.5f, 4.0f, 0.01f};
  const Quantised got = quantised({.m = 1, .k = 4, .input = QuantizeInput::silu_times}, x, y);
  float largest = 0;
  for (std::size_t i = 0; i < 4; ++i) largest = std::max(largest, std::abs(x[i] / (1 + std::exp(-x[i])) * y[i]));
  EXPECT_FLOAT_EQ(got.scale[0], largest / 448);
  for (std::size_t i = 0; i < 4; ++i) {
    const double wanted = x[i] / (1 + std::exp(-static_cast<double>(x[i]))) * y[i];
    EXPECT_NEAR(from_e4m3_bits(got.q[i]) * got.scale[0], wanted, std::abs(wanted) / 16 + 1e-6);
  }
}

// Each block by itself, with its edges: a scale for 128 columns or 128 x 128 elements, and nothing beyond k.
TEST(Quantize, EveryBlockHasItsScale) {
  const std::int64_t m = 131, k = 260, ldq = 272;
  std::vector<float> x(static_cast<std::size_t>(m * k));
  for (std::int64_t row = 0; row < m; ++row)
    for (std::int64_t column = 0; column < k; ++column)
      x[static_cast<std::size_t>(row * k + column)] = static_cast<float>(448 << (2 * (row / 128) + column / 128));
  for (const Layout layout : {Layout::row_major, Layout::column_major}) {
    const Quantised blocks = quantised({.m = m, .k = k, .scaling = Scaling::per_block_128, .ldq = ldq, .scale_layout = layout}, x);
    EXPECT_EQ(blocks.scale,
              layout == Layout::row_major ? (std::vector<float>{1, 2, 4, 4, 8, 16}) : (std::vector<float>{1, 4, 2, 8, 4, 16}));
    const Quantised strips = quantised({.m = m, .k = k, .ldq = ldq, .scale_layout = layout, .ld_scale = 140}, x);
    for (std::int64_t row = 0; row < m; ++row)
      for (std::int64_t block = 0; block < 3; ++block)
        EXPECT_EQ(strips.scale[static_cast<std::size_t>(layout == Layout::row_major ? row * 140 + block : block * 140 + row)],
                  static_cast<float>(1 << (2 * (row / 128) + block)));
    for (const Quantised* each : {&blocks, &strips})
      for (std::int64_t row = 0; row < m; ++row)
        for (std::int64_t column = 0; column < ldq; ++column)
          ASSERT_EQ(each->q[static_cast<std::size_t>(row * ldq + column)], column < k ? 0x7e : 0xee) << row << ", " << column;
  }
}

TEST(Quantize, EveryRowHasItsScale) {
  const std::int64_t m = 3, k = 300, ldq = 304;
  std::vector<float> x(static_cast<std::size_t>(m * k), 1.0f);
  for (const std::int64_t column : {0, 140, 299})
    x[static_cast<std::size_t>(column / 140 * k + column)] = -448.0f * static_cast<float>(1 << (column / 140));
  const Quantised rows = quantised({.m = m, .k = k, .scaling = Scaling::per_vector, .ldq = ldq}, x);
  EXPECT_EQ(rows.scale, (std::vector<float>{1, 2, 4}));
  for (std::int64_t row = 0; row < m; ++row)
    for (std::int64_t column = 0; column < ldq; ++column) {
      const std::uint8_t wanted = column >= k ? 0xee
                                  : column == std::min<std::int64_t>(row * 140, 280) + (row == 2 ? 19 : 0)
                                      ? 0xfe
                                      : to_e4m3_bits(1.0f / static_cast<float>(1 << row));
      ASSERT_EQ(rows.q[static_cast<std::size_t>(row * ldq + column)], wanted) << row << ", " << column;
    }
  EXPECT_EQ(bytes_moved(*validate(QuantizeProblem{.m = 2, .k = 256, .scaling = Scaling::per_vector})), 2 * 256 * 3 + 2 * 4);
}

// Of launches of many rounds, where an SM has two CTAs that compute long.
TEST(Quantize, WhoWaitsForAHeadStart) {
  constexpr int kSms = 132;
  constexpr QuantizeConfig kSilu{.scaling = Scaling::per_block_128, .input = QuantizeInput::silu_times};
  EXPECT_EQ(end_of_waiting(kSilu, 4 * kSms, kSms), 2 * kSms);
  EXPECT_EQ(end_of_waiting(kSilu, 4 * kSms - 1, kSms), kSms);
  EXPECT_EQ(end_of_waiting(kSilu, 1000, 0), 0);  // of a machine whose CTAs share no SMs
  QuantizeConfig fp32 = kSilu, plain = kSilu, strips = kSilu;
  fp32.type_x = DataType::fp32;  // 1024 threads: one CTA an SM
  plain.input = QuantizeInput::plain;
  strips.scaling = Scaling::per_vector_128;
  for (const QuantizeConfig& other : {fp32, plain, strips}) EXPECT_EQ(end_of_waiting(other, 100 * kSms, kSms), kSms);
}

TEST(Quantize, Descriptions) {
  EXPECT_EQ(describe(QuantizeProblem{.m = 4096, .k = 7168}), "4096 x 7168 bf16 -> e4m3, scales 1x128");
  EXPECT_EQ(describe(QuantizeProblem{.m = 1,
                                     .k = 2,
                                     .type_x = DataType::fp32,
                                     .type_q = DataType::e5m2,
                                     .input = QuantizeInput::silu_times,
                                     .scaling = Scaling::per_block_128,
                                     .power_of_two_scales = true,
                                     .scale_layout = Layout::column_major}),
            "1 x 2 fp32 -> e5m2, scales 128x128 column-major, powers of two, silu-times");
  EXPECT_EQ(bytes_moved(*validate(QuantizeProblem{.m = 2, .k = 256})), 2 * 256 * 3 + 2 * 2 * 4);
  EXPECT_EQ(parse_quantize_input("silu-times"), QuantizeInput::silu_times);
  EXPECT_FALSE(parse_quantize_input("gelu"));
}

}  // namespace
}  // namespace sluice
