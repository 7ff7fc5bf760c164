// Weights of 4 bits packed and unpacked by the letter of their formats, one by one.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "sluice/w4.hpp"

#include "core/check_w4.hpp"
#include "core/w4_layout.hpp"
#include "core/w4_packing.hpp"
#include "reference/number_conversion.hpp"
#include "reference/parallel.hpp"
#include "reference/w4_weight.hpp"

namespace sluice {
namespace {

constexpr int kCodesPerWord = 8;

int nibble_of(std::uint32_t word, std::int64_t which) { return static_cast<int>(word >> (4 * which) & 15); }

// What is given, as W4Source describes it.
class Given {
 public:
  Given(const PackW4Problem& problem, const PackW4Arguments& arguments) : p_(problem), a_(arguments), groups_(w4_groups(p_.k, p_.format)) {}

  std::int64_t groups() const { return groups_; }

  int code(std::int64_t column, std::int64_t k) const {
    const std::int64_t row = a_.order == nullptr ? k : a_.order[k];
    switch (p_.source) {
      case W4Source::gptq:
        return nibble_of(word(a_.codes, row / kCodesPerWord * p_.n + column), row % kCodesPerWord);
      case W4Source::awq:
        return nibble_of(word(a_.codes, row * (p_.n / kCodesPerWord) + column / kCodesPerWord), place_in_awq_word(column));
      case W4Source::plain:
        break;
    }
    const std::uint8_t two = static_cast<const std::uint8_t*>(a_.codes)[column * (p_.k / 2) + row / 2];
    return row % 2 == 0 ? two & 15 : two >> 4;
  }

  int zero(std::int64_t column, std::int64_t group) const {
    if (!p_.format.zero_points) return kW4MiddleCode;
    const std::int64_t at = group * (p_.n / kCodesPerWord) + column / kCodesPerWord;
    switch (p_.source) {
      case W4Source::gptq:
        return nibble_of(word(a_.zeros, at), column % kCodesPerWord) + (p_.zeros_less_one ? 1 : 0);
      case W4Source::awq:
        return nibble_of(word(a_.zeros, at), place_in_awq_word(column));
      case W4Source::plain:
        break;
    }
    return static_cast<const std::uint8_t*>(a_.zeros)[column * groups_ + group];
  }

  // As it is packed.
  std::uint16_t scale(std::int64_t column, std::int64_t group) const {
    const std::int64_t at = p_.source == W4Source::plain ? column * groups_ + group : group * p_.n + column;
    const float scale = given_scale(at);
    return to_16_bits(scale, w4_scale_type(p_.type));
  }

 private:
  static std::uint32_t word(const void* words, std::int64_t at) { return static_cast<const std::uint32_t*>(words)[at]; }

  static int place_in_awq_word(std::int64_t column) {
    constexpr int kColumns[kCodesPerWord] = {0, 2, 4, 6, 1, 3, 5, 7};
    return static_cast<int>(std::find(kColumns, kColumns + kCodesPerWord, column % kCodesPerWord) - kColumns);
  }

  float given_scale(std::int64_t at) const {
    if (p_.type_scales == DataType::fp32) return static_cast<const float*>(a_.scales)[at];
    const std::uint16_t bits = static_cast<const std::uint16_t*>(a_.scales)[at];
    return p_.type_scales == DataType::bf16 ? bf16_to_float(bits) : fp16_to_float(bits);
  }

  const PackW4Problem& p_;
  const PackW4Arguments& a_;
  std::int64_t groups_;
};

// Everything in a slab, whose first column and element of K are these.
void pack_slab(const PackW4Problem& p, const Given& given, std::int64_t first_column, std::int64_t first_k, std::uint8_t* slab) {
  const int elems_per_scale = w4_elems_per_scale(p.format);
  for (int c = 0; c < kW4BlockColumns; ++c)
    for (int part = 0; part < w4_groups_per_slab(p.format); ++part) {
      const std::int64_t column = first_column + c, begin = first_k + part * elems_per_scale;
      const bool is_there = column < p.n && begin < p.k;
      const std::int64_t group = w4_group_of(begin, p.format);
      const std::uint16_t scale = is_there ? given.scale(column, group) : std::uint16_t{0};
      const int zero = is_there ? given.zero(column, group) : kW4MiddleCode;
      std::memcpy(slab + w4_scale_byte(c, part), &scale, sizeof scale);
      if (p.format.zero_points) slab[w4_zero_byte(c, part, p.format)] = static_cast<std::uint8_t>(zero);
      for (int k = part * elems_per_scale; k < (part + 1) * elems_per_scale; ++k) {
        const int code = is_there && first_k + k < p.k ? given.code(column, first_k + k) : w4_padding_code(zero);
        const W4CodePlace place = w4_code_place(c, k, p.type);
        std::uint8_t& byte = slab[place.byte];
        byte = static_cast<std::uint8_t>(place.high ? (byte & 0x0f) | code << 4 : (byte & 0xf0) | code);
      }
    }
}

std::optional<Error> wrong_order(std::int64_t k, const std::int32_t* order) {
  std::vector<bool> seen(static_cast<std::size_t>(k));
  for (std::int64_t i = 0; i < k; ++i) {
    const std::int64_t row = order[i];
    if (row < 0 || row >= k || seen[static_cast<std::size_t>(row)])
      return Error{ErrorCode::invalid_argument, "order[" + std::to_string(i) + "] = " + std::to_string(row) +
                                                    (row < 0 || row >= k ? " is no row of the " + std::to_string(k) : " is there before") +
                                                    "; pass each row once, as order_of_groups() does"};
    seen[static_cast<std::size_t>(row)] = true;
  }
  return std::nullopt;
}

// The other formats cannot hold a wrong one.
Status check_plain_zeros(const PackW4Problem& p, const PackW4Arguments& arguments) {
  if (!p.format.zero_points || p.source != W4Source::plain) return Nothing{};
  const auto* const zeros = static_cast<const std::uint8_t*>(arguments.zeros);
  const std::int64_t count = p.n * w4_groups(p.k, p.format);
  for (std::int64_t i = 0; i < count; ++i)
    if (zeros[i] > kW4LargestZero)
      return Error{ErrorCode::invalid_argument, "zeros[" + std::to_string(i) + "] = " + std::to_string(zeros[i]) +
                                                    " is above 16; zero points are numbers of the codes' range, 0 to 16"};
  return Nothing{};
}

}  // namespace

Status pack_w4_on_cpu(const PackW4Problem& problem, const PackW4Arguments& arguments, int threads) {
  const Result<PackW4Problem> valid = validate(problem);
  if (!valid) return valid.error();
  const PackW4Problem& p = *valid;
  if (Status s = check_arguments(p, arguments); !s) return s;
  if (is_empty(p)) return Nothing{};
  if (arguments.order != nullptr)
    if (std::optional<Error> wrong = wrong_order(p.k, arguments.order)) return *wrong;
  if (Status s = check_plain_zeros(p, arguments); !s) return s;
  const Given given(p, arguments);
  const std::int64_t slabs = w4_slabs(p.k), blocks = w4_blocks(p.n);
  parallel(blocks, thread_count(threads, blocks), [&](const auto& next, int) {
    for (std::int64_t block = next(); block >= 0; block = next())
      for (std::int64_t slab = 0; slab < slabs; ++slab) {
        const std::int64_t column = block * kW4BlockColumns, k = slab * kW4SlabElems;
        pack_slab(p, given, column, k, static_cast<std::uint8_t*>(arguments.packed) + w4_slab_offset(column, k, slabs, p.format));
      }
  });
  return Nothing{};
}

Status unpack_w4_on_cpu(std::int64_t n, std::int64_t k, const W4Format& format, DataType type, const void* packed, void* weights) {
  if (Status s = check_packed_w4(n, k, format, type, packed, weights); !s) return s;
  const std::int64_t slabs = w4_slabs(k);
  for (std::int64_t column = 0; column < n; ++column)
    for (std::int64_t element = 0; element < k; ++element) {
      const float weight = w4_weight(packed, column, element, slabs, format, type);
      if (is_fp8(type))
        static_cast<float*>(weights)[column * k + element] = weight;
      else
        static_cast<std::uint16_t*>(weights)[column * k + element] = to_16_bits(weight, type);
    }
  return Nothing{};
}

Status order_of_groups(std::int64_t k, int group_size, const std::int32_t* group_of, std::int32_t* order) {
  const W4Format format{.group_size = group_size};
  if (Status s = check_w4_shape(0, k, format); !s) return s;
  if (k == 0) return Nothing{};
  if (group_of == nullptr || order == nullptr)
    return Error{ErrorCode::invalid_argument,
                 std::string(group_of == nullptr ? "group_of" : "order") + " is null; pass memory for k numbers"};
  const std::int64_t groups = w4_groups(k, format), whole = group_size == 0 ? k : group_size;
  std::vector<std::int64_t> rows(static_cast<std::size_t>(groups), 0);
  for (std::int64_t i = 0; i < k; ++i) {
    const std::int64_t group = group_of[i];
    if (group < 0 || group >= groups)
      return Error{ErrorCode::invalid_argument, "group_of[" + std::to_string(i) + "] = " + std::to_string(group) + " is none of the " +
                                                    std::to_string(groups) + " groups that k = " + std::to_string(k) +
                                                    " has; pass the group size that the weights were made with"};
    ++rows[static_cast<std::size_t>(group)];
  }
  for (std::int64_t group = 0; group < groups; ++group) {
    const std::int64_t wanted = std::min(whole, k - group * whole);
    if (rows[static_cast<std::size_t>(group)] != wanted)
      return Error{ErrorCode::unsupported, "group " + std::to_string(group) + " has " +
                                               std::to_string(rows[static_cast<std::size_t>(group)]) + " rows, not " +
                                               std::to_string(wanted) + "; all groups but the last must be whole"};
  }
  // Where the next row of each group goes.
  std::vector<std::int64_t> next(static_cast<std::size_t>(groups));
  for (std::int64_t group = 0; group < groups; ++group) next[static_cast<std::size_t>(group)] = group * whole;
  for (std::int64_t i = 0; i < k; ++i) order[next[static_cast<std::size_t>(group_of[i])]++] = static_cast<std::int32_t>(i);
  return Nothing{};
}

Status permute_columns_on_cpu(const PermuteColumnsProblem& problem, const void* from, const std::int32_t* order, void* to) {
  const Result<PermuteColumnsProblem> valid = validate(problem);
  if (!valid) return valid.error();
  const PermuteColumnsProblem& p = *valid;
  if (Status s = check_arguments(p, from, order, to); !s) return s;
  if (is_empty(p)) return Nothing{};
  if (std::optional<Error> wrong = wrong_order(p.k, order)) return *wrong;
  for (std::int64_t row = 0; row < p.m; ++row)
    for (std::int64_t column = 0; column < p.k; ++column)
      static_cast<std::uint16_t*>(to)[row * p.ld_to + column] = static_cast<const std::uint16_t*>(from)[row * p.ld_from + order[column]];
  return Nothing{};
}

}  // namespace sluice
