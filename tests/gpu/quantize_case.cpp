#include "quantize_case.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "sluice/verify.hpp"

namespace sluice::gpu_tests {
namespace {

void put(GuardedBytes& memory, DataType type, std::int64_t at, float value) {
  std::byte* const to = memory.all().data() + memory.first() + at * size_bytes(type);
  const std::uint16_t bits = type == DataType::bf16 ? to_bf16_bits(value) : to_fp16_bits(value);
  if (type == DataType::fp32)
    std::memcpy(to, &value, sizeof value);
  else
    std::memcpy(to, &bits, sizeof bits);
}

float special(std::uint64_t draw, float usual) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN(), kInfinity = std::numeric_limits<float>::infinity();
  switch (draw % 2000) {
    case 0:
      return kNan;
    case 1:
      return kInfinity;
    case 2:
      return -kInfinity;
    case 3:
      return 3e38f;  // infinite in fp16
    case 4:
      return -1e-39f;  // denormal, 0 in fp16
    case 5:
      return -0.0f;
    default:
      return usual;
  }
}

// Magnitudes differ from block to block, and some blocks hold zeros or numbers whose scale would be denormal.
float magnitude_of_block(std::int64_t row, std::int64_t column, bool specials) {
  const auto which = (row / 128 * 7 + row % 5 + column / 128 * 3) % 11;
  if (specials && which == 0) return 0.0f;
  if (specials && which == 1) return 1e-37f;
  return std::ldexp(1.0f, static_cast<int>(which) * 2 - 10);
}

void fill(GuardedBytes& memory, const QuantizeCase& c, std::int64_t leading, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  for (std::int64_t row = 0; row < c.problem.m; ++row)
    for (std::int64_t column = 0; column < c.problem.k; ++column) {
      const float usual = normal(random) * magnitude_of_block(row, column, c.special);
      put(memory, c.problem.type_x, row * leading + column, c.special ? special(random(), usual) : usual);
    }
}

std::size_t span_bytes(const QuantizeProblem& p, std::int64_t leading, DataType type) {
  return static_cast<std::size_t>((p.m - 1) * leading + p.k) * static_cast<std::size_t>(size_bytes(type));
}

float scale_at(const GuardedBytes& scales, std::size_t i) {
  float scale = 0;
  std::memcpy(&scale, scales.all().data() + scales.first() + i * sizeof scale, sizeof scale);
  return scale;
}

// In steps of the type: neighbouring numbers are 1 apart, and -0 is next to 0.
int step_number(std::byte bits) {
  const int magnitude = std::to_integer<int>(bits & std::byte{0x7f});
  return std::to_integer<int>(bits & std::byte{0x80}) != 0 ? -1 - magnitude : magnitude;
}

bool close(float got, float expected) {
  return std::bit_cast<std::uint32_t>(got) == std::bit_cast<std::uint32_t>(expected) ||
         std::abs(got - expected) <= 3e-5f * std::abs(expected);
}

}  // namespace

std::string describe(const QuantizeCase& c) {
  std::string line = describe(c.problem) + ", ldx " + std::to_string(c.problem.ldx) + ", ldq " + std::to_string(c.problem.ldq) +
                     ", ld_scale " + std::to_string(c.problem.ld_scale) + ", offset " + std::to_string(c.offset_elems);
  return c.special ? line + ", special numbers" : line;
}

GuardedBytes::GuardedBytes(std::size_t matrix_bytes, std::size_t offset_bytes) : first_(2 * kAlignment + offset_bytes) {
  blocks_.resize((first_ + matrix_bytes) / kAlignment + 3);
  std::fill(all().begin(), all().end(), kGuard);
}

QuantizeArguments QuantizeOperands::arguments() {
  return {.x = x.data(), .y = y.data(), .q = q.data(), .scale = static_cast<float*>(scale.data())};
}

std::vector<QuantizeCase> quantize_cases(bool few) {
  struct Shape {
    std::int64_t m, k;
    int pad_x, pad_q, offset;
  };
  // Vectors and elements; strips that end early, rows that end a CTA's work early; rows that are seen as one and that are not.
  const std::vector<Shape> small = {{1, 1, 0, 0, 0},     {1, 8, 0, 0, 0},       {3, 136, 0, 0, 0},  {2, 1032, 8, 16, 0},
                                    {130, 256, 0, 0, 0}, {7, 261, 0, 0, 0},     {5, 384, 1, 0, 0},  {33, 128, 0, 3, 0},
                                    {4, 200, 8, 8, 1},   {129, 120, 16, 16, 8}, {1, 2176, 0, 0, 0}, {2, 16600, 8, 0, 0}};
  const std::vector<Shape> large = {{257, 1000, 0, 0, 0}, {1000, 136, 0, 8, 0}, {300, 2304, 0, 0, 0}, {128, 4096, 0, 0, 0},
                                    {515, 513, 3, 5, 1},  {64, 7168, 0, 0, 0},  {2, 65536, 0, 0, 0},  {20000, 8, 0, 0, 0}};
  std::vector<Shape> shapes = small;
  if (!few) shapes.insert(shapes.end(), large.begin(), large.end());
  std::vector<QuantizeCase> cases;
  int turn = 0;
  for (const DataType type_x : {DataType::bf16, DataType::fp16, DataType::fp32})
    for (const DataType type_q : {DataType::e4m3, DataType::e5m2})
      for (const Scaling scaling : {Scaling::per_vector, Scaling::per_vector_128, Scaling::per_block_128})
        for (const QuantizeInput input : {QuantizeInput::plain, QuantizeInput::silu_times})
          for (const Shape& shape : shapes) {
            ++turn;
            QuantizeProblem p{.m = shape.m, .k = shape.k, .type_x = type_x, .type_q = type_q, .input = input, .scaling = scaling};
            p.ldx = p.k + shape.pad_x;
            p.ldy = p.k + shape.pad_x + (input == QuantizeInput::silu_times && turn % 3 == 0 ? 8 : 0);
            p.ldq = p.k + shape.pad_q;
            p.scale_layout = turn % 2 == 0 ? Layout::row_major : Layout::column_major;
            p.power_of_two_scales = turn % 5 == 0;
            if (turn % 7 == 0) p.ld_scale = validate(p)->ld_scale + 3;
            cases.push_back({.problem = *validate(p), .offset_elems = shape.offset, .special = turn % 3 == 1});
          }
  return cases;
}

QuantizeOperands make_operands(const QuantizeCase& c, std::uint64_t seed) {
  const QuantizeProblem& p = c.problem;
  const auto offset = static_cast<std::size_t>(c.offset_elems);
  QuantizeOperands operands;
  operands.x = GuardedBytes(span_bytes(p, p.ldx, p.type_x), offset * static_cast<std::size_t>(size_bytes(p.type_x)));
  fill(operands.x, c, p.ldx, seed);
  if (p.input == QuantizeInput::silu_times) {
    operands.y = GuardedBytes(span_bytes(p, p.ldy, p.type_x), offset * static_cast<std::size_t>(size_bytes(p.type_x)));
    // Plain numbers: what silu() flushes to zero on the GPU is none elsewhere, which only infinity makes more of than a step.
    QuantizeCase usual = c;
    usual.special = false;
    fill(operands.y, usual, p.ldy, seed + 1);
  }
  operands.q = GuardedBytes(span_bytes(p, p.ldq, p.type_q), offset);
  operands.scale = GuardedBytes(static_cast<std::size_t>(scale_elems(p)) * sizeof(float), offset * sizeof(float));
  return operands;
}

std::string differences(const QuantizeCase& c, const QuantizeOperands& got, const QuantizeOperands& expected) {
  const QuantizeProblem& p = c.problem;
  const bool exact = p.input == QuantizeInput::plain;
  // A touch more or less may make a power of two the next one, and every number of its block another.
  const bool numbers_compare = exact || !p.power_of_two_scales;
  const auto scales = static_cast<std::size_t>(scale_elems(p));
  for (std::size_t i = 0; i < scales; ++i) {
    const float was = scale_at(got.scale, i), wanted = scale_at(expected.scale, i);
    const bool next_power = !numbers_compare && (was == 2 * wanted || 2 * was == wanted);
    const bool same = std::bit_cast<std::uint32_t>(was) == std::bit_cast<std::uint32_t>(wanted);
    if (exact ? !same : !close(was, wanted) && !next_power)
      return describe(c) + ": scale " + std::to_string(i) + " is " + std::to_string(was) + " (bits " +
             std::to_string(std::bit_cast<std::uint32_t>(was)) + "), not " + std::to_string(wanted);
  }
  // Scales that are no part of the problem lie among the guards.
  for (std::size_t at = 0; at < got.scale.all().size(); ++at)
    if ((at < got.scale.first() || at >= got.scale.first() + scales * sizeof(float)) && got.scale.all()[at] != expected.scale.all()[at])
      return describe(c) + ": byte " + std::to_string(at) + " outside of the scales has been written";
  for (std::size_t at = 0; at < got.q.all().size(); ++at) {
    const std::byte was = got.q.all()[at], wanted = expected.q.all()[at];
    const auto column = (static_cast<std::int64_t>(at) - static_cast<std::int64_t>(got.q.first())) % p.ldq;
    const bool outside = at < got.q.first() || at >= got.q.first() + span_bytes(p, p.ldq, p.type_q) || column >= p.k;
    const bool same = exact || outside ? was == wanted : !numbers_compare || std::abs(step_number(was) - step_number(wanted)) <= 1;
    if (!same)
      return describe(c) + ": byte " + std::to_string(static_cast<std::int64_t>(at) - static_cast<std::int64_t>(got.q.first())) +
             " of q is " + std::to_string(std::to_integer<int>(was)) + ", not " + std::to_string(std::to_integer<int>(wanted)) +
             (outside ? "; it lies outside of q" : "");
  }
  return "";
}

}  // namespace sluice::gpu_tests
