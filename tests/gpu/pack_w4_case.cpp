#include "pack_w4_case.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>

#include "sluice/verify.hpp"

namespace sluice::gpu_tests {
namespace {

template <class T>
T* at(GuardedBytes& memory) {
  return static_cast<T*>(memory.data());
}

float random_scale(std::mt19937_64& random) {
  std::normal_distribution<float> normal(0, 0.01f);
  switch (random() % 500) {
    case 0:
      return std::numeric_limits<float>::quiet_NaN();
    case 1:
      return std::numeric_limits<float>::infinity();
    case 2:
      return -0.0f;
    case 3:
      return 1e-39f;
    case 4:
      return 1e5f;  // infinite in fp16
    default:
      return normal(random);
  }
}

void fill_scales(GuardedBytes& scales, DataType type, std::int64_t count, std::mt19937_64& random) {
  for (std::int64_t i = 0; i < count; ++i) {
    const float scale = random_scale(random);
    if (type == DataType::fp32)
      at<float>(scales)[i] = scale;
    else
      at<std::uint16_t>(scales)[i] = type == DataType::bf16 ? to_bf16_bits(scale) : to_fp16_bits(scale);
  }
}

void fill_order(GuardedBytes& order, std::int64_t k, std::mt19937_64& random) {
  std::iota(at<std::int32_t>(order), at<std::int32_t>(order) + k, 0);
  std::shuffle(at<std::int32_t>(order), at<std::int32_t>(order) + k, random);
}

std::size_t bytes(std::int64_t count) { return static_cast<std::size_t>(count); }

}  // namespace

std::string describe(const PackW4Case& c) {
  return describe(c.problem) + ", scales " + to_string(c.problem.type_scales) + ", offset " + std::to_string(c.offset_words) +
         (c.reordered ? ", reordered" : "");
}

std::vector<PackW4Case> pack_w4_cases(bool few) {
  struct Shape {
    std::int64_t n, k;
    int offset;
  };
  // Edges within a slab, slabs that are whole and those beyond K, rows that are no multiple of 16 bytes, codes that begin anywhere.
  std::vector<Shape> shapes = {{8, 8, 0}, {136, 256, 0}, {72, 304, 0}, {64, 528, 1}, {128, 128, 0}};
  if (!few) {
    const std::vector<Shape> large = {{4096, 4096, 0}, {1000, 1040, 3}, {24, 14336, 0}, {6144, 96, 0}, {264, 2056, 0}};
    shapes.insert(shapes.end(), large.begin(), large.end());
  }
  std::vector<PackW4Case> cases;
  int turn = 0;
  for (const W4Source source : {W4Source::plain, W4Source::gptq, W4Source::awq})
    for (const int group_size : {0, 32, 64, 128})
      for (const bool zero_points : {false, true})
        for (const bool reordered : {false, true})
          for (const Shape& shape : shapes) {
            if (group_size > 0 && shape.k % group_size != 0 && shape.k % 16 != 0) continue;
            ++turn;
            PackW4Problem p{.n = shape.n, .k = shape.k, .format = {.group_size = group_size, .zero_points = zero_points}, .source = source};
            p.type = std::vector{DataType::bf16, DataType::fp16, DataType::e4m3}[bytes(turn / 6 % 3)];
            p.type_scales = std::vector{DataType::bf16, DataType::fp16, DataType::fp32}[bytes(turn / 2 % 3)];
            p.zeros_less_one = turn % 5 != 0;
            cases.push_back({.problem = p, .reordered = reordered, .offset_words = shape.offset});
          }
  return cases;
}

PackW4Arguments PackW4Operands::arguments() {
  return {.codes = codes.data(),
          .scales = scales.data(),
          .zeros = zeros.data(),
          .order = static_cast<const std::int32_t*>(order.data()),
          .packed = packed.data()};
}

PackW4Operands make_operands(const PackW4Case& c, std::uint64_t seed) {
  const PackW4Problem& p = c.problem;
  const std::int64_t groups = w4_groups(p.k, p.format);
  const auto offset = bytes(c.offset_words * 4);
  std::mt19937_64 random(seed);
  PackW4Operands operands;
  operands.codes = GuardedBytes(bytes(p.n * p.k / 2), offset);
  std::generate_n(at<std::uint8_t>(operands.codes), p.n * p.k / 2, [&] { return static_cast<std::uint8_t>(random()); });
  operands.scales = GuardedBytes(bytes(p.n * groups * size_bytes(p.type_scales)), 0);
  fill_scales(operands.scales, p.type_scales, p.n * groups, random);
  if (p.format.zero_points) {
    const bool plain = p.source == W4Source::plain;
    const std::int64_t count = plain ? p.n * groups : p.n * groups / 2;
    operands.zeros = GuardedBytes(bytes(count), 0);
    std::generate_n(at<std::uint8_t>(operands.zeros), count, [&] { return static_cast<std::uint8_t>(plain ? random() % 17 : random()); });
  }
  if (c.reordered) {
    operands.order = GuardedBytes(bytes(p.k) * sizeof(std::int32_t), offset);
    fill_order(operands.order, p.k, random);
  }
  operands.packed = GuardedBytes(bytes(packed_w4_bytes(p.n, p.k, p.format)), 0);
  return operands;
}

std::string describe(const PermuteCase& c) {
  return std::to_string(c.problem.m) + " x " + std::to_string(c.problem.k) + ", ld_from " + std::to_string(c.problem.ld_from) + ", ld_to " +
         std::to_string(c.problem.ld_to) + ", offset " + std::to_string(c.offset_elems);
}

std::vector<PermuteCase> permute_cases(bool few) {
  // Vectors and elements; rows and columns that end a CTA's work early.
  std::vector<PermuteCase> cases = {{{.m = 1, .k = 8}, 0},
                                    {{.m = 9, .k = 1032}, 0},
                                    {{.m = 3, .k = 261, .ld_from = 300, .ld_to = 264}, 0},
                                    {{.m = 17, .k = 2048, .ld_from = 2048, .ld_to = 2056}, 0},
                                    {{.m = 8, .k = 64}, 1}};
  if (!few) {
    cases.push_back({{.m = 4096, .k = 4096}, 0});
    cases.push_back({{.m = 1000, .k = 14336, .ld_from = 14344, .ld_to = 14336}, 0});
    cases.push_back({{.m = 2, .k = 65536}, 3});
  }
  for (PermuteCase& each : cases) {
    if (each.problem.ld_from == kPacked) each.problem.ld_from = each.problem.k;
    if (each.problem.ld_to == kPacked) each.problem.ld_to = each.problem.k;
  }
  return cases;
}

PermuteOperands make_operands(const PermuteCase& c, std::uint64_t seed) {
  const PermuteColumnsProblem& p = c.problem;
  const auto span = [&](std::int64_t leading) { return ((p.m - 1) * leading + p.k) * 2; };
  std::mt19937_64 random(seed);
  PermuteOperands operands{.from = GuardedBytes(bytes(span(p.ld_from)), 2),
                           .order = GuardedBytes(bytes(p.k) * sizeof(std::int32_t), 0),
                           .to = GuardedBytes(bytes(span(p.ld_to)), bytes(c.offset_elems) * 2)};
  std::generate_n(at<std::uint8_t>(operands.from), span(p.ld_from), [&] { return static_cast<std::uint8_t>(random()); });
  fill_order(operands.order, p.k, random);
  return operands;
}

std::string differences(const std::string& what, const GuardedBytes& got, const GuardedBytes& expected) {
  for (std::size_t i = 0; i < got.all().size(); ++i)
    if (got.all()[i] != expected.all()[i])
      return what + ": byte " + std::to_string(static_cast<std::int64_t>(i) - static_cast<std::int64_t>(got.first())) + " is " +
             std::to_string(std::to_integer<int>(got.all()[i])) + ", not " + std::to_string(std::to_integer<int>(expected.all()[i]));
  return "";
}

}  // namespace sluice::gpu_tests
