// Empties the ring into the accumulators of one warpgroup, for FP8 operands: the tensor cores add up 128 of K, and what they found is
// multiplied by its scales and promoted to fp32 sums by ordinary instructions. (Hopper's tensor cores add FP8 products with some 14 bits:
// DeepSeek-V3, arXiv 2412.19437, section 3.3.2.) This goes by units: 64 rows of P over 128 of K, whose short sums have registers of their
// own. Where registers allow it there are two sets of them, so that the tensor cores fill one while the other is promoted; where they do
// not, the other warpgroup keeps the tensor cores busy meanwhile.
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
    const Places places = scale_places(tile);
    Short even;
    if constexpr (kSets == 1) {
      SLUICE_NO_UNROLL
      for (int left = k_tiles; left > 0; --left) {
        SLUICE_UNROLL
        for (int unit = 0; unit < kUnits; ++unit) {
          issue(even, at, unit, places);
          if (unit == kUnits - 1 && left == 1) issued();
          arch::wgmma_wait<0>();
          promote(sums, even, at, unit, places);
        }
      }
    } else {
      Short odd;
      Position behind = at;  // the stage of the unit that is promoted next
      const auto issue_next = [&](Short& d, int unit) {
        issue(d, at, unit, places);
        if (unit == kUnits - 1) at.advance();
      };
      int left = k_tiles * kUnits - 1;
      issue_next(even, 0);
      SLUICE_NO_UNROLL
      for (; left >= 2; left -= 2) {
        issue_next(odd, kOdd);
        arch::wgmma_wait<1>();
        promote(sums, even, behind, 0, places);
        issue_next(even, 0);
        arch::wgmma_wait<1>();
        promote(sums, odd, behind, kOdd, places);
      }
      if (left > 0) {
        issue_next(odd, kOdd);
        arch::wgmma_wait<1>();
        promote(sums, even, behind, 0, places);
        issued();
        arch::wgmma_wait<0>();
        promote(sums, odd, behind, kOdd, places);
      } else {
        issued();
        arch::wgmma_wait<0>();
        promote(sums, even, behind, 0, places);
      }
    }
  }

 private:
  // Where this thread finds its scales in a block's, in bytes.
  struct Places {
    std::uint32_t p;           // that of its first row among P's
    std::uint32_t eight_rows;  // from there to the one eight rows further down
    std::uint32_t row_block;   // and to the next 64 rows'
    int q_differs;             // whether those of Q differ from column to column
  };
  // The accumulators of one unit, and the factors of rows r and r + 8: of Q's scale too, unless they differ.
  struct Short {
    float values[Sums::kPerBlock];
    float factors[2];
  };
  static constexpr int kUnits =
      scale_blocks_per_stage(config) * Sums::kBlocks;  // of a stage: unit u is rows u % kBlocks, block of K u / kBlocks
  static constexpr int kOdd = kUnits - 1;              // which unit of its stage an odd one is
  static constexpr int kMostRegisters = 200;
  static constexpr int kSets = (Sums::kBlocks + 2) * Sums::kPerBlock <= kMostRegisters ? 2 : 1;
  static_assert(kUnits <= 2, "which rows and block an odd unit is must be known to the compiler");

  // Worked out once a tile: arch::uniform() keeps the compiler from doing it over for each unit.
  SLUICE_DEVICE Places scale_places(const WorkTile& tile) const {
    const int p_differs = arch::uniform(scales_differ<config, Operand::p>(params_.scale_p, tile) ? 1 : 0);
    const int q_differs = arch::uniform(scales_differ<config, Operand::q>(params_.scale_q, tile) ? 1 : 0);
    return {.p = words(p_differs * (first_block_ * kWgmmaRows + arch::thread_in_warpgroup() / 32 * 16 + arch::lane() / 4)),
            .eight_rows = words(p_differs * 8),
            .row_block = words(p_differs * kWgmmaRows),
            .q_differs = q_differs};
  }

  static SLUICE_DEVICE void clear(Sums& sums) {
    SLUICE_UNROLL
    for (int block = 0; block < Sums::kBlocks; ++block) {
      SLUICE_UNROLL
      for (int i = 0; i < Sums::kPerBlock; ++i) sums.values[block][i] = 0.0f;
    }
  }

  // Starts the multiplication of a unit of the stage, and fetches its scales.
  SLUICE_DEVICE void issue(Short& d, const Position& at, int unit, const Places& places) const {
    constexpr int kSteps = kScaleBlockElems / arch::kWgmmaDepthBytes;
    constexpr DataType kTypeP = swapped(config) ? config.type_b : config.type_a, kTypeQ = swapped(config) ? config.type_a : config.type_b;
    const int rows = unit % Sums::kBlocks, block = unit / Sums::kBlocks;
    if (unit == 0) ring_.wait_full(at);
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
    const float q_factor = params_.scale_q.along_k && places.q_differs == 0 ? load(ring_.scales_q(at, block)) : 1.0f;
    d.factors[0] = d.factors[1] = q_factor;
    if (params_.scale_p.along_k) {
      const arch::SharedAddress mine = ring_.scales_p(at, block) + places.p + (rows > 0 ? places.row_block : 0);
      d.factors[0] *= load(mine);
      d.factors[1] *= load(mine + places.eight_rows);
    }
  }

  // Adds a unit's short sums, times their scales. Behind the last unit of a stage lets go of it, and `at` moves on.
  SLUICE_DEVICE void promote(Sums& sums, Short& from, Position& at, int unit, const Places& places) const {
    const int rows = unit % Sums::kBlocks, block = unit / Sums::kBlocks;
    arch::pin_registers(from.values);  // until now they were the tensor cores'
    if (places.q_differs != 0) multiply_by_column(from, ring_.scales_q(at, block));
    if (unit == kUnits - 1) {
      ring_.release(at);
      at.advance();
    }
    SLUICE_UNROLL
    for (int i = 0; i < Sums::kPerBlock; ++i)
      sums.values[rows][i] = arch::fused_multiply_add(from.values[i], from.factors[i % 4 / 2], sums.values[rows][i]);
  }

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
