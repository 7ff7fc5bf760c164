// Empties the ring into the accumulators of one warpgroup, for FP8 operands: the tensor cores add up 128 of K, and what they found is
// multiplied by its scales and promoted to fp32 sums by ordinary instructions. (Hopper's tensor cores add FP8 products with some 14 bits:
// DeepSeek-V3, arXiv 2412.19437, section 3.3.2.) Where registers allow it there are two sets of such short sums, so that the tensor cores
// fill one while the other is promoted; where they do not, the other warpgroup keeps the tensor cores busy meanwhile.
#pragma once

#include <type_traits>

#include "kernel/gemm_params.cuh"
#include "kernel/mainloop/wgmma_consumer.cuh"

namespace sluice {

template <KernelConfig config>
class PromotingConsumer {
 public:
  using Ring = Pipeline<config>;
  using Position = typename Ring::Position;
  using TileP = OperandTile<config, Operand::p>;
  using TileQ = OperandTile<config, Operand::q>;
  using Sums = Accumulators<config>;

  SLUICE_DEVICE PromotingConsumer(const MainloopParams& params, const Ring& ring, int first_block)
      : params_(params), ring_(ring), first_block_(first_block) {}

  // As WgmmaConsumer::multiply().
  template <class Issued>
  SLUICE_DEVICE void multiply(Sums& sums, Position& at, const WorkTile& tile, Issued&& issued) const {
    clear(sums);
    const int k_tiles = tile.k_end - tile.k_begin;
    if (k_tiles <= 0) {
      issued();
      return;
    }
    const bool q_differs = q_scales_differ(tile);
    Position behind = at;  // the stage of the block that is promoted next
    int left = k_tiles * kBlocks;
    Sums even;  // short sums of blocks 0, 2, ...
    issue(even, at, 0);
    if constexpr (kSets == 1) {
      SLUICE_NO_UNROLL
      for (int block = 0; --left > 0; block = (block + 1) % kBlocks) {
        arch::wgmma_wait<0>();
        promote(sums, even, behind, block, q_differs);
        issue(even, at, (block + 1) % kBlocks);
      }
      issued();
      arch::wgmma_wait<0>();
      promote(sums, even, behind, kBlocks - 1, q_differs);
    } else {
      Sums odd;
      SLUICE_NO_UNROLL
      for (--left; left >= 2; left -= 2) {
        issue(odd, at, kOdd);
        arch::wgmma_wait<1>();
        promote(sums, even, behind, 0, q_differs);
        issue(even, at, 0);
        arch::wgmma_wait<1>();
        promote(sums, odd, behind, kOdd, q_differs);
      }
      if (left > 0) {
        issue(odd, at, kOdd);
        arch::wgmma_wait<1>();
        promote(sums, even, behind, 0, q_differs);
        issued();
        arch::wgmma_wait<0>();
        promote(sums, odd, behind, kOdd, q_differs);
      } else {
        issued();
        arch::wgmma_wait<0>();
        promote(sums, even, behind, 0, q_differs);
      }
    }
  }

 private:
  static constexpr int kBlocks = scale_blocks_per_stage(config);
  static constexpr int kOdd = kBlocks - 1;  // which block of its stage an odd one is
  static constexpr int kPerThread = accumulators_per_thread(config);
  static constexpr int kMostRegisters = 200;
  static constexpr int kSets = 3 * kPerThread <= kMostRegisters ? 2 : 1;
  static_assert(kBlocks <= 2);

  static SLUICE_DEVICE void clear(Sums& sums) {
    SLUICE_UNROLL
    for (int block = 0; block < Sums::kBlocks; ++block) {
      SLUICE_UNROLL
      for (int i = 0; i < Sums::kPerBlock; ++i) sums.values[block][i] = 0.0f;
    }
  }

  // Starts the multiplication of one block of K of the stage.
  SLUICE_DEVICE void issue(Sums& shorts, Position& at, int block) const {
    constexpr int kSteps = kScaleBlockElems / arch::kWgmmaDepthBytes;
    constexpr DataType kTypeP = swapped(config) ? config.type_b : config.type_a, kTypeQ = swapped(config) ? config.type_a : config.type_b;
    if (block == 0) ring_.wait_full(at);
    arch::wgmma_fence();
    const std::uint64_t p = TileP::descriptor(ring_.stage_p(at) + first_block_ * TileP::kBlockStepBytes);
    const std::uint64_t q = TileQ::descriptor(ring_.stage_q(at));
    SLUICE_UNROLL
    for (int step = 0; step < kSteps; ++step) {
      SLUICE_UNROLL
      for (int rows = 0; rows < Sums::kBlocks; ++rows) {
        const std::uint64_t p_step =
            arch::advance_descriptor(p, TileP::step_offset_bytes(block * kSteps + step) + rows * TileP::kBlockStepBytes);
        const std::uint64_t q_step = arch::advance_descriptor(q, TileQ::step_offset_bytes(block * kSteps + step));
        if (step == 0)
          arch::wgmma_8_bit<kTypeP, kTypeQ, false>(shorts.values[rows], p_step, q_step);
        else
          arch::wgmma_8_bit<kTypeP, kTypeQ, true>(shorts.values[rows], p_step, q_step);
      }
    }
    arch::wgmma_commit();
    if (block == kBlocks - 1) at.advance();
  }

  // Whether Q's vectors have scales of more than one value over a block of K.
  SLUICE_DEVICE bool q_scales_differ(const WorkTile& tile) const {
    const ScaleParams& scales = params_.scale_q;
    const int first = TileQ::first_vector(tile);
    return scales.along_k && first >> scales.block_shift != (first + tile_q(config) - 1) >> scales.block_shift;
  }

  // Adds short sums, whose stage is `at`, times their scales. Lets go of the stage after its last block.
  SLUICE_DEVICE void promote(Sums& sums, Sums& shorts, Position& at, int block, bool q_differs) const {
    SLUICE_UNROLL
    for (int rows = 0; rows < Sums::kBlocks; ++rows) arch::wgmma_results(shorts.values[rows]);
    const arch::SharedAddress scales_p = ring_.scales_p(at, block) + static_cast<std::uint32_t>(row_in_block()) * sizeof(float);
    const arch::SharedAddress scales_q = ring_.scales_q(at, block);
    float p[Sums::kBlocks][2];  // of rows r and r + 8
    SLUICE_UNROLL
    for (int rows = 0; rows < Sums::kBlocks; ++rows) {
      SLUICE_UNROLL
      for (int half = 0; half < 2; ++half)
        p[rows][half] = params_.scale_p.along_k
                            ? load(scales_p + static_cast<std::uint32_t>((first_block_ + rows) * kWgmmaRows + half * 8) * sizeof(float))
                            : 1.0f;
    }
    if (q_differs) {
      promote_by_column(sums, shorts, p, scales_q);
      if (block == kBlocks - 1) let_go(at);
      return;
    }
    const float q = params_.scale_q.along_k ? load(scales_q) : 1.0f;
    if (block == kBlocks - 1) let_go(at);
    SLUICE_UNROLL
    for (int rows = 0; rows < Sums::kBlocks; ++rows) {
      const float low = p[rows][0] * q, high = p[rows][1] * q;
      SLUICE_UNROLL
      for (int i = 0; i < Sums::kPerBlock; ++i) sums.values[rows][i] += (i % 4 < 2 ? low : high) * shorts.values[rows][i];
    }
  }

  static SLUICE_DEVICE void promote_by_column(Sums& sums, const Sums& shorts, const float (&p)[Sums::kBlocks][2],
                                              arch::SharedAddress scales_q) {
    const arch::SharedAddress mine = scales_q + static_cast<std::uint32_t>(arch::lane() % 4 * 2) * sizeof(float);
    SLUICE_UNROLL
    for (int j = 0; j < Sums::kPerBlock / 4; ++j) {
      float q[2];
      arch::load_shared(mine + static_cast<std::uint32_t>(j) * 8 * sizeof(float), q);
      SLUICE_UNROLL
      for (int rows = 0; rows < Sums::kBlocks; ++rows) {
        SLUICE_UNROLL
        for (int i = 0; i < 4; ++i) sums.values[rows][4 * j + i] += p[rows][i / 2] * (q[i % 2] * shorts.values[rows][4 * j + i]);
      }
    }
  }

  SLUICE_DEVICE void let_go(Position& at) const {
    ring_.release(at);
    at.advance();
  }

  static SLUICE_DEVICE float load(arch::SharedAddress address) {
    float value[1];
    arch::load_shared(address, value);
    return value[0];
  }
  // Of this thread's first row among the 64 of a block.
  static SLUICE_DEVICE int row_in_block() { return arch::thread_in_warpgroup() / 32 * 16 + arch::lane() / 4; }

  const MainloopParams& params_;
  const Ring& ring_;
  int first_block_;
};

}  // namespace sluice
