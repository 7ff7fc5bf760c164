// Attention by the letter of its definition, row by row, in double precision.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "sluice/attention.hpp"

#include "core/check_attention.hpp"
#include "reference/number_conversion.hpp"
#include "reference/parallel.hpp"

namespace sluice {
namespace {

double number(DataType type, const void* from, std::int64_t i) {
  if (type == DataType::bf16) return bf16_to_float(static_cast<const std::uint16_t*>(from)[i]);
  if (type == DataType::fp16) return fp16_to_float(static_cast<const std::uint16_t*>(from)[i]);
  return e4m3_to_float(static_cast<const std::uint8_t*>(from)[i]);
}

class Sequence {
 public:
  Sequence(const AttentionProblem& p, const AttentionArguments& a, std::int64_t number) : p_(p), a_(a), number_(number) {
    const std::int64_t given = a.lengths == nullptr ? p.max_kv_len : a.lengths[number];
    length_ = std::clamp<std::int64_t>(given, 0, p.max_kv_len);
    if (a.fault != nullptr && given != length_) *a.fault = 1;
  }

  // One row of the result: of a new token and a query head.
  void attend(std::int64_t token, std::int64_t head, std::vector<double>& weights) const {
    const std::int64_t kv_head = head / (p_.heads_q / p_.heads_kv), position = length_ - p_.query_len + token;
    const std::int64_t last = p_.causal ? std::min(position, length_ - 1) : length_ - 1;
    const std::int64_t first = p_.window > 0 ? std::max<std::int64_t>(position - p_.window + 1, 0) : 0;
    const std::int64_t row = (number_ * p_.query_len + token) * p_.heads_q + head, count = std::max<std::int64_t>(last - first + 1, 0);
    weights.resize(static_cast<std::size_t>(count));
    double greatest = -std::numeric_limits<double>::infinity(), sum = 0;
    for (std::int64_t j = first; j <= last; ++j) {
      double& s = weights[static_cast<std::size_t>(j - first)];
      s = score(row, j, kv_head);
      greatest = std::max(greatest, s);
    }
    std::vector<double> result(static_cast<std::size_t>(p_.head_size));
    for (std::int64_t j = first; j <= last; ++j) {
      const double weight = std::exp(weights[static_cast<std::size_t>(j - first)] - greatest);
      sum += weight;
      const std::int64_t at = element_of(j, kv_head);
      for (std::int64_t d = 0; at >= 0 && d < p_.head_size; ++d)
        result[static_cast<std::size_t>(d)] += weight * number(p_.kv_type, a_.v, at + d);
    }
    const double factor = (a_.v_scales == nullptr ? 1.0 : a_.v_scales[kv_head]) / (count > 0 ? sum : 1);
    for (std::int64_t d = 0; d < p_.head_size; ++d)
      store(row * p_.head_size + d, static_cast<float>(result[static_cast<std::size_t>(d)] * factor));
    if (p_.lse) a_.lse[row] = static_cast<float>(greatest + std::log(sum));
  }

 private:
  void store(std::int64_t i, float value) const {
    static_cast<std::uint16_t*>(a_.o)[i] = p_.type == DataType::bf16 ? float_to_bf16(value) : float_to_fp16(value);
  }

  double score(std::int64_t row, std::int64_t j, std::int64_t kv_head) const {
    double dot = 0;
    const std::int64_t at = element_of(j, kv_head);
    for (std::int64_t d = 0; at >= 0 && d < p_.head_size; ++d)
      dot += number(p_.type, a_.q, row * p_.head_size + d) * number(p_.kv_type, a_.k, at + d);
    dot *= p_.scale * (a_.k_scales == nullptr ? 1.0 : a_.k_scales[kv_head]);
    return p_.soft_cap > 0 ? p_.soft_cap * std::tanh(dot / p_.soft_cap) : dot;
  }

  // The first element of a token's vector; -1 where the block table names no page.
  std::int64_t element_of(std::int64_t j, std::int64_t kv_head) const {
    std::int64_t block = number_, tokens = p_.max_kv_len;
    if (p_.page_size != 0) {
      block = a_.block_table[number_ * a_.block_table_stride + j / p_.page_size];
      tokens = p_.page_size;
      j %= p_.page_size;
      if (block < 0 || block >= p_.pages) {
        if (a_.fault != nullptr) *a_.fault = 2;
        return -1;
      }
    }
    const std::int64_t place = p_.kv_layout == KvLayout::tokens_first ? j * p_.heads_kv + kv_head : kv_head * tokens + j;
    return block * p_.kv_stride + place * p_.head_size;
  }

  const AttentionProblem& p_;
  const AttentionArguments& a_;
  std::int64_t number_, length_;
};

}  // namespace

Status attention_on_cpu(const AttentionProblem& problem, const AttentionArguments& arguments, int threads) {
  const Result<AttentionProblem> valid = validate(problem);
  if (!valid) return valid.error();
  const AttentionProblem& p = *valid;
  if (Status s = check_arguments(p, arguments); !s) return s;
  const std::int64_t rows = p.batch * p.query_len * p.heads_q;
  if (rows == 0) return Nothing{};
  AttentionArguments scales = arguments;
  if (p.kv_type != DataType::e4m3) scales.k_scales = scales.v_scales = nullptr;
  parallel(rows, thread_count(threads, rows), [&](const auto& next, int) {
    std::vector<double> weights;
    for (std::int64_t row = next(); row >= 0; row = next())
      Sequence(p, scales, row / (p.query_len * p.heads_q)).attend(row / p.heads_q % p.query_len, row % p.heads_q, weights);
  });
  return Nothing{};
}

}  // namespace sluice
