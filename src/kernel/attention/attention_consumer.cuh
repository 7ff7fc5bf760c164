// A consumer: a warp with 16 rows of the queries and its part of each stage's tokens, its own maxima and sums. The warps do not wait for each
// other until the chunk ends.
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
    for (int i = 0; i < 2; ++i) token_[i] = row(i) / params.group;
  }

  SLUICE_DEVICE void run() {
    AttentionStageHeader header;
    while (read_header(header)) {
      begin(header.head);
      PartialResults<config> results(params_, ring_,
                                     {.sequence = header.sequence, .head = header.head, .chunk = header.chunk, .chunks = header.chunks}, warp_);
      for (;;) {
        const bool ends = (header.flags & kStageEnds) != 0;
        if (ends) results.announce();
        multiply_stage(header);
        if (ends) break;
        read_header(header);
      }
      finish(results);
    }
  }

 private:
  using Fragments = AttentionFragments<config>;
  static constexpr int kSliceTokens = kStageTokens / token_slices(config), kBlocks = kSliceTokens / kBlockTokens;

  // Of this lane's two rows.
  SLUICE_DEVICE int row(int i) const { return warp_ % config.row_tiles * kRowsPerTile + arch::lane() / 4 + 8 * i; }
  SLUICE_DEVICE int slice_offset() const { return warp_ / config.row_tiles * (kSliceTokens * box_row_bytes(config)); }
  SLUICE_DEVICE arch::SharedAddress q_rows() const {
    return ring_.q_slot(q_at_) + warp_ % config.row_tiles * (kRowsPerTile * q_pitch_bytes(config));
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
              .chunk = static_cast<int>(high[1]),
              .chunks = static_cast<int>(high[2])};
    return (header.flags & kNoMoreStages) == 0;
  }

  SLUICE_DEVICE void multiply_stage(const AttentionStageHeader& header) {
    const int slice_begin = header.first_token + warp_ / config.row_tiles * kSliceTokens;
    const int blocks = (header.flags & kStageEmpty) != 0 ? 0 : blocks_there(header.length - slice_begin);
    float s[2 * kBlocks][4];
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

  SLUICE_DEVICE void begin(int head) {
    arch::barrier_wait(ring_.q_full(q_at_), q_at_.parity);
    if constexpr (Fragments::kHoldsQueries) {
      fragments_.load_queries(q_rows(), queries_);
      release_queries();
    }
    SLUICE_UNROLL
    for (int n = 0; n < config.head_size / 8; ++n)
      for (int i = 0; i < 4; ++i) o_[n][i] = 0;
    for (int i = 0; i < 2; ++i) {
      maximum_[i] = kMinusInfinity;
      sum_[i] = 0;
    }
    k_scale_ = 1;
    if constexpr (config.fp8) k_scale_ = arch::load_global(params_.k_scales + head);
  }

  SLUICE_DEVICE void release_queries() {
    arch::sync_warp();
    if (arch::lane() == 0) arch::barrier_arrive(ring_.q_empty(q_at_));
    q_at_.advance(q_slots(config));
  }

  // From products to weights: s becomes 2^(s - maximum), and what was summed up so far is scaled to the new maximum.
  SLUICE_DEVICE void weigh(float (&s)[2 * kBlocks][4], int first_token, int length) {
    scale(s);
    // The first new token sees least behind, the last one least before.
    const int first_position = length - params_.query_len;
    const bool ends = first_token + kSliceTokens > (params_.causal ? first_position + 1 : length);
    const bool begins = params_.window > 0 && first_token < length - params_.window;
    if (ends || begins) mask(s, first_token, length);
    float old[2] = {maximum_[0], maximum_[1]}, reference[2];
    bool changed = false;
    SLUICE_UNROLL
    for (int i = 0; i < 2; ++i) {
      float m = maximum_[i];
      SLUICE_UNROLL
      for (int n = 0; n < 2 * kBlocks; ++n) m = arch::maximum(m, arch::maximum(s[n][2 * i], s[n][2 * i + 1]));
      m = arch::maximum(m, arch::shuffle_xor(m, 1));
      m = arch::maximum(m, arch::shuffle_xor(m, 2));
      maximum_[i] = m;
      reference[i] = m == kMinusInfinity ? 0.0f : m;
      changed = changed || m != old[i];
    }
    if (arch::count_lanes(changed) > 0) rescale(old, reference);
    SLUICE_UNROLL
    for (int n = 0; n < 2 * kBlocks; ++n)
      for (int i = 0; i < 4; ++i) {
        s[n][i] = arch::power_of_two(s[n][i] - reference[i / 2]);
        sum_[i / 2] += s[n][i];
      }
  }

  SLUICE_DEVICE void rescale(const float (&old)[2], const float (&reference)[2]) {
    const float factor[2] = {arch::power_of_two(old[0] - reference[0]), arch::power_of_two(old[1] - reference[1])};
    for (int i = 0; i < 2; ++i) sum_[i] *= factor[i];
    SLUICE_UNROLL
    for (int n = 0; n < config.head_size / 8; ++n)
      for (int i = 0; i < 4; ++i) o_[n][i] *= factor[i / 2];
  }

  SLUICE_DEVICE void scale(float (&s)[2 * kBlocks][4]) const {
    if (params_.cap_exponent == 0) {
      const float factor = params_.scale_log2 * k_scale_;
      SLUICE_UNROLL
      for (int n = 0; n < 2 * kBlocks; ++n)
        for (int i = 0; i < 4; ++i) s[n][i] *= factor;
      return;
    }
    // tanh(x) = 1 - 2 / (e^2x + 1), within 2^-21 of it
    const float factor = params_.cap_exponent * k_scale_;
    SLUICE_UNROLL
    for (int n = 0; n < 2 * kBlocks; ++n)
      for (int i = 0; i < 4; ++i)
        s[n][i] = params_.scale_log2 * (1.0f - 2.0f * arch::reciprocal(arch::power_of_two(s[n][i] * factor) + 1.0f));
  }

  SLUICE_DEVICE void mask(float (&s)[2 * kBlocks][4], int first_token, int length) const {
    SLUICE_UNROLL
    for (int i = 0; i < 2; ++i) {
      const int position = length - params_.query_len + token_[i];
      const int last = params_.causal && position < length ? position : length - 1;
      const int first = params_.window > 0 ? position - params_.window + 1 : 0;
      SLUICE_UNROLL
      for (int n = 0; n < 2 * kBlocks; ++n)
        for (int e = 0; e < 2; ++e) {
          const int token = first_token + 8 * n + 2 * (arch::lane() % 4) + e;
          if (token < first || token > last) s[n][2 * i + e] = kMinusInfinity;
        }
    }
  }

  SLUICE_DEVICE void finish(PartialResults<config>& results) {
    if constexpr (!Fragments::kHoldsQueries) release_queries();
    SLUICE_UNROLL
    for (int i = 0; i < 2; ++i) {
      sum_[i] += arch::shuffle_xor(sum_[i], 1);
      sum_[i] += arch::shuffle_xor(sum_[i], 2);
    }
    results.deliver(maximum_, sum_, o_);
  }

  const AttentionParams& params_;
  AttentionRing<config> ring_;
  Fragments fragments_;
  int warp_;
  AttentionPosition at_, q_at_;
  int token_[2];  // new tokens that this lane's rows belong to
  std::uint32_t queries_[Fragments::kHeldSteps][4];
  float o_[config.head_size / 8][4];
  float maximum_[2], sum_[2];  // the sums are this lane's alone
  float k_scale_ = 1;
};

}  // namespace sluice
