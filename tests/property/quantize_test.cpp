// Of random matrices: every number, multiplied by its scale, is the nearest to what it came from that its type holds.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "sluice/quantize.hpp"
#include "sluice/verify.hpp"

namespace sluice {
namespace {

float from_fp8(DataType type, std::uint8_t bits) { return type == DataType::e4m3 ? from_e4m3_bits(bits) : from_e5m2_bits(bits); }

// The distance of two neighbouring numbers of the type around `value`.
double step(DataType type, double value) {
  const int fraction_bits = type == DataType::e4m3 ? 3 : 2, smallest_exponent = type == DataType::e4m3 ? -6 : -14;
  return std::ldexp(1.0, std::max(value == 0 ? smallest_exponent : std::ilogb(value), smallest_exponent) - fraction_bits);
}

struct RandomMatrix {
  QuantizeProblem problem;
  std::vector<float> x;
};

RandomMatrix random_matrix() {
  QuantizeProblem p{.m = *rc::gen::inRange<std::int64_t>(1, 200), .k = *rc::gen::inRange<std::int64_t>(1, 400), .type_x = DataType::fp32};
  p.type_q = *rc::gen::element(DataType::e4m3, DataType::e5m2);
  p.scaling = *rc::gen::element(Scaling::per_vector, Scaling::per_vector_128, Scaling::per_block_128);
  p.scale_layout = *rc::gen::element(Layout::row_major, Layout::column_major);
  p.power_of_two_scales = *rc::gen::arbitrary<bool>();
  p.ldx = p.k + *rc::gen::inRange(0, 5);
  p.ldq = p.k + *rc::gen::inRange(0, 5);
  p = validate(p).value();
  if (p.scaling != Scaling::per_vector && *rc::gen::arbitrary<bool>()) p.ld_scale += 3;
  std::mt19937 random(*rc::gen::arbitrary<std::uint32_t>());
  std::normal_distribution<float> normal;
  std::uniform_int_distribution<int> exponent(-20, 20);
  std::vector<float> x(static_cast<std::size_t>(p.m * p.ldx));
  const int around = *rc::gen::inRange(-140, 100);
  std::generate(x.begin(), x.end(), [&] { return std::ldexp(normal(random), around + exponent(random)); });
  return {p, std::move(x)};
}

// Where the scale of an element lies, said once more.
std::size_t scale_index(const QuantizeProblem& p, std::int64_t row, std::int64_t column) {
  if (p.scaling == Scaling::per_vector) return static_cast<std::size_t>(row);
  const std::int64_t r = p.scaling == Scaling::per_block_128 ? row / 128 : row, c = column / 128;
  return static_cast<std::size_t>(p.scale_layout == Layout::row_major ? r * p.ld_scale + c : c * p.ld_scale + r);
}

RC_GTEST_PROP(Quantized, NumbersAreTheNearest, ()) {
  const auto [p, x] = random_matrix();
  RC_LOG() << describe(p);
  std::vector<std::uint8_t> q(static_cast<std::size_t>(p.m * p.ldq), 0xee);
  std::vector<float> scale(static_cast<std::size_t>(scale_elems(p)), -1.0f);
  RC_ASSERT(quantize_on_cpu(p, {.x = x.data(), .q = q.data(), .scale = scale.data()}).ok());

  const double largest_number = p.type_q == DataType::e4m3 ? 448 : 57344;
  std::vector<double> largest(scale.size(), 0);
  for (std::int64_t row = 0; row < p.m; ++row)
    for (std::int64_t column = 0; column < p.k; ++column) {
      const double value = x[static_cast<std::size_t>(row * p.ldx + column)];
      const std::size_t which = scale_index(p, row, column);
      RC_ASSERT(which < scale.size());
      const double s = scale[which], got = from_fp8(p.type_q, q[static_cast<std::size_t>(row * p.ldq + column)]);
      largest[which] = std::max(largest[which], std::abs(value));
      RC_ASSERT(s > 0);
      // The scaled number is rounded twice more, in fp32.
      RC_ASSERT(std::abs(value / s - got) <= step(p.type_q, value / s) * 0.5 + std::abs(value / s) * 0x1p-22);
      RC_ASSERT(std::abs(got) <= largest_number);
    }
  for (std::size_t i = 0; i < scale.size(); ++i) {
    if (scale[i] == -1.0f) continue;  // between rows of scales
    const double wanted = std::max(largest[i] / largest_number, 0x1p-126);
    if (largest[i] == 0)
      RC_ASSERT(scale[i] == 1.0f);
    else if (p.power_of_two_scales)
      RC_ASSERT(std::ilogb(scale[i]) + 126 >= 0 && std::exp2(std::ilogb(scale[i])) == scale[i] && scale[i] >= wanted * (1 - 0x1p-24) &&
                scale[i] < 2 * wanted * (1 + 0x1p-23));
    else
      RC_ASSERT(std::abs(scale[i] - wanted) <= wanted * 0x1p-24);
  }
  for (std::int64_t row = 0; row < p.m; ++row)
    for (std::int64_t column = p.k; column < p.ldq; ++column) RC_ASSERT(q[static_cast<std::size_t>(row * p.ldq + column)] == 0xee);
}

}  // namespace
}  // namespace sluice
