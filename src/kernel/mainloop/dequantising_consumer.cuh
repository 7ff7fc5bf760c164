// Empties the ring into the accumulators of one warpgroup, where P is weights of 4 bits: they become numbers of 16 bits in the registers
// from which wgmma takes P. This goes by units, 64 columns by 64 of K: while the tensor cores multiply one, the next is dequantised into
// the other set of registers. docs/w4.md counts the instructions.
//
// Instructions are what few rows of A wait for. There, where groups are whole slabs, the codes less their zero points are multiplied as
// they are, each slab into short sums of its own, which are promoted times the slab's scales as those of FP8 are: for 8 rows 4 instructions
// a thread for each slab, where scaling its weights takes 32. With many rows it is the other way round.
#pragma once

#include "core/w4_layout.hpp"
#include "kernel/gemm_params.cuh"
#include "kernel/mainloop/operand_tile.cuh"
#include "kernel/mainloop/wgmma_consumer.cuh"
#include "kernel/pipeline.cuh"

namespace sluice {

template <KernelConfig config, int blocks>
class DequantisingConsumer {
 public:
  using Ring = Pipeline<config>;
  using Position = typename Ring::Position;
  using TileQ = OperandTile<config, Operand::q>;
  using Sums = Accumulators<config>;

  SLUICE_DEVICE DequantisingConsumer(const MainloopParams& params, const Ring& ring, int first_block)
      : params_(params.w4), ring_(ring), first_block_(first_block), pair_(arch::thread_in_warpgroup() / 32 * 8 + arch::lane() / 4) {}

  // As WgmmaConsumer::multiply().
  template <class Issued>
  SLUICE_DEVICE void multiply(Sums& sums, Position& at, int k_tiles, Issued&& issued) const {
    sums.clear();
    if (k_tiles <= 0) return issued();
    if constexpr (kMayPromote)
      if (params_.group_shift == kWholeSlabs) return promote_slabs(sums, at, k_tiles, issued);
    scale_weights(sums, at, k_tiles, issued);
  }

 private:
  static constexpr int kDepth = arch::kWgmmaDepthBytes / 2;                       // elements of K in a wgmma
  static constexpr int kSteps = kW4ChunkElems / kDepth, kHalfSteps = kSteps / 2;  // of a unit; a half has 32 of K, and one group
  static constexpr int kChunks = config.tile_k / kW4ChunkElems, kSlabs = config.tile_k / kW4SlabElems, kChunksPerSlab = kChunks / kSlabs;
  static constexpr int kUnits = blocks * kChunks;  // of a stage: unit u is rows u % blocks, chunk u / blocks
  static constexpr int kWholeSlabs = 2;            // group_shift where a slab has one group
  static constexpr int kMostRowsToPromote = 64;
  static constexpr bool kMayPromote = blocks == 1 && tile_q(config) <= kMostRowsToPromote;
  static_assert(kUnits % 2 == 0, "which set of registers a unit has must be known to the compiler");

  struct Fragment {
    std::uint32_t words[4];
  };
  using Fragments = Fragment[kSteps];
  struct Codes {
    std::uint32_t words[kSteps];
  };
  // Of a thread's rows r and r + 8, as they lie in shared memory.
  struct Group {
    std::uint32_t scales;
    std::uint32_t zeros;
  };

  // The next slab's first unit is dequantised before this one's sums are waited for: the tensor cores rest no longer than promotion takes.
  template <class Issued>
  SLUICE_DEVICE void promote_slabs(Sums& sums, Position& at, int k_tiles, Issued&& issued) const {
    float shorts[Sums::kPerBlock];
    for (float& sum : shorts) sum = 0;  // promoted once before there is anything in them
    Group before{.scales = 0, .zeros = 0};
    Fragments first, second;
    ring_.wait_full(at);
    Codes next = codes_of(at, 0);
    Position previous = at;
    SLUICE_NO_UNROLL
    for (int left = k_tiles; left > 0; --left) {
      const std::uint64_t q = TileQ::descriptor(ring_.stage_q(at));
      Position ahead = at;
      ahead.advance();
      SLUICE_UNROLL
      for (int slab = 0; slab < kSlabs; ++slab) {
        const int unit = slab * kChunksPerSlab;
        const Group group = group_of(at, unit, 0);
        dequantise(next, group, group, first);
        next = codes_of(at, unit + 1);
        arch::wgmma_wait<0>();
        promote(sums, shorts, before);
        multiply_unit<false>(shorts, first, q, unit);
        if (slab == 0 && left < k_tiles) ring_.release(previous);
        dequantise(next, group, group, second);
        multiply_unit<true>(shorts, second, q, unit + 1);
        if (slab + 1 < kSlabs) {
          next = codes_of(at, unit + kChunksPerSlab);
        } else if (left > 1) {
          ring_.wait_full(ahead);
          next = codes_of(ahead, 0);
        }
        arch::wgmma_wait<1>();  // the first unit has left its registers
        before = group;
      }
      previous = at;
      at = ahead;
    }
    issued();
    arch::wgmma_wait<0>();
    promote(sums, shorts, before);
    ring_.release(previous);
  }

  template <class Issued>
  SLUICE_DEVICE void scale_weights(Sums& sums, Position& at, int k_tiles, Issued&& issued) const {
    Fragments fragments[2];
    Codes next;
    Group groups[2];  // of its halves
    const auto fetch = [&](const Position& from, int unit) {
      next = codes_of(from, unit);
      groups[0] = group_of(from, unit, 0);
      groups[1] = group_of(from, unit, 1);
    };
    ring_.wait_full(at);
    fetch(at, 0);
    Position previous = at;
    SLUICE_NO_UNROLL
    for (int left = k_tiles; left > 0; --left) {
      const std::uint64_t q = TileQ::descriptor(ring_.stage_q(at));
      Position ahead = at;
      ahead.advance();
      SLUICE_UNROLL
      for (int unit = 0; unit < kUnits; ++unit) {
        Fragments& numbers = fragments[unit % 2];
        dequantise(next, groups[0], groups[1], numbers);
        SLUICE_UNROLL
        for (int step = 0; step < kSteps; ++step) {
          const std::uint32_t scales = groups[step / kHalfSteps].scales;
          arch::scale_pairs<config.type_a>(numbers[step].words, {arch::in_both_halves(scales), arch::in_both_halves(scales >> 16)});
        }
        multiply_unit<true>(sums.values[unit % blocks], numbers, q, unit / blocks);
        // The next unit is fetched while the tensor cores are busy with this one.
        if (unit + 1 < kUnits) {
          fetch(at, unit + 1);
        } else if (left > 1) {
          ring_.wait_full(ahead);
          fetch(ahead, 0);
        }
        arch::wgmma_wait<1>();  // the unit before this one has left its registers
        if (unit == 0 && left < k_tiles) ring_.release(previous);
      }
      previous = at;
      at = ahead;
    }
    issued();
    arch::wgmma_wait<0>();
    ring_.release(previous);
  }

  // Where the slab of a unit begins, in shared memory.
  SLUICE_DEVICE arch::SharedAddress slab_of(const Position& at, int unit) const {
    const int slab = unit % blocks * kSlabs + unit / blocks / kChunksPerSlab;
    return arch::shared_address(ring_.stage_p(at)) + bytes((first_block_ * kSlabs + slab) * kW4LargestSlabBytes);
  }
  SLUICE_DEVICE Codes codes_of(const Position& at, int unit) const {
    Codes codes;
    const int chunk = unit / blocks % kChunksPerSlab;
    arch::load_shared(slab_of(at, unit) + bytes(arch::thread_in_warpgroup() * 16 + chunk * kW4ChunkBytes), codes.words);
    return codes;
  }
  // That of a half of a unit.
  SLUICE_DEVICE Group group_of(const Position& at, int unit, int half) const {
    const int number = (unit / blocks % kChunksPerSlab * 2 + half) >> params_.group_shift;
    const arch::SharedAddress slab = slab_of(at, unit);
    Group group{.scales = 0, .zeros = kW4MiddleCode * 0x101};
    arch::load_shared(slab + bytes(kW4CodeBytes + pair_ * 4) + bytes(number * kW4ScaleBytes), group.scales);
    if (params_.zero_offset > 0) {
      std::uint16_t zeros;
      arch::load_shared(slab + bytes(params_.zero_offset + number * kW4ZeroBytes + pair_ * 2), zeros);
      group.zeros = zeros;
    }
    return group;
  }

  static SLUICE_DEVICE void dequantise(const Codes& codes, const Group& first, const Group& second, Fragments& fragments) {
    const auto pair = [](std::uint32_t zero) { return arch::zero_point_pair<config.type_a>(zero); };
    const std::uint32_t zeros[2][2] = {{pair(first.zeros & 0xff), pair(first.zeros >> 8)},
                                       {pair(second.zeros & 0xff), pair(second.zeros >> 8)}};
    SLUICE_UNROLL
    for (int step = 0; step < kSteps; ++step)
      arch::dequantise<config.type_a>(codes.words[step], zeros[step / kHalfSteps], fragments[step].words);
  }

  // Starts the multiplication of a chunk.
  template <bool adds>
  static SLUICE_DEVICE void multiply_unit(float (&sums)[Sums::kPerBlock], const Fragments& fragments, std::uint64_t q, int chunk) {
    arch::wgmma_fence();
    SLUICE_UNROLL
    for (int step = 0; step < kSteps; ++step) {
      const std::uint64_t k = arch::advance_descriptor(q, TileQ::step_offset_bytes(chunk * kSteps + step));
      if (adds || step > 0)
        arch::wgmma<config.type_a, true>(sums, fragments[step].words, k);
      else
        arch::wgmma<config.type_a, false>(sums, fragments[step].words, k);
    }
    arch::wgmma_commit();
  }

  static SLUICE_DEVICE void promote(Sums& sums, float (&shorts)[Sums::kPerBlock], const Group& group) {
    arch::pin_registers(shorts);  // until now they were the tensor cores'
    const float low = arch::as_number<config.type_a>(group.scales), high = arch::as_number<config.type_a>(group.scales >> 16);
    SLUICE_UNROLL
    for (int i = 0; i < Sums::kPerBlock; ++i) {
      float& sum = sums.values[0][i];
      sum = arch::fused_multiply_add(shorts[i], i % 4 < 2 ? low : high, sum);
    }
  }

  static SLUICE_DEVICE constexpr std::uint32_t bytes(int count) { return static_cast<std::uint32_t>(count); }

  const W4Params& params_;
  const Ring& ring_;
  int first_block_;
  int pair_;  // of rows, whose scales and zero points this thread needs
};

}  // namespace sluice
