// The two products of attention by mma.sync, transposed: S^T = K Q^T and O^T = V^T P^T. Keys, and columns of values, are the 16 rows of an
// instruction and queries its 8 columns, so that few queries leave little of it idle. Which lane fetches what from a stage, for 16-bit keys
// and values and for those of e4m3.
#pragma once

#include "arch/warp_mma.cuh"
#include "core/attention_config.hpp"

namespace sluice {

template <AttentionConfig config>
class AttentionFragments {
 public:
  static constexpr int kTiles = tiles_of_warp(config);
  static constexpr int kSteps = config.head_size / 16;  // of 16 elements of a head
  static constexpr bool kHoldsQueries = row_groups(config) == 1;
  static constexpr int kHeldSteps = kHoldsQueries ? kSteps : 1;
  static constexpr int kBlocks = blocks_of_warp(config);
  // e4m3 becomes fp16, which holds all of its numbers.
  static constexpr DataType kType = config.fp8 ? DataType::fp16 : config.type;

  using Queries = std::uint32_t[kTiles][2];              // of one step
  using Scores = float[kBlocks][kTiles][4];              // tokens lane / 4 and 8 more, rows 2 (lane % 4) and the next
  using Sums = float[config.head_size / 16][kTiles][4];  // columns as column() says, rows 2 (lane % 4) and the next

  // Of the head, that a lane has in element i of the sums of step n.
  static SLUICE_DEVICE int column(int n, int i) {
    const int lane_row = arch::lane() / 4;
    return 16 * n + (config.fp8 ? 2 * lane_row + i / 2 : lane_row + i / 2 * 8);
  }

  SLUICE_DEVICE AttentionFragments() {
    const int lane = arch::lane(), matrix = lane / 8, in_matrix = lane % 8;
    // Matrices: of keys tokens 0..7, tokens 8..15, then both of the next packet of 16 bytes. Of values tokens 0..7 in two packets, then
    // tokens 8..15; of e4m3 a packet makes a step, and matrices go as those of keys.
    key_row_ = (matrix % 2 * 8 + in_matrix) * kRowBytes;
    key_packet_ = turned(matrix / 2, in_matrix);
    value_row_ = config.fp8 ? key_row_ : (matrix / 2 * 8 + in_matrix) * kRowBytes;
    value_packet_ = config.fp8 ? key_packet_ : turned(matrix % 2, in_matrix);
  }

  SLUICE_DEVICE void load_queries(arch::SharedAddress rows, Queries (&q)[kHeldSteps]) const {
    SLUICE_UNROLL
    for (int step = 0; step < kHeldSteps; ++step) load_query(rows, step, q[step]);
  }

  // s = K Q^T for `blocks` times 16 tokens; what is behind them stays 0.
  SLUICE_DEVICE void multiply_keys(arch::SharedAddress keys, int blocks, const Queries (&held)[kHeldSteps], arch::SharedAddress q_rows,
                                   Scores& s) const {
    SLUICE_UNROLL
    for (int b = 0; b < kBlocks; ++b)
      for (int t = 0; t < kTiles; ++t)
        for (int i = 0; i < 4; ++i) s[b][t][i] = 0;
    constexpr int kLoads = kSteps / kStepsPerLoad, kAtOnce = kLoads < 4 ? kLoads : 4;
    SLUICE_UNROLL
    for (int first = 0; first < kLoads; first += kAtOnce) {
      Queries q[kAtOnce * kStepsPerLoad];
      SLUICE_UNROLL
      for (int i = 0; i < kAtOnce * kStepsPerLoad; ++i) take_query(held, q_rows, first * kStepsPerLoad + i, q[i]);
      SLUICE_UNROLL
      for (int b = 0; b < kBlocks; b += kBlocksAtOnce) {
        if (b > 0 && b >= blocks) break;
        std::uint32_t k[kBlocksAtOnce][kAtOnce][4];
        SLUICE_UNROLL
        for (int i = 0; i < kBlocksAtOnce; ++i)
          for (int l = 0; l < kAtOnce; ++l)
            arch::load_matrices<false>(packet(keys + (b + i) * kBlockBytes + key_row_, key_packet_, 2 * (first + l)), k[i][l]);
        SLUICE_UNROLL
        for (int l = 0; l < kAtOnce; ++l)
          for (int i = 0; i < kBlocksAtOnce; ++i) multiply_key_packets(k[i][l], &q[l * kStepsPerLoad], s[b + i]);
      }
    }
  }

  // o += V^T s.
  SLUICE_DEVICE void multiply_values(arch::SharedAddress values, int blocks, const Scores& s, Sums& o) const {
    SLUICE_UNROLL
    for (int b = 0; b < kBlocks; ++b) {
      if (b > 0 && b >= blocks) break;
      std::uint32_t weights[kTiles][2];
      SLUICE_UNROLL
      for (int t = 0; t < kTiles; ++t)
        for (int half = 0; half < 2; ++half) weights[t][half] = arch::transpose_matrix(pack(s[b][t][2 * half], s[b][t][2 * half + 1]));
      constexpr int kLoads = kSteps / kStepsPerLoad, kAtOnce = kLoads < 4 ? kLoads : 4;
      SLUICE_UNROLL
      for (int first = 0; first < kLoads; first += kAtOnce) {
        std::uint32_t v[kAtOnce][4];
        SLUICE_UNROLL
        for (int l = 0; l < kAtOnce; ++l)
          arch::load_matrices<true>(packet(values + b * kBlockBytes + value_row_, value_packet_, 2 * (first + l)), v[l]);
        SLUICE_UNROLL
        for (int l = 0; l < kAtOnce; ++l) multiply_value_packets(v[l], weights, &o[(first + l) * kStepsPerLoad]);
      }
    }
  }

 private:
  static constexpr int kRowBytes = box_row_bytes(config), kBoxPackets = kRowBytes / 16;
  static constexpr int kBlockBytes = kBlockTokens * kRowBytes;
  static constexpr int kStepsPerLoad = config.fp8 ? 2 : 1;  // a load brings two packets of each token
  static constexpr int kBlocksAtOnce = blocks_at_once(config);

  // The swizzle: packets of a row are turned by the number of its 128 bytes in the atom of eight such.
  static SLUICE_DEVICE int turned(int packet, int row) { return (packet ^ (row * kRowBytes / 128 % kBoxPackets)) << 4; }

  // `number` is even, and its box and place are known to the compiler.
  static SLUICE_DEVICE arch::SharedAddress packet(arch::SharedAddress row, int turned, int number) {
    return row + number / kBoxPackets * (stage_tokens(config) * kRowBytes) + (turned ^ (number % kBoxPackets) << 4);
  }

  static SLUICE_DEVICE std::uint32_t pack(float low, float high) {
    return kType == DataType::bf16 ? arch::pack_bf16(low, high) : arch::pack_fp16(low, high);
  }

  SLUICE_DEVICE void take_query(const Queries (&held)[kHeldSteps], arch::SharedAddress rows, int step, Queries& q) const {
    if constexpr (kHoldsQueries) {
      for (int t = 0; t < kTiles; ++t)
        for (int i = 0; i < 2; ++i) q[t][i] = held[step][t][i];
    } else {
      load_query(rows, step, q);
    }
  }

  // Of e4m3, a lane has four neighbouring elements of a token in a packet, and so it takes four neighbouring ones of the queries: products
  // are summed in another order than they stand.
  static SLUICE_DEVICE void load_query(arch::SharedAddress rows, int step, Queries& q) {
    const int lane = arch::lane();
    SLUICE_UNROLL
    for (int t = 0; t < kTiles; ++t) {
      const arch::SharedAddress row = rows + (8 * t + lane / 4) * q_pitch_bytes(config) + step * 32;
      if constexpr (config.fp8) {
        std::uint32_t pairs[2];
        arch::load_shared(row + lane % 4 * 8, pairs);
        q[t][0] = as_fp16(pairs[0]);
        q[t][1] = as_fp16(pairs[1]);
      } else {
        arch::load_shared(row + lane % 4 * 4, q[t][0]);
        arch::load_shared(row + lane % 4 * 4 + 16, q[t][1]);
      }
    }
  }

  static SLUICE_DEVICE std::uint32_t as_fp16(std::uint32_t pair) {
    if constexpr (config.type == DataType::fp16)
      return pair;
    else
      return arch::pack_fp16(arch::bf16_to_float(static_cast<std::uint16_t>(pair)),
                             arch::bf16_to_float(static_cast<std::uint16_t>(pair >> 16)));
  }

  static SLUICE_DEVICE void multiply_key_packets(const std::uint32_t (&k)[4], const Queries* q, float (&s)[kTiles][4]) {
    if constexpr (config.fp8) {
      SLUICE_UNROLL
      for (int i = 0; i < 2; ++i) {
        const std::uint32_t upper = k[2 * i], lower = k[2 * i + 1];
        const std::uint32_t a[4] = {arch::e4m3_pair_to_fp16<0, 1>(upper), arch::e4m3_pair_to_fp16<0, 1>(lower),
                                    arch::e4m3_pair_to_fp16<2, 3>(upper), arch::e4m3_pair_to_fp16<2, 3>(lower)};
        for (int t = 0; t < kTiles; ++t) arch::mma<kType>(s[t], a, q[i][t][0], q[i][t][1]);
      }
    } else {
      SLUICE_UNROLL
      for (int t = 0; t < kTiles; ++t) arch::mma<kType>(s[t], k, q[0][t][0], q[0][t][1]);
    }
  }

  // Of e4m3, transposing moves pairs of neighbouring columns: the even ones of a packet's 16 are the upper eight rows, the odd ones the
  // lower.
  static SLUICE_DEVICE void multiply_value_packets(const std::uint32_t (&v)[4], const std::uint32_t (&weights)[kTiles][2],
                                                   float (*o)[kTiles][4]) {
    if constexpr (config.fp8) {
      SLUICE_UNROLL
      for (int i = 0; i < 2; ++i) {
        const std::uint32_t first = v[2 * i], second = v[2 * i + 1];
        const std::uint32_t a[4] = {arch::e4m3_pair_to_fp16<0, 2>(first), arch::e4m3_pair_to_fp16<1, 3>(first),
                                    arch::e4m3_pair_to_fp16<0, 2>(second), arch::e4m3_pair_to_fp16<1, 3>(second)};
        for (int t = 0; t < kTiles; ++t) arch::mma<kType>(o[i][t], a, weights[t][0], weights[t][1]);
      }
    } else {
      SLUICE_UNROLL
      for (int t = 0; t < kTiles; ++t) arch::mma<kType>(o[0][t], v, weights[t][0], weights[t][1]);
    }
  }

  int key_row_, value_row_;        // bytes from a block's beginning
  int key_packet_, value_packet_;  // bytes within a row
};

}  // namespace sluice
