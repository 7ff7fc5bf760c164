#include "attention_case.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>

#include "sluice/verify.hpp"

namespace sluice::gpu_tests {
namespace {

struct Shape {
  int query_len, group;
};
// One and two tiles of rows, and every kernel beyond; rows that fill no tile.
constexpr Shape kShapes[] = {{1, 1}, {1, 4}, {1, 8}, {2, 8}, {3, 5}, {4, 8}, {8, 8}, {5, 12}, {8, 16}};

std::uint16_t to_bits(DataType type, float x) { return type == DataType::bf16 ? to_bf16_bits(x) : to_fp16_bits(x); }
float from_bits(DataType type, std::uint16_t bits) { return type == DataType::bf16 ? from_bf16_bits(bits) : from_fp16_bits(bits); }

// Each option in some case; the options go round with different periods.
AttentionProblem with_options(AttentionProblem p, int number) {
  constexpr int kPageSizes[] = {0, 16, 64, 128};
  p.kv_layout = number % 2 == 0 ? KvLayout::heads_first : KvLayout::tokens_first;
  p.page_size = kPageSizes[number % 4];
  p.window = number % 3 == 0 ? 100 + number : 0;
  p.soft_cap = number % 5 == 0 ? 3.5 : 0;
  p.causal = number % 7 != 0;
  p.lse = true;
  p.constant_cache = number % 8 < 4;
  return p;
}

// Writes an element of K or V, and returns what it is.
float put(DataType type, std::vector<std::uint8_t>& to, std::int64_t i, float x) {
  if (type == DataType::e4m3) {
    to[static_cast<std::size_t>(i)] = to_e4m3_bits(4 * x);
    return from_e4m3_bits(to[static_cast<std::size_t>(i)]);
  }
  const std::uint16_t bits = to_bits(type, x);
  std::memcpy(to.data() + 2 * i, &bits, sizeof bits);
  return from_bits(type, bits);
}

}  // namespace

std::string describe(const AttentionCase& c) {
  std::string lengths;
  for (const std::int32_t length : c.lengths) lengths += (lengths.empty() ? "" : " ") + std::to_string(length);
  return describe(c.problem) + ", lengths " + lengths;
}

std::vector<AttentionCase> attention_cases(bool few) {
  std::vector<AttentionCase> cases;
  int number = 0;
  for (const DataType type : {DataType::bf16, DataType::fp16})
    for (const DataType kv_type : {type, DataType::e4m3})
      for (const int head_size : {64, 128, 256})
        for (const Shape& shape : kShapes) {
          ++number;
          if ((few && number % 7 != 1) || (kv_type == DataType::e4m3 && head_size == 64) ||
              (head_size == 256 && shape.query_len * shape.group > 64))
            continue;
          const AttentionProblem p{.query_len = shape.query_len,
                                   .heads_q = (few ? 1 : 2) * shape.group,
                                   .heads_kv = few ? 1 : 2,
                                   .head_size = head_size,
                                   .type = type,
                                   .kv_type = kv_type};
          cases.push_back({with_options(p, number),
                           few ? std::vector<std::int32_t>{0, 600, 17} : std::vector<std::int32_t>{0, 700, 17, 64, 2500},
                           number % 3 == 1 ? 37 : 0});
        }
  // Every end of a sequence, at every place of a page.
  for (const int page_size : {0, 16, 64, 128})
    for (const int window : {0, 1, 37}) {
      AttentionProblem p{
          .query_len = 1 + page_size / 16 % 3, .heads_q = 4, .heads_kv = 1, .page_size = page_size, .window = window, .lse = true};
      if (few) p.head_size = 64;
      AttentionCase c{p, {}, 0};
      for (int length = 0; length <= (few ? 130 : 260); length += few ? 13 : 1) c.lengths.push_back(length);
      if (!few || window != 1) cases.push_back(c);
    }
  return cases;
}

AttentionArguments AttentionOperands::arguments() {
  return {.q = q.data(),
          .k = k.data(),
          .v = v.data(),
          .o = o.data(),
          .lse = lse.data(),
          .lengths = lengths.data(),
          .block_table = block_table.data(),
          .block_table_stride = block_table_stride,
          .k_scales = k_scales.data(),
          .v_scales = v_scales.data(),
          .fault = &fault};
}

AttentionOperands make_operands(const AttentionCase& c, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  AttentionOperands x{.problem = c.problem};
  AttentionProblem& p = x.problem;
  x.lengths = c.lengths;
  p.batch = static_cast<std::int64_t>(c.lengths.size());
  p.max_kv_len = std::max(1, *std::max_element(c.lengths.begin(), c.lengths.end())) + c.spare_tokens;
  if (p.page_size != 0) {
    x.block_table_stride = (p.max_kv_len + p.page_size - 1) / p.page_size;
    p.pages = x.block_table_stride * p.batch + 3;
    std::vector<std::int32_t> pages(static_cast<std::size_t>(p.pages));
    std::iota(pages.begin(), pages.end(), 0);
    std::shuffle(pages.begin(), pages.end(), random);
    x.block_table.assign(pages.begin(), pages.begin() + x.block_table_stride * p.batch);
  }
  const std::int64_t tokens = p.page_size == 0 ? p.max_kv_len : p.page_size, blocks = p.page_size == 0 ? p.batch : p.pages;
  const auto bytes = static_cast<std::size_t>(blocks * tokens * p.heads_kv * p.head_size) * static_cast<std::size_t>(size_bytes(p.kv_type));
  x.k.assign(bytes, 0xff);  // NaN in every type
  x.v.assign(bytes, 0xff);
  std::normal_distribution<float> normal;
  const auto draw = [&] { return std::clamp(normal(random), -4.0f, 4.0f); };
  for (std::int64_t b = 0; b < p.batch; ++b) {
    const std::int64_t length = c.lengths[static_cast<std::size_t>(b)];
    const std::int64_t first = p.window > 0 ? std::max<std::int64_t>(length - p.query_len - p.window + 1, 0) : 0;
    for (std::int64_t j = first; j < length; ++j)
      for (std::int64_t h = 0; h < p.heads_kv; ++h) {
        const std::int64_t block =
            p.page_size == 0 ? b : x.block_table[static_cast<std::size_t>(b * x.block_table_stride + j / p.page_size)];
        const std::int64_t in_block = p.page_size == 0 ? j : j % p.page_size;
        const std::int64_t place = p.kv_layout == KvLayout::tokens_first ? in_block * p.heads_kv + h : h * tokens + in_block;
        const std::int64_t at = (block * tokens * p.heads_kv + place) * p.head_size;
        for (std::int64_t d = 0; d < p.head_size; ++d) {
          put(p.kv_type, x.k, at + d, draw());
          x.greatest_value = std::max(x.greatest_value, std::abs(static_cast<double>(put(p.kv_type, x.v, at + d, draw()))));
        }
      }
  }
  const auto rows = static_cast<std::size_t>(p.batch * p.query_len * p.heads_q), heads = static_cast<std::size_t>(p.heads_kv);
  x.q.resize(rows * static_cast<std::size_t>(p.head_size));
  for (std::uint16_t& q : x.q) q = to_bits(p.type, draw());
  x.o.assign(x.q.size(), 0xffff);
  x.lse.assign(rows, std::numeric_limits<float>::quiet_NaN());
  for (std::size_t h = 0; h < heads; ++h) {
    x.k_scales.push_back(0.25f + 0.1f * static_cast<float>(random() % 7));
    x.v_scales.push_back(0.25f + 0.1f * static_cast<float>(random() % 7));
  }
  if (p.kv_type == DataType::e4m3) x.greatest_value *= *std::max_element(x.v_scales.begin(), x.v_scales.end());
  return x;
}

std::string differences(const AttentionOperands& got, const AttentionOperands& expected) {
  const AttentionProblem& p = got.problem;
  const double output = p.type == DataType::bf16 ? 0x1p-8 : 0x1p-11;
  const double weights = p.type == DataType::bf16 && p.kv_type != DataType::e4m3 ? 0x1p-8 : 0x1p-11;
  const auto say = [&](const char* what, std::size_t i, double is, double should) {
    return describe(p) + ": " + what + " " + std::to_string(i) + " is " + std::to_string(is) + ", not " + std::to_string(should);
  };
  for (std::size_t i = 0; i < got.o.size(); ++i) {
    const double is = from_bits(p.type, got.o[i]), should = from_bits(p.type, expected.o[i]);
    if (!(std::abs(is - should) <= 2 * output * std::abs(should) + (weights + 1e-4) * expected.greatest_value))
      return say("element", i, is, should);
  }
  for (std::size_t i = 0; i < got.lse.size(); ++i) {
    const double is = got.lse[i], should = expected.lse[i];
    if (std::isinf(should) ? is != should : !(std::abs(is - should) <= 1e-3 + 1e-5 * std::abs(should)))
      return say("logarithm", i, is, should);
  }
  return got.fault == expected.fault ? "" : describe(p) + ": the fault is " + std::to_string(got.fault);
}

}  // namespace sluice::gpu_tests
