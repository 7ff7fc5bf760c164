#include "launch/bind_attention.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>

#include "core/attention_config.hpp"

namespace sluice {
namespace {

struct Blocks {
  std::int64_t tokens;  // of a sequence or page
  std::int64_t count;
  std::int64_t steps;  // what one of them adds to the third coordinate
};

Blocks blocks_of(const AttentionProblem& p) {
  Blocks b{.tokens = p.page_size == 0 ? p.max_kv_len : p.page_size, .count = p.page_size == 0 ? p.batch : p.pages, .steps = 1};
  if (p.kv_layout == KvLayout::heads_first) b.steps = p.kv_stride / (b.tokens * p.head_size);
  return b;
}

int many_rows(const AttentionProblem& p) {
  const int stage = stage_tokens(attention_config(p));
  return p.page_size == 0 ? stage : std::min<int>(stage, static_cast<int>(p.page_size));
}

Status fill_tensor(const AttentionProblem& p, const char* name, const void* data, EncodeTensorMap encode, AttentionTensor& out) {
  const Blocks blocks = blocks_of(p);
  const bool tokens_first = p.kv_layout == KvLayout::tokens_first;
  const std::int64_t head_elems = blocks.tokens * p.head_size;
  // The last block ends with its heads, wherever another one would begin.
  const GlobalTensor tensor{.name = name,
                            .data = data,
                            .type = p.kv_type,
                            .inner = tokens_first ? p.heads_kv * p.head_size : p.head_size,
                            .outer = blocks.tokens,
                            .matrices = tokens_first ? blocks.count : (blocks.count - 1) * blocks.steps + p.heads_kv,
                            .leading_elems = tokens_first ? p.heads_kv * p.head_size : p.head_size,
                            .matrix_stride_elems = tokens_first ? p.kv_stride : head_elems};
  const int inner = box_row_bytes(attention_config(p)) / size_bytes(p.kv_type);
  Result<arch::TensorMap> map = encode(tensor, {.inner = inner, .outer = many_rows(p)});
  if (!map) return map.error();
  const std::int64_t element_bytes = size_bytes(p.kv_type), row_bytes = p.head_size * element_bytes;
  out = {.map = *map,
         .data = static_cast<const std::byte*>(data),
         .block_bytes = p.kv_stride * element_bytes,
         .head_bytes = tokens_first ? row_bytes : blocks.tokens * row_bytes,
         .token_bytes = tokens_first ? p.heads_kv * row_bytes : row_bytes};
  return Nothing{};
}

void bind_numbers(const AttentionProblem& p, AttentionParams& params) {
  constexpr double kLog2E = 1.4426950408889634;
  params.scale_log2 = static_cast<float>((p.soft_cap > 0 ? p.soft_cap : p.scale) * kLog2E);
  params.cap_exponent = p.soft_cap > 0 ? static_cast<float>(2 * kLog2E * p.scale / p.soft_cap) : 0.0f;
  params.batch = static_cast<std::int32_t>(p.batch);
  params.query_len = static_cast<std::int32_t>(p.query_len);
  params.heads_kv = static_cast<std::int32_t>(p.heads_kv);
  params.group = static_cast<std::int32_t>(p.heads_q / p.heads_kv);
  params.rows = attention_rows(p);
  params.max_kv_len = static_cast<std::int32_t>(p.max_kv_len);
  params.window = static_cast<std::int32_t>(p.window);
  params.causal = p.causal;
  params.constant_cache = p.constant_cache;
  params.many_rows = many_rows(p);
  while (p.page_size >> params.page_shift > 1) ++params.page_shift;
  params.pages = static_cast<std::int32_t>(p.pages);
  const Blocks blocks = blocks_of(p);
  const bool tokens_first = p.kv_layout == KvLayout::tokens_first;
  params.head_inner = tokens_first ? static_cast<std::int32_t>(p.head_size) : 0;
  params.head_batch = tokens_first ? 0 : 1;
  params.block_batch = static_cast<std::int32_t>(blocks.steps);
}

}  // namespace

Result<AttentionParams> bind(const AttentionPlan& plan, const AttentionArguments& arguments, void* workspace, EncodeTensorMap encode) {
  const AttentionProblem& p = plan.problem;
  AttentionParams params{};
  if (p.max_kv_len > 0) {
    if (Status s = fill_tensor(p, "K", arguments.k, encode, params.k); !s) return s.error();
    if (Status s = fill_tensor(p, "V", arguments.v, encode, params.v); !s) return s.error();
    bind_numbers(p, params);
  } else {
    AttentionProblem empty = p;
    empty.kv_layout = KvLayout::tokens_first;
    bind_numbers(empty, params);
  }
  params.q = arguments.q;
  params.o = arguments.o;
  params.lse = p.lse ? arguments.lse : nullptr;
  params.lengths = arguments.lengths;
  params.block_table = p.page_size != 0 ? arguments.block_table : nullptr;
  params.block_table_stride = arguments.block_table_stride;
  params.k_scales = arguments.k_scales;
  params.v_scales = arguments.v_scales;
  params.fault = arguments.fault;
  params.ticket = static_cast<std::uint64_t*>(workspace);
  params.merge_ticket = reinterpret_cast<std::uint32_t*>(params.ticket + 1);
  params.partials = reinterpret_cast<arch::Floats4*>(static_cast<std::byte*>(workspace) + kWorkspaceAlignment);
  params.least_chunk_log2 = std::countr_zero(static_cast<unsigned>(plan.split.least_chunk));
  params.most_chunks = plan.split.most_chunks;
  params.run_levels = plan.run_levels;
  params.long_run = static_cast<float>(p.heads_kv) / static_cast<float>(kLongRunsOfShare * plan.ctas);
  params.stages = plan.stages;
  return params;
}

}  // namespace sluice
