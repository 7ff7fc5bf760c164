// What a launch passes to the attention kernel.
#pragma once

#include <cstddef>
#include <cstdint>

#include "arch/types.hpp"

namespace sluice {

// K or V, in boxes of many rows (inner: within a row; outer: tokens of a sequence or page; batch: sequences or pages, with heads_first
// times heads) and as it lies in memory.
struct AttentionTensor {
  arch::TensorMap map;
  const std::byte* data;
  std::int64_t block_bytes;  // from a sequence or page to the next,
  std::int64_t head_bytes, token_bytes;
};

struct AttentionParams {
  AttentionTensor k, v;
  const void* q;
  void* o;
  float* lse;                       // null: not wanted
  const std::int32_t* lengths;      // null: all are max_kv_len
  const std::int32_t* block_table;  // null: no pages
  const float* k_scales;
  const float* v_scales;
  std::uint32_t* fault;         // null: nobody asks
  std::uint64_t* ticket;        // of runs (work_list.cuh)
  std::uint32_t* merge_ticket;  // of rows whose runs have been brought together
  arch::Floats4* partials;
  std::int64_t block_table_stride;
  std::int32_t batch, query_len, heads_kv, group, rows;
  std::int32_t max_kv_len;
  std::int32_t window;  // 0: none
  bool causal;
  bool constant_cache;      // lengths, pages, and all but new tokens may be read before the kernel before this one has finished
  std::int32_t many_rows;   // of the largest box; a page has whole ones of them
  std::int32_t page_shift;  // a page has 2^page_shift tokens
  std::int32_t pages;
  std::int32_t head_inner, head_batch;  // what a head adds to the coordinates
  std::int32_t block_batch;             // and a sequence or page
  std::int32_t least_chunk_log2, most_chunks;
  std::int32_t run_levels;
  float long_run;  // of all tokens, those of a long run
  std::int32_t stages;
  float scale_log2;    // of a score, towards powers of two; with a soft cap, of the cap
  float cap_exponent;  // with a soft cap: 2 log2(e) scale / cap; 0: none
};

}  // namespace sluice
