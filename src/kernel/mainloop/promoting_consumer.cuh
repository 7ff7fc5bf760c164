// Empties the ring into the accumulators of one warpgroup, for FP8 operands: the tensor cores add up 128 of K, and what they found is
// multiplied by its scales and promoted to fp32 sums by ordinary instructions. (Hopper's tensor cores add FP8 products with some 14 bits:
// DeepSeek-V3, arXiv 2412.19437, section 3.3.2.) This goes by units: 64 rows of P over 128 of K, with all of Q or half of it, whose short
// sums have registers of their own. Where registers allow it there are two sets of them, so that the tensor cores fill one while the other
// is promoted; where they do not, the other warpgroup keeps the tensor cores busy meanwhile.
#pragma once

#include <type_traits>

#include "kernel/gemm_params.cuh"
#include "kernel/mainloop/scaled_pipeline.cuh"
#include "kernel/mainloop/wgmma_consumer.cuh"

namespace sluice {

template <KernelConfig config, int blocks>
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
  SLUICE_DEVICE void multiply(Sums& sums, Position& at, int k_tiles, Issued&& issued) const {
    sums.clear();
    if (k_tiles <= 0)
      issued();
    else if constexpr (kSets == 2)
      two_sets(sums, at, k_tiles, issued);
    else if (by_column())
      one_set<true>(sums, at, k_tiles, issued);
    else
      one_set<false>(sums, at, k_tiles, issued);
  }

 private:
  static constexpr int kMostRegisters = consumer_warpgroups(config) > 2 ? 128 : 200;
  // Of Q's tile a unit has all, or half where the short sums of all would be too many.
  static constexpr int kHalves = (Sums::kBlocks + 1) * Sums::kPerBlock <= kMostRegisters ? 1 : 2;
  static constexpr int kOfUnit = Sums::kPerBlock / kHalves, kColumns = tile_q(config) / kHalves;
  static constexpr int kChunk = kScaleChunk<config>, kChunks = kColumns / kChunk;
  // Which one unit `index` of a stage is.
  struct Unit {
    int rows, half, block;  // of P's rows that are this warpgroup's, of Q, of K
    SLUICE_DEVICE explicit constexpr Unit(int index)
        : rows(index % blocks), half(index / blocks % kHalves), block(index / blocks / kHalves) {}
  };
  // The accumulators of one unit.
  struct Short {
    float values[kOfUnit];
  };
  // Those of a unit's rows r and r + 8 and of Q's chunks.
  struct Scales {
    float p[2];
    float q[kChunks];
  };
  // Where a stage's tiles lie.
  struct Stage {
    std::uint64_t p, q;
  };
  static constexpr int kUnits = scale_blocks_per_stage(config) * kHalves * blocks;  // of a stage
  static constexpr int kOdd = kUnits - 1;                                           // which unit of its stage an odd one is
  static constexpr int kSets = (Sums::kBlocks + 2) * Sums::kPerBlock <= kMostRegisters ? 2 : 1;
  static_assert(kSets == 1 || kUnits <= 2, "which rows and block an odd unit is must be known to the compiler");

  // All that the next unit needs is made ready while the tensor cores are busy with this one, so that nothing but promotion lies between
  // them.
  template <bool columns, class Issued>
  SLUICE_DEVICE void one_set(Sums& sums, Position& at, int k_tiles, Issued&& issued) const {
    Short d;
    Stage stage = wait_for_stage(at);
    Scales next = scales_of(at, 0);
    SLUICE_NO_UNROLL
    for (int left = k_tiles; left > 0; --left) {
      SLUICE_UNROLL
      for (int unit = 0; unit < kUnits; ++unit) {
        issue(d, stage, unit);
        Scales scales = next;
        if (unit + 1 < kUnits) {
          next = scales_of(at, unit + 1);
        } else if (left > 1) {
          Position ahead = at;
          ahead.advance();
          stage = wait_for_stage(ahead);
          next = scales_of(ahead, 0);
        } else {
          issued();
        }
        arch::wgmma_wait<0>();
        promote(sums, d, scales, at, unit, columns);
      }
    }
  }

  template <class Issued>
  SLUICE_DEVICE void two_sets(Sums& sums, Position& at, int k_tiles, Issued&& issued) const {
    Short even, odd;
    Scales even_scales, odd_scales;
    Stage stage;
    Position behind = at;  // the stage of the unit that is promoted next
    const auto issue_next = [&](Short& d, Scales& scales, int unit) {
      if (unit == 0) stage = wait_for_stage(at);
      scales = scales_of(at, unit);
      issue(d, stage, unit);
      if (unit == kUnits - 1) at.advance();
    };
    int left = k_tiles * kUnits - 1;
    issue_next(even, even_scales, 0);
    SLUICE_NO_UNROLL
    for (; left >= 2; left -= 2) {
      issue_next(odd, odd_scales, kOdd);
      arch::wgmma_wait<1>();
      promote(sums, even, even_scales, behind, 0, by_column());
      issue_next(even, even_scales, 0);
      arch::wgmma_wait<1>();
      promote(sums, odd, odd_scales, behind, kOdd, by_column());
    }
    if (left > 0) {
      issue_next(odd, odd_scales, kOdd);
      arch::wgmma_wait<1>();
      promote(sums, even, even_scales, behind, 0, by_column());
      issued();
      arch::wgmma_wait<0>();
      promote(sums, odd, odd_scales, behind, kOdd, by_column());
    } else {
      issued();
      arch::wgmma_wait<0>();
      promote(sums, even, even_scales, behind, 0, by_column());
    }
  }

  SLUICE_DEVICE Stage wait_for_stage(const Position& at) const {
    ring_.wait_full(at);
    return {TileP::descriptor(ring_.stage_p(at) + first_block_ * TileP::kBlockBytes), TileQ::descriptor(ring_.stage_q(at))};
  }

  SLUICE_DEVICE Scales scales_of(const Position& at, int unit) const {
    const auto [rows, half, block] = Unit(unit);
    const arch::SharedAddress p = ring_.scales_p(at, block) + words((first_block_ + rows) * kWgmmaRows + first_row_in_block());
    Scales scales;
    scales.p[0] = load(p);
    scales.p[1] = load(p + words(8));
    SLUICE_UNROLL
    for (int chunk = 0; chunk < kChunks; ++chunk)
      scales.q[chunk] = load(ring_.scales_q(at, block) + words((half * kChunks + chunk) * kChunkCopies + arch::lane() % kChunkCopies));
    return scales;
  }

  // Starts the multiplication of a unit of the stage.
  SLUICE_DEVICE void issue(Short& d, const Stage& stage, int unit) const {
    constexpr int kSteps = kScaleBlockElems / arch::kWgmmaDepthBytes;
    constexpr DataType kTypeP = swapped(config) ? config.type_b : config.type_a, kTypeQ = swapped(config) ? config.type_a : config.type_b;
    const auto [rows, half, block] = Unit(unit);
    arch::wgmma_fence();
    SLUICE_UNROLL
    for (int step = 0; step < kSteps; ++step) {
      const std::uint64_t p =
          arch::advance_descriptor(stage.p, TileP::step_offset_bytes(block * kSteps + step) + rows * TileP::kBlockBytes);
      const std::uint64_t q =
          arch::advance_descriptor(stage.q, TileQ::step_offset_bytes(block * kSteps + step) + half * kColumns * kSwizzleBytes);
      if (step == 0)
        arch::wgmma_8_bit<kTypeP, kTypeQ, false>(d.values, p, q);
      else
        arch::wgmma_8_bit<kTypeP, kTypeQ, true>(d.values, p, q);
    }
    arch::wgmma_commit();
  }

  // Adds a unit's short sums, times their scales. Behind the last unit of a stage lets go of it, and `at` moves on.
  SLUICE_DEVICE void promote(Sums& sums, Short& from, Scales& scales, Position& at, int unit, bool columns) const {
    const auto [rows, half, block] = Unit(unit);
    arch::pin_registers(from.values);  // until now they were the tensor cores'
    arch::pin_registers(scales.p);
    arch::pin_registers(scales.q);
    if (columns && by_column()) {
      multiply_by_column(from, ring_.scales_q(at, block) + words(half * kColumns));
      SLUICE_UNROLL
      for (int chunk = 0; chunk < kChunks; ++chunk) scales.q[chunk] = 1.0f;
    }
    if (unit == kUnits - 1) {
      ring_.release(at);
      at.advance();
    }
    SLUICE_UNROLL
    for (int chunk = 0; chunk < kChunks; ++chunk) {
      const float low = scales.p[0] * scales.q[chunk], high = scales.p[1] * scales.q[chunk];
      SLUICE_UNROLL
      for (int i = 0; i < kChunk / 2; ++i) {
        float& sum = sums.values[rows][half * kOfUnit + chunk * (kChunk / 2) + i];
        sum = arch::fused_multiply_add(from.values[chunk * (kChunk / 2) + i], i % 4 < 2 ? low : high, sum);
      }
    }
  }

  // Whether each of Q's vectors has scales of its own.
  SLUICE_DEVICE bool by_column() const {
    return !is_short(config) && params_.scale_q.strides.along_k && params_.scale_q.strides.block_shift == 0;
  }

  static SLUICE_DEVICE void multiply_by_column(Short& from, arch::SharedAddress scales_q) {
    const arch::SharedAddress mine = scales_q + words(arch::lane() % 4 * 2);
    SLUICE_UNROLL
    for (int j = 0; j < kOfUnit / 4; ++j) {
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
