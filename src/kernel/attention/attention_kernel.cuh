// The attention kernel: CTAs draw runs of chunks of sequences. In each CTA one warp draws, and fetches queries, one fetches keys and values
// through a ring, and the others multiply, each with a maximum and sums of its own, which meet when a chunk ends (partial_results.cuh). Who
// finds no run left brings results of runs together (row_merge.cuh).
#pragma once

#include "arch/warp_mma.cuh"
#include "core/attention_config.hpp"
#include "kernel/attention/attention_consumer.cuh"
#include "kernel/attention/attention_params.hpp"
#include "kernel/attention/attention_ring.cuh"
#include "kernel/attention/kv_producer.cuh"
#include "kernel/attention/row_merge.cuh"

namespace sluice {

// Rows of Q that no head has are zeros from beginning to end.
template <AttentionConfig config>
SLUICE_DEVICE void clear_unused_queries(const AttentionParams& params, const AttentionRing<config>& ring, int thread) {
  constexpr int kVectors = q_pitch_bytes(config) / 16, kRows = config.rows;
  const std::uint32_t zeros[4] = {0, 0, 0, 0};
  for (int i = thread; i < q_slots(config) * kRows * kVectors; i += attention_threads(config))
    if (i / kVectors % kRows >= params.rows) arch::store_shared(ring.q_slot({}) + i * 16, zeros);
}

template <AttentionConfig config>
SLUICE_DEVICE void run_attention_kernel(const AttentionParams& params) {
  std::byte* const shared = arch::dynamic_shared_memory();
  const AttentionRing<config> ring(params, shared);
  const int warp = arch::warp_in_cta();
  if (warp == consumer_warps(config) && arch::lane() == 0) {
    ring.init();
    arch::fence_barrier_init();
    arch::prefetch_tensor_map(params.k.map);
    arch::prefetch_tensor_map(params.v.map);
  }
  clear_unused_queries(params, ring, warp * 32 + arch::lane());
  arch::allow_successor();
  arch::sync_cta();
  // What the kernel before leaves in the workspace, and what it writes to the cache. Of a constant cache everyone fetches what it may.
  if (!params.constant_cache) arch::wait_for_predecessor();
  constexpr int kDispatcher = consumer_warps(config);
  if (warp < kDispatcher) {
    arch::note_role("consumer");
    if constexpr (row_groups(config) > 1) arch::raise_register_limit<kManyRegisters>();
    RowMerge<config> merge(params, ring, warp);
    int counts = 0;
    SLUICE_NO_UNROLL
    for (int pass = 0; pass < 2; ++pass) {
      if (pass == 1) {
        arch::wait_for_predecessor();
        counts = AttentionConsumer<config>(params, shared, warp).run();
        if (counts == 0) return;
      }
      merge.run(pass == 0, counts);
    }
    return;
  }
  if constexpr (row_groups(config) > 1) arch::lower_register_limit<kFewRegisters>();
  if (warp == kDispatcher) {
    arch::note_role("dispatcher");
    AttentionDispatcher<config>(params, shared).run();
  } else if (warp == kDispatcher + 1) {
    arch::note_role("producer");
    KvProducer<config>(params, shared).run();
  }
}

}  // namespace sluice
