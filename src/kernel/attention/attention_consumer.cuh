// A consumer: a warp with 8 or 16 rows of the queries and its part of each stage's tokens, its own maxima and sums. The warps do not wait
// for each other until the chunk ends. Of each tile of eight rows a lane has two, 2 (lane % 4) and the next, as have seven others.
#pragma once

#include "arch/warp_mma.cuh"
#include "core/attention_config.hpp"
#include "kernel/attention/attention_fragments.cuh"
#include "kernel/attention/attention_params.hpp"
#include "kernel/attention/attention_ring.cuh"
#include "kernel/attention/partial_results.cuh"

namespace sluice {

inline constexpr float kMinusInfinity = -__builtin_inff();

template <AttentionConfig config>
class AttentionConsumer {
 public:
  SLUICE_DEVICE AttentionConsumer(const AttentionParams& params, std::byte* shared, int warp)
      : params_(params), ring_(params, shared), fragments_(), warp_(warp) {
    for (int t = 0; t < kTiles; ++t)
      for (int e = 0; e < 2; ++e)
        token_[t][e] = (warp % row_groups(config) * kTiles * kTileRows + t * kTileRows + arch::lane() % 4 * 2 + e) / params.group;
  }

  // Returns what the last header says of bringing results together.
  SLUICE_DEVICE int run() {
    AttentionStageHeader header;
    while (read_header(header)) {
      begin_run(header.head);
      for (;;) {
        begin_chunk();
        for (;;) {
          multiply_stage(header);
          if ((header.flags & kChunkEnds) != 0) break;
          read_header(header);
        }
        end_chunk(header);
        if ((header.flags & kRunEnds) != 0) break;
        read_header(header);
      }
    }
    return header.merge_counts;
  }

 private:
  using Fragments = AttentionFragments<config>;
  using Scores = typename Fragments::Scores;
  static constexpr int kTiles = tiles_of_warp(config), kSteps = config.head_size / 16;
  static constexpr int kSliceTokens = stage_tokens(config) / token_slices(config), kBlocks = blocks_of_warp(config);

  SLUICE_DEVICE int slice_offset() const { return warp_ / row_groups(config) * (kSliceTokens * box_row_bytes(config)); }
  SLUICE_DEVICE arch::SharedAddress q_rows() const {
    return ring_.q_slot(q_at_) + warp_ % row_groups(config) * (kTiles * kTileRows * q_pitch_bytes(config));
  }

  // False when no stage follows.
  SLUICE_DEVICE bool read_header(AttentionStageHeader& header) const {
    ring_.wait_full(at_);
    std::uint32_t low[4], high[4];
    arch::load_shared(ring_.header(at_), low);
    arch::load_shared(ring_.header(at_) + 16, high);
    header = {.flags = static_cast<int>(low[0]),
              .first_token = static_cast<int>(low[1]),
              .sequence = static_cast<int>(low[2]),
              .head = static_cast<int>(low[3]),
              .length = static_cast<int>(high[0]),
              .slot = static_cast<int>(high[1]),
              .chunk = static_cast<int>(high[2]),
              .merge_counts = static_cast<int>(high[3])};
    return (header.flags & kNoMoreStages) == 0;
  }

  SLUICE_DEVICE void multiply_stage(const AttentionStageHeader& header) {
    const int slice_begin = header.first_token + warp_ / row_groups(config) * kSliceTokens;
    const int blocks = (header.flags & kStageEmpty) != 0 ? 0 : blocks_there(header.length - slice_begin);
    Scores s;
    if (blocks > 0) fragments_.multiply_keys(ring_.stage(at_) + slice_offset(), blocks, queries_, q_rows(), s);
    release();
    if (blocks > 0) weigh(s, slice_begin, header.length);
    ring_.wait_full(at_);
    if (blocks > 0) fragments_.multiply_values(ring_.stage(at_) + slice_offset(), blocks, s, o_);
    release();
  }

  static SLUICE_DEVICE int blocks_there(int tokens) {
    if (tokens <= 0) return 0;
    const int blocks = (tokens + kBlockTokens - 1) / kBlockTokens;
    return blocks < kBlocks ? blocks : kBlocks;
  }

  SLUICE_DEVICE void release() {
    arch::sync_warp();
    if (arch::lane() == 0) arch::barrier_arrive(ring_.empty(at_));
    at_.advance(params_.stages);
  }

  SLUICE_DEVICE void begin_run(int head) {
    arch::barrier_wait(ring_.q_full(q_at_), q_at_.parity);
    if constexpr (Fragments::kHoldsQueries) {
      fragments_.load_queries(q_rows(), queries_);
      release_queries();
    }
    k_scale_ = 1;
    if constexpr (config.fp8) k_scale_ = arch::load_global(params_.k_scales + head);
  }

  SLUICE_DEVICE void begin_chunk() {
    SLUICE_UNROLL
    for (int t = 0; t < kTiles; ++t) {
      for (int n = 0; n < kSteps; ++n)
        for (int i = 0; i < 4; ++i) o_[n][t][i] = 0;
      for (int e = 0; e < 2; ++e) {
        maximum_[t][e] = kMinusInfinity;
        sum_[t][e] = 0;
      }
    }
  }

  SLUICE_DEVICE void release_queries() {
    arch::sync_warp();
    if (arch::lane() == 0) arch::barrier_arrive(ring_.q_empty(q_at_));
    q_at_.advance(q_slots(config));
  }

  // From products to weights: s becomes 2^(s - maximum), and what was summed up so far is scaled to the new maximum.
  SLUICE_DEVICE void weigh(Scores& s, int first_token, int length) {
    scale(s);
    // The first new token sees least behind, the last one least before.
    const int first_position = length - params_.query_len;
    const bool ends = first_token + kSliceTokens > (params_.causal ? first_position + 1 : length);
    const bool begins = params_.window > 0 && first_token < length - params_.window;
    if (ends || begins) mask(s, first_token, length);
    float reference[kTiles][2], factor[kTiles][2];
    bool changed = false;
    SLUICE_UNROLL
    for (int t = 0; t < kTiles; ++t)
      for (int e = 0; e < 2; ++e) {
        float m = maximum_[t][e];
        SLUICE_UNROLL
        for (int b = 0; b < kBlocks; ++b) m = arch::maximum(m, arch::maximum(s[b][t][e], s[b][t][2 + e]));
        for (int lanes = 4; lanes < 32; lanes *= 2) m = arch::maximum(m, arch::shuffle_xor(m, lanes));
        changed = changed || m != maximum_[t][e];
        reference[t][e] = m == kMinusInfinity ? 0.0f : m;
        factor[t][e] = arch::power_of_two(maximum_[t][e] - reference[t][e]);
        maximum_[t][e] = m;
      }
    if (arch::count_lanes(changed) > 0) rescale(factor);
    SLUICE_UNROLL
    for (int b = 0; b < kBlocks; ++b)
      for (int t = 0; t < kTiles; ++t)
        for (int i = 0; i < 4; ++i) {
          s[b][t][i] = arch::power_of_two(s[b][t][i] - reference[t][i % 2]);
          sum_[t][i % 2] += s[b][t][i];
        }
  }

  SLUICE_DEVICE void rescale(const float (&factor)[kTiles][2]) {
    SLUICE_UNROLL
    for (int t = 0; t < kTiles; ++t) {
      for (int e = 0; e < 2; ++e) sum_[t][e] *= factor[t][e];
      for (int n = 0; n < kSteps; ++n)
        for (int i = 0; i < 4; ++i) o_[n][t][i] *= factor[t][i % 2];
    }
  }

  // f(score) for each that this lane has.
  template <class F>
  static SLUICE_DEVICE void for_each(Scores& s, F f) {
    SLUICE_UNROLL
    for (int b = 0; b < kBlocks; ++b)
      for (int t = 0; t < kTiles; ++t)
        for (int i = 0; i < 4; ++i) f(s[b][t][i], b, t, i);
  }

  SLUICE_DEVICE void scale(Scores& s) const {
    if (params_.cap_exponent == 0) {
      const float factor = params_.scale_log2 * k_scale_;
      for_each(s, [factor](float& x, int, int, int) { x *= factor; });
      return;
    }
    // tanh(x) = 1 - 2 / (e^2x + 1), within 2^-21 of it
    const float factor = params_.cap_exponent * k_scale_, cap = params_.scale_log2;
    for_each(s,
             [factor, cap](float& x, int, int, int) { x = cap * (1.0f - 2.0f * arch::reciprocal(arch::power_of_two(x * factor) + 1.0f)); });
  }

  SLUICE_DEVICE void mask(Scores& s, int first_token, int length) const {
    for_each(s, [&](float& x, int b, int t, int i) {
      const int position = length - params_.query_len + token_[t][i % 2],
                token = first_token + kBlockTokens * b + arch::lane() / 4 + i / 2 * 8;
      const int last = params_.causal && position < length ? position : length - 1;
      const int first = params_.window > 0 ? position - params_.window + 1 : 0;
      if (token < first || token > last) x = kMinusInfinity;
    });
  }

  SLUICE_DEVICE void end_chunk(const AttentionStageHeader& header) {
    if constexpr (!Fragments::kHoldsQueries)
      if ((header.flags & kRunEnds) != 0) release_queries();
    SLUICE_UNROLL
    for (int t = 0; t < kTiles; ++t)
      for (int e = 0; e < 2; ++e)
        for (int lanes = 4; lanes < 32; lanes *= 2) sum_[t][e] += arch::shuffle_xor(sum_[t][e], lanes);
    PartialResults<config>(params_, ring_, header, warp_).deliver(maximum_, sum_, o_);
  }

  const AttentionParams& params_;
  AttentionRing<config> ring_;
  Fragments fragments_;
  int warp_;
  AttentionPosition at_, q_at_;
  int token_[kTiles][2];  // new tokens that this lane's rows belong to
  typename Fragments::Queries queries_[Fragments::kHeldSteps];
  typename Fragments::Sums o_;
  float maximum_[kTiles][2], sum_[kTiles][2];  // the sums are this lane's alone
  float k_scale_ = 1;
};

}  // namespace sluice
