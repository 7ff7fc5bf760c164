// Partial results, how two become one, where they lie in the workspace, and results. Numbers announce themselves: a word of the workspace
// is there when it has another pattern than kNothingThere. So neither fences nor flags lie between a sum and its use.
#pragma once

#include "arch/warp_mma.cuh"
#include "core/attention_config.hpp"
#include "kernel/attention/attention_params.hpp"

namespace sluice {

// Of a row, relative to a maximum: the sum of exponentials, and four columns' sums.
struct RowPart {
  float maximum, sum;
  float o[4];
};

SLUICE_DEVICE float finite(float maximum) { return maximum == -__builtin_inff() ? 0.0f : maximum; }

// Rounded alike wherever two parts meet.
SLUICE_DEVICE RowPart together(const RowPart& a, const RowPart& b) {
  RowPart x{};
  x.maximum = arch::maximum(a.maximum, b.maximum);
  const float factor_a = arch::power_of_two(a.maximum - finite(x.maximum)), factor_b = arch::power_of_two(b.maximum - finite(x.maximum));
  x.sum = arch::fused_multiply_add(a.sum, factor_a, b.sum * factor_b);
  SLUICE_UNROLL
  for (int e = 0; e < 4; ++e) x.o[e] = arch::fused_multiply_add(a.o[e], factor_a, b.o[e] * factor_b);
  return x;
}

SLUICE_DEVICE arch::Floats4* partial_sums(const AttentionParams& p, int head_size, int slot, int row) {
  return p.partials + std::int64_t{slot} * partial_vectors(p.rows, head_size) + row * (head_size / 4);
}
SLUICE_DEVICE arch::Floats4* partial_statistics(const AttentionParams& p, int head_size, int slot, int row) {
  return partial_sums(p, head_size, slot, p.rows) + row * statistics_copies(head_size);
}

template <AttentionConfig config>
SLUICE_DEVICE void write_result(const AttentionParams& params, int sequence, int key_head, int row, int vector, const RowPart& x) {
  const int token = row / params.group, head = key_head * params.group + row % params.group;
  const std::int64_t at = (std::int64_t{sequence} * params.query_len + token) * (params.heads_kv * params.group) + head;
  float factor = x.sum == 0 ? 0.0f : 1.0f / x.sum;
  if constexpr (config.fp8) factor *= arch::load_global(params.v_scales + key_head);
  struct alignas(8) Pairs {
    std::uint32_t words[2];
  };
  Pairs result;
  SLUICE_UNROLL
  for (int i = 0; i < 2; ++i) {
    const float low = x.o[2 * i] * factor, high = x.o[2 * i + 1] * factor;
    result.words[i] = config.type == DataType::bf16 ? arch::pack_bf16(low, high) : arch::pack_fp16(low, high);
  }
  arch::store_global(static_cast<Pairs*>(params.o) + at * (config.head_size / 4) + vector, result);
  constexpr float kLn2 = 0.693147181f;
  if (params.lse != nullptr && vector == 0)
    arch::store_global(params.lse + at, x.sum == 0 ? -__builtin_inff() : kLn2 * (x.maximum + arch::log_of_two(x.sum)));
}

}  // namespace sluice
