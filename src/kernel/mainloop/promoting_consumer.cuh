// Empties the ring into the accumulators of one warpgroup, for FP8 operands: the tensor cores add up 128 of K, and what they found is
// multiplied by its scales and promoted to fp32 sums by ordinary instructions. (Hopper's tensor cores add FP8 products with some 14 bits:
// DeepSeek-V3, arXiv 2412.19437, section 3.3.2.) This goes by units: 64 rows of P over 128 of K, whose short sums have registers of their
// own. Where registers allow it there are two sets of them, so that the tensor cores fill one while the other is promoted; where they do
// not, the other warpgroup keeps the tensor cores busy meanwhile.
#pragma once

#include <type_traits>

#include "kernel/gemm_params.cuh"
#include "kernel/mainloop/scaled_pipeline.cuh"
#include "kernel/mainloop/wgmma_consumer.cuh"

namespace sluice {

template <KernelConfig config>
class PromotingConsumer {
 public:
  using Ring = ScaledPipeline<config>;
  using Position = typename Ring::Position;
  using TileP = OperandTile<config, Operand::p>;
  using TileQ = OperandTile<config, Operand::q>;
  using Sums = Accumulators<config>;

  SLUICE_DEVICE PromotingConsumer(const MainloopParams& params, const Ring& ring, int first_block)
      : params_(params), ring_(ring), first_block_(first_block) {}

  // As WgmmaConsumer::multiply().
  template <class Issued>
  SLUICE_DEVICE void multiply(Sums& sums, Position& at, const WorkTile& tile, Issued&& issued) const {
    sums.clear();
    const int k_tiles = tile.k_end - tile.k_begin;
    if (k_tiles <= 0) {
      issued();
      return;
    }
    Short even;
    if constexpr (kSets == 1) {
      SLUICE_NO_UNROLL
      for (int left = k_tiles; left > 0; --left) {
        SLUICE_UNROLL
        for (int unit = 0; unit < kUnits; ++unit) {
          issue(even, at, unit);
          if (unit == kUnits - 1 && left == 1) issued();
          arch::wgmma_wait<0>();
          promote(sums, even, at, unit);
        }
      }
    } else {
      Short odd;
      Position behind = at;  // the stage of the unit that is promoted next
      const auto issue_next = [&](Short& d, int unit) {
        issue(d, at, unit);
        if (unit == kUnits - 1) at.advance();
      };
      int left = k_tiles * kUnits - 1;
      issue_next(even, 0);
      SLUICE_NO_UNROLL
      for (; left >= 2; left -= 2) {
        issue_next(odd, kOdd);
        arch::wgmma_wait<1>();
        promote(sums, even, behind, 0);
        issue_next(even, 0);
        arch::wgmma_wait<1>();
        promote(sums, odd, behind, kOdd);
      }
      if (left > 0) {
        issue_next(odd, kOdd);
        arch::wgmma_wait<1>();
        promote(sums, even, behind, 0);
        issued();
        arch::wgmma_wait<0>();
        promote(sums, odd, behind, kOdd);
      } else {
        issued();
        arch::wgmma_wait<0>();
        promote(sums, even, behind, 0);
      }
    }
  }

 private:
  static constexpr int kChunk = kScaleChunk<config>, kChunks = tile_q(config) / kChunk;
  // The accumulators of one unit, and the scales of rows r and r + 8 and of Q's chunks.
  struct Short {
    float values[Sums::kPerBlock];
    float scales_p[2];
    float scales_q[kChunks];
  };
  static constexpr int kUnits =
      scale_blocks_per_stage(config) * Sums::kBlocks;  // of a stage: unit u is rows u % kBlocks, block of K u / kBlocks
  static constexpr int kOdd = kUnits - 1;              // which unit of its stage an odd one is
  static constexpr int kMostRegisters = consumer_warpgroups(config) > 2 ? 128 : 200;
  static constexpr int kSets = (Sums::kBlocks + 2) * Sums::kPerBlock <= kMostRegisters ? 2 : 1;
  static_assert(kUnits <= 2, "which rows and block an odd unit is must be known to the compiler");

  // Starts the multiplication of a unit of the stage, and fetches its scales.
  SLUICE_DEVICE void issue(Short& d, const Position& at, int unit) const {
    constexpr int kSteps = kScaleBlockElems / arch::kWgmmaDepthBytes;
    constexpr DataType kTypeP = swapped(config) ? config.type_b : config.type_a, kTypeQ = swapped(config) ? config.type_a : config.type_b;
    const int rows = unit % Sums::kBlocks, block = unit / Sums::kBlocks;
    if (unit == 0) ring_.wait_full(at);
    const arch::SharedAddress scales = ring_.scales_p(at, block) + words((first_block_ + rows) * kWgmmaRows + first_row_in_block());
    d.scales_p[0] = load(scales);
    d.scales_p[1] = load(scales + words(8));
    SLUICE_UNROLL
    for (int chunk = 0; chunk < kChunks; ++chunk) d.scales_q[chunk] = load(ring_.scales_q(at, block) + words(chunk));
    arch::wgmma_fence();
    const std::uint64_t p = TileP::descriptor(ring_.stage_p(at) + first_block_ * TileP::kBlockStepBytes);
    const std::uint64_t q = TileQ::descriptor(ring_.stage_q(at));
    SLUICE_UNROLL
    for (int step = 0; step < kSteps; ++step) {
      const std::uint64_t p_step =
          arch::advance_descriptor(p, TileP::step_offset_bytes(block * kSteps + step) + rows * TileP::kBlockStepBytes);
      const std::uint64_t q_step = arch::advance_descriptor(q, TileQ::step_offset_bytes(block * kSteps + step));
      if (step == 0)
        arch::wgmma_8_bit<kTypeP, kTypeQ, false>(d.values, p_step, q_step);
      else
        arch::wgmma_8_bit<kTypeP, kTypeQ, true>(d.values, p_step, q_step);
    }
    arch::wgmma_commit();
  }

  // Adds a unit's short sums, times their scales. Behind the last unit of a stage lets go of it, and `at` moves on.
  SLUICE_DEVICE void promote(Sums& sums, Short& from, Position& at, int unit) const {
    const int rows = unit % Sums::kBlocks, block = unit / Sums::kBlocks;
    arch::pin_registers(from.values);  // until now they were the tensor cores'
    arch::pin_registers(from.scales_p);
    arch::pin_registers(from.scales_q);
    if (by_column()) {
      multiply_by_column(from, ring_.scales_q(at, block));
      SLUICE_UNROLL
      for (int chunk = 0; chunk < kChunks; ++chunk) from.scales_q[chunk] = 1.0f;
    }
    if (unit == kUnits - 1) {
      ring_.release(at);
      at.advance();
    }
    SLUICE_UNROLL
    for (int chunk = 0; chunk < kChunks; ++chunk) {
      const float low = from.scales_p[0] * from.scales_q[chunk], high = from.scales_p[1] * from.scales_q[chunk];
      SLUICE_UNROLL
      for (int i = 0; i < kChunk / 2; ++i) {
        float& sum = sums.values[rows][chunk * (kChunk / 2) + i];
        sum = arch::fused_multiply_add(from.values[chunk * (kChunk / 2) + i], i % 4 < 2 ? low : high, sum);
      }
    }
  }

  // Whether each of Q's vectors has scales of its own.
  SLUICE_DEVICE bool by_column() const { return params_.scale_q.strides.along_k && params_.scale_q.strides.block_shift == 0; }

  static SLUICE_DEVICE void multiply_by_column(Short& from, arch::SharedAddress scales_q) {
    const arch::SharedAddress mine = scales_q + words(arch::lane() % 4 * 2);
    SLUICE_UNROLL
    for (int j = 0; j < Sums::kPerBlock / 4; ++j) {
      float q[2];
      arch::load_shared(mine + words(8 * j), q);
      SLUICE_UNROLL
      for (int i = 0; i < 4; ++i) from.values[4 * j + i] *= q[i % 2];
    }
  }

  static SLUICE_DEVICE constexpr std::uint32_t words(int count) { return static_cast<std::uint32_t>(count) * sizeof(float); }
  static SLUICE_DEVICE float load(arch::SharedAddress address) {
    float value[1];
    arch::load_shared(address, value);
    return value[0];
  }

  const MainloopParams& params_;
  const Ring& ring_;
  int first_block_;
};

}  // namespace sluice
