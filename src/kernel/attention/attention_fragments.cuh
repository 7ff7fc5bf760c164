// The two products of attention by mma.sync: which lane fetches what from a stage, for 16-bit keys and values and for those of e4m3.
#pragma once

#include "arch/warp_mma.cuh"
#include "core/attention_config.hpp"

namespace sluice {

template <AttentionConfig config>
class AttentionFragments {
 public:
  static constexpr int kSteps = config.head_size / 16;  // of 16 elements of a head
  static constexpr bool kHoldsQueries = config.head_size <= 128 && config.row_tiles == 1;
  static constexpr int kHeldSteps = kHoldsQueries ? kSteps : 1;
  static constexpr int kBlocks = kStageTokens / token_slices(config) / kBlockTokens;
  // e4m3 becomes fp16, which holds all of its numbers.
  static constexpr DataType kType = config.fp8 ? DataType::fp16 : config.type;

  SLUICE_DEVICE AttentionFragments() {
    const int lane = arch::lane(), matrix = lane / 8, in_matrix = lane % 8;
    // Matrices of keys: tokens 0..7 in two packets of 16 bytes, then tokens 8..15. Of values: two groups of tokens in one packet, then in
    // the next.
    key_row_ = (matrix / 2 * 8 + in_matrix) * kRowBytes;
    key_packet_ = turned(matrix % 2, in_matrix);
    value_row_ = (matrix % 2 * 8 + in_matrix) * kRowBytes;
    value_packet_ = turned(matrix / 2, in_matrix);
  }

  SLUICE_DEVICE void load_queries(arch::SharedAddress rows, std::uint32_t (&q)[kHeldSteps][4]) const {
    SLUICE_UNROLL
    for (int step = 0; step < kHeldSteps; ++step) load_query(rows, step, q[step]);
  }

  // s = Q K^T for `blocks` times 16 tokens; what is behind them stays 0.
  SLUICE_DEVICE void multiply_keys(arch::SharedAddress keys, int blocks, const std::uint32_t (&held)[kHeldSteps][4],
                                   arch::SharedAddress q_rows, float (&s)[2 * kBlocks][4]) const {
    float odd[2 * kBlocks][4];  // sums of odd loads: the tensor cores' answers are long in coming, and one block has few sums
    SLUICE_UNROLL
    for (int n = 0; n < 2 * kBlocks; ++n)
      for (int i = 0; i < 4; ++i) s[n][i] = odd[n][i] = 0;
    constexpr int kLoads = kSteps / kStepsPerLoad;
    constexpr int kAtOnce = kLoads < kLoadsAtOnce ? kLoads : kLoadsAtOnce;
    SLUICE_UNROLL
    for (int first = 0; first < kLoads; first += kAtOnce) {
      std::uint32_t q[kAtOnce][kStepsPerLoad][4];
      SLUICE_UNROLL
      for (int l = 0; l < kAtOnce; ++l)
        for (int i = 0; i < kStepsPerLoad; ++i) take_query(held, q_rows, (first + l) * kStepsPerLoad + i, q[l][i]);
      SLUICE_UNROLL
      for (int block = 0; block < kBlocks; ++block) {
        if (kBlocks > 1 && block >= blocks) break;
        std::uint32_t k[kAtOnce][4];
        SLUICE_UNROLL
        for (int l = 0; l < kAtOnce; ++l)
          arch::load_matrices<false>(packet(keys + block * kBlockBytes + key_row_, key_packet_, 2 * (first + l)), k[l]);
        SLUICE_UNROLL
        for (int l = 0; l < kAtOnce; ++l) {
          float(&sums)[2 * kBlocks][4] = kBlocks == 1 && l % 2 == 1 ? odd : s;
          multiply_key_packets(q[l], k[l], sums[2 * block], sums[2 * block + 1]);
        }
      }
    }
    if constexpr (kBlocks == 1)
      for (int n = 0; n < 2; ++n)
        for (int i = 0; i < 4; ++i) s[n][i] += odd[n][i];
  }

  // o += s V.
  SLUICE_DEVICE void multiply_values(arch::SharedAddress values, int blocks, const float (&s)[2 * kBlocks][4],
                                     float (&o)[config.head_size / 8][4]) const {
    constexpr int kPairs = kRowPackets / 2, kAtOnce = kPairs < kLoadsAtOnce ? kPairs : kLoadsAtOnce;
    SLUICE_UNROLL
    for (int block = 0; block < kBlocks; ++block) {
      if (kBlocks > 1 && block >= blocks) break;
      const float(&low)[4] = s[2 * block], (&high)[4] = s[2 * block + 1];
      const std::uint32_t weights[4] = {pack(low[0], low[1]), pack(low[2], low[3]), pack(high[0], high[1]), pack(high[2], high[3])};
      SLUICE_UNROLL
      for (int first = 0; first < kPairs; first += kAtOnce) {
        std::uint32_t v[kAtOnce][4];
        SLUICE_UNROLL
        for (int l = 0; l < kAtOnce; ++l)
          arch::load_matrices<true>(packet(values + block * kBlockBytes + value_row_, value_packet_, 2 * (first + l)), v[l]);
        SLUICE_UNROLL
        for (int l = 0; l < kAtOnce; ++l) multiply_value_packets(weights, v[l], first + l, o);
      }
    }
  }

  // Where this lane's sums belong, four in a row for each of kQuads: columns of the head that follow one another in pairs, or all four.
  static constexpr bool kFourInARow = config.fp8;

 private:
  static constexpr int kRowBytes = box_row_bytes(config), kRowPackets = kv_row_bytes(config) / 16, kBoxPackets = kRowBytes / 16;
  static constexpr int kBlockBytes = kBlockTokens * kRowBytes;
  static constexpr int kStepsPerLoad = config.fp8 ? 2 : 1;  // a load brings two packets of each token

  // The swizzle: packets of a row are turned by the number of its 128 bytes in the atom of eight such.
  static SLUICE_DEVICE int turned(int packet, int row) { return (packet ^ (row * kRowBytes / 128 % kBoxPackets)) << 4; }

  // `number` is even, and its box and place are known to the compiler.
  static SLUICE_DEVICE arch::SharedAddress packet(arch::SharedAddress row, int turned, int number) {
    return row + number / kBoxPackets * (kStageTokens * kRowBytes) + (turned ^ (number % kBoxPackets) << 4);
  }

  static SLUICE_DEVICE std::uint32_t pack(float low, float high) {
    return kType == DataType::bf16 ? arch::pack_bf16(low, high) : arch::pack_fp16(low, high);
  }

  static constexpr int kLoadsAtOnce = 4;

  SLUICE_DEVICE void take_query(const std::uint32_t (&held)[kHeldSteps][4], arch::SharedAddress rows, int step,
                                std::uint32_t (&q)[4]) const {
    if constexpr (kHoldsQueries) {
      for (int r = 0; r < 4; ++r) q[r] = held[step][r];
    } else {
      load_query(rows, step, q);
    }
  }

  // Of e4m3, a lane has four neighbouring elements of a token in a packet, and so it takes four neighbouring ones of the queries: products
  // are summed in another order than they stand.
  SLUICE_DEVICE void load_query(arch::SharedAddress rows, int step, std::uint32_t (&q)[4]) const {
    const int lane = arch::lane();
    if constexpr (config.fp8) {
      const arch::SharedAddress at = rows + lane / 4 * q_pitch_bytes(config) + step * 32 + lane % 4 * 8;
      std::uint32_t upper[2], lower[2];
      arch::load_shared(at, upper);
      arch::load_shared(at + 8 * q_pitch_bytes(config), lower);
      q[0] = as_fp16(upper[0]);
      q[1] = as_fp16(lower[0]);
      q[2] = as_fp16(upper[1]);
      q[3] = as_fp16(lower[1]);
    } else {
      arch::load_matrices<false>(rows + lane % 16 * q_pitch_bytes(config) + step * 32 + lane / 16 * 16, q);
    }
  }

  static SLUICE_DEVICE std::uint32_t as_fp16(std::uint32_t pair) {
    if constexpr (config.type == DataType::fp16)
      return pair;
    else
      return arch::pack_fp16(arch::bf16_to_float(static_cast<std::uint16_t>(pair)), arch::bf16_to_float(static_cast<std::uint16_t>(pair >> 16)));
  }

  static SLUICE_DEVICE void multiply_key_packets(const std::uint32_t (&q)[kStepsPerLoad][4], const std::uint32_t (&k)[4], float (&low)[4],
                                                 float (&high)[4]) {
    if constexpr (config.fp8) {
      SLUICE_UNROLL
      for (int i = 0; i < 2; ++i) {
        arch::mma<kType>(low, q[i], arch::e4m3_pair_to_fp16<0, 1>(k[i]), arch::e4m3_pair_to_fp16<2, 3>(k[i]));
        arch::mma<kType>(high, q[i], arch::e4m3_pair_to_fp16<0, 1>(k[2 + i]), arch::e4m3_pair_to_fp16<2, 3>(k[2 + i]));
      }
    } else {
      arch::mma<kType>(low, q[0], k[0], k[1]);
      arch::mma<kType>(high, q[0], k[2], k[3]);
    }
  }

  // Of e4m3, transposing moves pairs of neighbouring columns: the even ones of a packet's 16 make one product, the odd ones another.
  static SLUICE_DEVICE void multiply_value_packets(const std::uint32_t (&weights)[4], const std::uint32_t (&v)[4], int pair,
                                                   float (&o)[config.head_size / 8][4]) {
    if constexpr (config.fp8) {
      SLUICE_UNROLL
      for (int i = 0; i < 2; ++i) {
        arch::mma<kType>(o[4 * pair + 2 * i], weights, arch::e4m3_pair_to_fp16<0, 2>(v[2 * i]), arch::e4m3_pair_to_fp16<0, 2>(v[2 * i + 1]));
        arch::mma<kType>(o[4 * pair + 2 * i + 1], weights, arch::e4m3_pair_to_fp16<1, 3>(v[2 * i]),
                         arch::e4m3_pair_to_fp16<1, 3>(v[2 * i + 1]));
      }
    } else {
      arch::mma<kType>(o[2 * pair], weights, v[0], v[1]);
      arch::mma<kType>(o[2 * pair + 1], weights, v[2], v[3]);
    }
  }

  int key_row_, value_row_;        // bytes from a block's beginning
  int key_packet_, value_packet_;  // bytes within a row
};

}  // namespace sluice
