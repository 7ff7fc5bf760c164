// Partial results in the workspace, and results. Numbers announce themselves: a word of the workspace is there when it has another pattern
// than kNothingThere. So neither fences nor flags lie between a sum and its use, and a chunk may say that it ends shortly before it does.
#pragma once

#include "arch/warp_mma.cuh"
#include "core/attention_config.hpp"
#include "kernel/attention/attention_params.hpp"

namespace sluice {

struct AttentionPart {
  int sequence, head, chunk, chunks;
};

// Of a row, relative to a maximum: the sum of exponentials, and four columns' sums.
struct RowPart {
  float maximum, sum;
  float o[4];
};

SLUICE_DEVICE float finite(float maximum) { return maximum == -__builtin_inff() ? 0.0f : maximum; }

// A chunk's rows, then each row's maximum and sum of exponentials.
SLUICE_DEVICE arch::Floats4* partial_sums(const AttentionParams& p, const AttentionPart& part, int head_size, int chunk, int row) {
  const std::int64_t number = (std::int64_t{part.sequence} * p.heads_kv + part.head) * p.most_chunks + chunk;
  return p.partials + number * partial_vectors(p.rows, head_size) + row * (head_size / 4);
}
SLUICE_DEVICE arch::Floats4* partial_statistics(const AttentionParams& p, const AttentionPart& part, int head_size, int chunk, int row) {
  return partial_sums(p, part, head_size, chunk, p.rows) + row;
}

template <AttentionConfig config>
SLUICE_DEVICE void write_result(const AttentionParams& params, const AttentionPart& part, int row, int vector, const RowPart& x) {
  const int token = row / params.group, head = part.head * params.group + row % params.group;
  const std::int64_t at = (std::int64_t{part.sequence} * params.query_len + token) * (params.heads_kv * params.group) + head;
  float factor = x.sum == 0 ? 0.0f : 1.0f / x.sum;
  if constexpr (config.fp8) factor *= arch::load_global(params.v_scales + part.head);
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
