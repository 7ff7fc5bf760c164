// Weights of 4 bits as numbers, and how each source stores them: written from the formats' definitions, apart from the library.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <random>
#include <vector>

#include "sluice/verify.hpp"
#include "sluice/w4.hpp"

namespace sluice::test {

inline std::uint16_t to_bits(DataType type, float value) { return type == DataType::bf16 ? to_bf16_bits(value) : to_fp16_bits(value); }
inline float from_bits(DataType type, std::uint16_t bits) { return type == DataType::bf16 ? from_bf16_bits(bits) : from_fp16_bits(bits); }

// Four bytes that hold eight codes, the first in the lowest bits.
inline void put_word(std::vector<std::uint8_t>& bytes, std::size_t word, int place, int code) {
  bytes[word * 4 + static_cast<std::size_t>(place / 2)] |= static_cast<std::uint8_t>(code << (place % 2 * 4));
}

struct W4Weights {
  PackW4Problem problem;
  std::int64_t groups = 1, group_elems = 1;
  std::vector<int> q;               // n rows of k, in the order in which the source has them
  std::vector<int> z;               // n rows of groups
  std::vector<float> s;             // as the source has them
  std::vector<std::int32_t> order;  // empty: as they lie

  int zero(std::int64_t column, std::int64_t group) const {
    return problem.format.zero_points ? z[static_cast<std::size_t>(column * groups + group)] : 8;
  }
  // Of packed row `row` of K. Beside activations of 8 bits scales are fp16, and weights are not rounded.
  float weight(std::int64_t column, std::int64_t row) const {
    const std::int64_t from = order.empty() ? row : order[static_cast<std::size_t>(row)], group = row / group_elems;
    const float given = s[static_cast<std::size_t>(column * groups + group)];
    const DataType type = problem.type == DataType::e4m3 ? DataType::fp16 : problem.type;
    const double scale = from_bits(type, to_bits(type, given));
    const int code = q[static_cast<std::size_t>(column * problem.k + from)];
    const auto exact = static_cast<float>((code - zero(column, group)) * scale);
    return problem.type == DataType::e4m3 ? exact : from_bits(type, to_bits(type, exact));
  }
};

// What unpack_w4_on_cpu() gives.
inline Result<std::vector<float>> unpacked_w4(const PackW4Problem& p, const void* packed) {
  const auto count = static_cast<std::size_t>(p.n * p.k);
  std::vector<float> numbers(count, 0.125f);
  std::vector<std::uint16_t> bits(count, 0x1234);
  const bool of_bytes = p.type == DataType::e4m3;
  const Status status =
      unpack_w4_on_cpu(p.n, p.k, p.format, p.type, packed, of_bytes ? static_cast<void*>(numbers.data()) : static_cast<void*>(bits.data()));
  if (!status) return status.error();
  if (!of_bytes) std::transform(bits.begin(), bits.end(), numbers.begin(), [&](std::uint16_t each) { return from_bits(p.type, each); });
  return numbers;
}

inline W4Weights random_w4_weights(const PackW4Problem& problem, bool reordered, std::uint64_t seed) {
  W4Weights w{.problem = problem};
  w.group_elems = problem.format.group_size == 0 ? std::max<std::int64_t>(problem.k, 1) : problem.format.group_size;
  w.groups = problem.format.group_size == 0 ? 1 : (problem.k + w.group_elems - 1) / w.group_elems;
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal(0, 0.01f);
  w.q.resize(static_cast<std::size_t>(problem.n * problem.k));
  for (int& q : w.q) q = static_cast<int>(random() % 16);
  w.z.resize(static_cast<std::size_t>(problem.n * w.groups));
  const bool less_one = problem.source == W4Source::gptq && problem.zeros_less_one;
  for (int& z : w.z) z = static_cast<int>(random() % 16) + (less_one || (problem.source == W4Source::plain && random() % 16 == 0) ? 1 : 0);
  w.s.resize(w.z.size());
  for (float& s : w.s) {
    s = normal(random);
    if (problem.type_scales != DataType::fp32) s = from_bits(problem.type_scales, to_bits(problem.type_scales, s));
  }
  if (reordered) {
    w.order.resize(static_cast<std::size_t>(problem.k));
    std::iota(w.order.begin(), w.order.end(), 0);
    std::shuffle(w.order.begin(), w.order.end(), random);
  }
  return w;
}

// What the source stores.
struct W4Stored {
  std::vector<std::uint8_t> codes, scales, zeros;
};

inline W4Stored store_w4_weights(const W4Weights& w) {
  const PackW4Problem& p = w.problem;
  const auto index = [](std::int64_t i) { return static_cast<std::size_t>(i); };
  const std::size_t scale_bytes = p.type_scales == DataType::fp32 ? 4 : 2;
  W4Stored to;
  to.codes.resize(index(p.n * p.k / 2));
  to.scales.resize(index(p.n * w.groups) * scale_bytes);
  if (p.format.zero_points) to.zeros.resize(index(p.source == W4Source::plain ? p.n * w.groups : p.n * w.groups / 2));
  constexpr int kAwqPlaces[8] = {0, 4, 1, 5, 2, 6, 3, 7};  // of columns 0, 1, 2, ...: 0, 2, 4, 6, 1, 3, 5, 7 turned round
  for (std::int64_t c = 0; c < p.n; ++c) {
    for (std::int64_t k = 0; k < p.k; ++k) {
      const int code = w.q[index(c * p.k + k)];
      if (p.source == W4Source::plain) put_word(to.codes, index((c * p.k + k) / 8), static_cast<int>(k % 8), code);
      if (p.source == W4Source::gptq) put_word(to.codes, index(k / 8 * p.n + c), static_cast<int>(k % 8), code);
      if (p.source == W4Source::awq) put_word(to.codes, index((k * p.n + c) / 8), kAwqPlaces[c % 8], code);
    }
    for (std::int64_t g = 0; g < w.groups; ++g) {
      const float s = w.s[index(c * w.groups + g)];
      const std::size_t at = index(p.source == W4Source::plain ? c * w.groups + g : g * p.n + c);
      const std::uint16_t bits = to_bits(p.type_scales == DataType::fp32 ? DataType::bf16 : p.type_scales, s);
      if (p.type_scales == DataType::fp32)
        std::memcpy(to.scales.data() + at * 4, &s, 4);
      else
        std::memcpy(to.scales.data() + at * 2, &bits, 2);
      if (!p.format.zero_points) continue;
      const int z = w.z[index(c * w.groups + g)];
      if (p.source == W4Source::plain) to.zeros[at] = static_cast<std::uint8_t>(z);
      if (p.source == W4Source::gptq) put_word(to.zeros, index((g * p.n + c) / 8), static_cast<int>(c % 8), z - (p.zeros_less_one ? 1 : 0));
      if (p.source == W4Source::awq) put_word(to.zeros, index((g * p.n + c) / 8), kAwqPlaces[c % 8], z);
    }
  }
  return to;
}

struct alignas(256) W4Line {
  std::uint8_t bytes[256];
};
using W4Packed = std::vector<W4Line>;  // aligned as packed weights must be

inline W4Packed room_for(const PackW4Problem& p) {
  return W4Packed(static_cast<std::size_t>(packed_w4_bytes(p.n, p.k, p.format) / 256), [] {
    W4Line line;
    std::fill(line.bytes, line.bytes + sizeof line.bytes, std::uint8_t{0xa5});
    return line;
  }());
}
inline const std::uint8_t* bytes_of(const W4Packed& packed) { return packed.data()->bytes; }

inline PackW4Arguments arguments_of(const W4Weights& w, const W4Stored& stored, W4Packed& packed) {
  return {.codes = stored.codes.data(),
          .scales = stored.scales.data(),
          .zeros = stored.zeros.empty() ? nullptr : stored.zeros.data(),
          .order = w.order.empty() ? nullptr : w.order.data(),
          .packed = packed.data()};
}

}  // namespace sluice::test
