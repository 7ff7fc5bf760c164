// Empties the ring into the accumulators of one warpgroup, where P is weights of 4 bits: they become numbers of 16 bits in the registers
// from which wgmma takes P. This goes by units, 64 columns by 64 of K: while the tensor cores multiply one, the next is dequantised into
// the other set of registers. docs/w4.md counts the instructions.
//
// Where groups are whole slabs of bf16 without zero points, codes are scaled as they become numbers, for nothing. Elsewhere a scale is a
// multiplication of its own, and instructions are what few rows of A wait for: there the codes less their zero points are multiplied as
// they are, each slab into short sums of its own, which are promoted times the slab's scales as those of FP8 are: for 8 rows 4 instructions
// a thread for each slab, where scaling its weights takes 32. With many rows it is the other way round.
#pragma once

#include "core/w4_layout.hpp"
#include "kernel/gemm_params.cuh"
#include "kernel/mainloop/operand_tile.cuh"
#include "kernel/mainloop/slice_position.cuh"
#include "kernel/mainloop/wgmma_consumer.cuh"
#include "kernel/pipeline.cuh"

namespace sluice {

template <KernelConfig config, int blocks>
class DequantisingConsumer {
 public:
  using Ring = Pipeline<config>;
  using Position = ConsumerPosition<config>;
  using TileQ = OperandTile<config, Operand::q>;
  using Sums = Accumulators<config>;

  SLUICE_DEVICE DequantisingConsumer(const MainloopParams& params, const Ring& ring, int first_block)
      : params_(params.w4), ring_(ring), first_block_(first_block), pair_(arch::thread_in_warpgroup() / 32 * 8 + arch::lane() / 4) {}

  // As WgmmaConsumer::multiply().
  template <class Issued>
  SLUICE_DEVICE void multiply(Sums& sums, Position& at, int k_tiles, Issued&& issued) const {
    sums.clear();
    if (k_tiles <= 0) return issued();
    if (params_.group_shift != kWholeSlabs) return scale_weights<false, true>(sums, at, k_tiles, issued);
    if (params_.zero_offset > 0)
      multiply_slabs<true>(sums, at, k_tiles, issued);
    else
      multiply_slabs<false>(sums, at, k_tiles, issued);
  }

 private:
  static constexpr int kDepth = arch::kWgmmaDepthBytes / 2;                       // elements of K in a wgmma
  static constexpr int kSteps = kW4ChunkElems / kDepth, kHalfSteps = kSteps / 2;  // of a unit; a half has 32 of K, and one group
  static constexpr int kSlabs = slabs_of_block(config.tile_k);
  static constexpr int kUnits = blocks * config.tile_k / kW4ChunkElems;  // of a stage
  static constexpr bool kHalves = halves_slabs(config.tile_k);
  static constexpr int kScaleOffset = kHalves ? kW4HalfScaleOffset : kW4CodeBytes;
  static constexpr int kWholeSlabs = 2;  // group_shift where a slab has one group
  // Whether a unit's codes are asked for before the wgmma of the unit before it are issued, and not behind them: where registers hold
  // both. Whether the next stage is there has been asked by then. Slabs of few rows that are promoted ptxas would multiply one by one.
  static constexpr bool kCodesFirst = consumer_warpgroups(config) * accumulators_per_thread(config) <= 128;
  static constexpr bool kCodesOfSlabsFirst = kCodesFirst && tile_q(config) >= 64;
  static constexpr bool kFewRows = tile_q(config) <= 64;
  static_assert(!kFewRows || (kCodesFirst && kUnits > 1), "few rows leave registers for codes");
  static_assert(kW4ChunksPerSlab == 2, "which set of registers a unit has must be known to the compiler");
  static_assert(blocks == 1 || (!kFewRows && !kHalves), "several blocks of columns take turns slab by slab, each with sums of its own");
  static constexpr int block_of(int unit) { return unit / kW4ChunksPerSlab % blocks; }
  static constexpr int slab_number(int unit) { return unit / kW4ChunksPerSlab / blocks; }
  // How far along K a unit lies in its stage, in units.
  static constexpr int depth_of(int unit) { return slab_number(unit) * kW4ChunksPerSlab + unit % kW4ChunksPerSlab; }

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

  template <bool zero_points, class Issued>
  SLUICE_DEVICE void multiply_slabs(Sums& sums, Position& at, int k_tiles, Issued&& issued) const {
    if constexpr (promotes_slabs(config, zero_points))
      promote_slabs<zero_points>(sums, at, k_tiles, issued);
    else
      scale_weights<true, zero_points>(sums, at, k_tiles, issued);
  }

  // Short sums of a slab, and what they are promoted by.
  struct Slab {
    float shorts[Sums::kPerBlock];
    Group group;
  };

  // Even slabs and odd ones in turn: one is promoted while the tensor cores are busy with the other.
  template <bool zero_points, class Issued>
  SLUICE_DEVICE void promote_slabs(Sums& sums, Position& at, int k_tiles, Issued&& issued) const {
    static_assert(kSlabs <= 2 && !kHalves, "which registers a slab has must be known to the compiler");
    constexpr int kOdd = (kSlabs - 1) * kW4ChunksPerSlab;  // the unit of a stage with which an odd slab begins
    Slab even, odd;
    Fragments first, second;  // of a slab's units
    Codes next;
    // ahead: the stage after this one, if there is one and this is the last unit of its own.
    const auto start = [&](Slab& s, const Position& where, int unit, const Position* ahead) {
      const bool begins = unit % kW4ChunksPerSlab == 0, there = kCodesOfSlabsFirst && ahead != nullptr && ring_.is_full(*ahead);
      if (begins) s.group = group_of<true, zero_points>(where, unit, 0);
      Fragments& numbers = begins ? first : second;
      const arch::CodeLine line = line_of<zero_points>(s.group);
      dequantise(next, line, line, numbers);
      const auto fetch = [&] {
        if (ahead != nullptr && !there) ring_.wait_full(*ahead);
        if (ahead != nullptr)
          next = codes_of(*ahead, 0);
        else if (unit + 1 < kUnits)
          next = codes_of(where, unit + 1);
      };
      if (kCodesOfSlabsFirst) fetch();
      start_unit(s.shorts, numbers, TileQ::descriptor(ring_.stage_q(where)), unit, !begins);
      if (!kCodesOfSlabsFirst) fetch();
    };
    // The rest of an even slab, and an odd one. Where that is.
    const auto start_odd = [&](bool more) {
      Position where = at;
      if (kSlabs == 1) where.advance();
      start(even, at, 1, kSlabs == 1 ? &where : nullptr);
      arch::wgmma_wait<1>();  // a unit's numbers have left their registers when the next unit is all that is on its way
      start(odd, where, kOdd, nullptr);
      arch::wgmma_wait<1>();
      if (kSlabs == 1) ring_.release(at);
      promote(sums, even.shorts, even.group);
      Position behind = where;
      behind.advance();
      start(odd, where, kOdd + 1, more ? &behind : nullptr);
      return where;
    };
    ring_.wait_full(at);
    next = codes_of(at, 0);
    start(even, at, 0, nullptr);
    int left = kSlabs * k_tiles - 1;
    SLUICE_NO_UNROLL
    for (; left >= 2; left -= 2) {
      const Position behind = start_odd(true);
      at = behind;
      at.advance();
      arch::wgmma_wait<1>();
      start(even, at, 0, nullptr);
      arch::wgmma_wait<1>();
      ring_.release(behind);
      promote(sums, odd.shorts, odd.group);
    }
    if (left > 0) {
      at = start_odd(false);
      issued();
      arch::wgmma_wait<0>();
      promote(sums, odd.shorts, odd.group);
    } else {  // never with two slabs a stage; but if ptxas knows it, it ends the loop in its middle, and then serialises wgmma
      start(even, at, 1, nullptr);
      issued();
      arch::wgmma_wait<0>();
      promote(sums, even.shorts, even.group);
    }
    ring_.release(at);
    at.advance();
    put_in_what_codes_leave_out(sums);
  }

  // What the next unit is made of.
  template <bool whole_slabs, bool zero_points>
  struct Source {
    Codes codes;
    Group groups[2];      // of its halves
    arch::CodeLine line;  // of a slab whose codes are scaled as they become numbers
  };
  template <bool whole_slabs, bool zero_points>
  SLUICE_DEVICE void fetch(Source<whole_slabs, zero_points>& source, const Position& at, int unit) const {
    source.codes = codes_of(at, unit);
    if (whole_slabs && unit % kW4ChunksPerSlab > 0) return;  // the slab's
    source.groups[0] = group_of<whole_slabs, zero_points>(at, unit, 0);
    source.groups[1] = whole_slabs ? source.groups[0] : group_of<false, zero_points>(at, unit, 1);
  }
  template <bool whole_slabs, bool zero_points>
  static SLUICE_DEVICE void make_numbers(Source<whole_slabs, zero_points>& source, int unit, Fragments& numbers) {
    const Group(&groups)[2] = source.groups;
    if constexpr (whole_slabs && scales_with_codes(config.type_a, zero_points)) {
      // Kept for the slab's other unit, where registers allow it.
      if (!kFewRows || unit % kW4ChunksPerSlab == 0) source.line = arch::line_of_scales<config.type_a>(groups[0].scales);
      dequantise(source.codes, source.line, source.line, numbers);
    } else {
      dequantise(source.codes, line_of<zero_points>(groups[0]), line_of<zero_points>(groups[1]), numbers);
      SLUICE_UNROLL
      for (int step = 0; step < kSteps; ++step) arch::scale_pairs<config.type_a>(numbers[step].words, groups[step / kHalfSteps].scales);
    }
  }

  // Beside few rows the tensor cores wait for everything else. So the loop goes from a stage's second unit to the first one of the next,
  // which is when the stage may be released: it asks neither whether there was a stage before nor whether there is one behind.
  template <bool whole_slabs, bool zero_points, class Issued>
  SLUICE_DEVICE void scale_weights(Sums& sums, Position& at, int k_tiles, Issued&& issued) const {
    if constexpr (!kFewRows) return scale_beside_many_rows<whole_slabs, zero_points>(sums, at, k_tiles, issued);
    Source<whole_slabs, zero_points> source;
    Fragments fragments[2];
    std::uint64_t q = TileQ::descriptor(ring_.stage_q(at));
    const auto multiply_unit = [&](int unit, auto&& fetch_next) {
      Fragments& numbers = fragments[unit % 2];
      make_numbers(source, unit, numbers);
      fetch_next();
      start_unit(sums.values[0], numbers, q, unit, true);
      arch::wgmma_wait<1>();  // the unit before this one has left its registers
    };
    const auto fetch_unit = [&](int unit) { return [&, unit] { fetch(source, at, unit); }; };
    ring_.wait_full(at);
    fetch(source, at, 0);
    multiply_unit(0, fetch_unit(1));
    SLUICE_NO_UNROLL
    for (int left = k_tiles - 1; left > 0; --left) {
      SLUICE_UNROLL
      for (int unit = 1; unit + 1 < kUnits; ++unit) multiply_unit(unit, fetch_unit(unit + 1));
      const Position done = at;
      at.advance();
      const bool there = ring_.is_full(at);
      multiply_unit(kUnits - 1, [&] {
        if (!there) ring_.wait_full(at);
        fetch(source, at, 0);
      });
      q = TileQ::descriptor(ring_.stage_q(at));
      multiply_unit(0, fetch_unit(1));
      ring_.release(done);
    }
    SLUICE_UNROLL
    for (int unit = 1; unit + 1 < kUnits; ++unit) multiply_unit(unit, fetch_unit(unit + 1));
    multiply_unit(kUnits - 1, [] {});
    issued();
    arch::wgmma_wait<0>();
    ring_.release(at);
    at.advance();
    put_in_what_codes_leave_out(sums);
  }

  // Where the tensor cores have more to do than everyone else, by stages, in fewer registers.
  template <bool whole_slabs, bool zero_points, class Issued>
  SLUICE_DEVICE void scale_beside_many_rows(Sums& sums, Position& at, int k_tiles, Issued&& issued) const {
    constexpr int kStagesOfRound = kUnits == 1 ? 2 : 1;  // after which registers are as before
    Source<whole_slabs, zero_points> source;
    Fragments fragments[2];
    Position previous = at;
    // One of `left` stages; the units of `round` stages have taken their registers in turn.
    const auto multiply_stage = [&](int round, int left) {
      const std::uint64_t q = TileQ::descriptor(ring_.stage_q(at));
      Position ahead = at;
      ahead.advance();
      SLUICE_UNROLL
      for (int unit = 0; unit < kUnits; ++unit) {
        Fragments& numbers = fragments[(round * kUnits + unit) % 2];
        const bool enters = unit + 1 == kUnits && left > 1, there = kCodesFirst && enters && ring_.is_full(ahead);
        make_numbers(source, unit, numbers);
        const auto fetch_next = [&] {
          if (enters && !there) ring_.wait_full(ahead);
          if (enters)
            fetch(source, ahead, 0);
          else if (unit + 1 < kUnits)
            fetch(source, at, unit + 1);
        };
        // The next unit is fetched while the tensor cores are busy with this one, or the one before it.
        if (kCodesFirst) fetch_next();
        start_unit(sums.values[block_of(unit)], numbers, q, unit, true);
        if (!kCodesFirst) fetch_next();
        arch::wgmma_wait<1>();  // the unit before this one has left its registers
        if (unit == 0 && left < k_tiles) ring_.release(previous);
      }
      previous = at;
      at = ahead;
    };
    ring_.wait_full(at);
    fetch(source, at, 0);
    int left = k_tiles;
    if (kStagesOfRound > 1 && left % kStagesOfRound > 0) {
      multiply_stage(0, left--);
      arch::wgmma_wait<0>();  // so that ptxas knows which registers are the tensor cores' where the loop begins
    }
    SLUICE_NO_UNROLL
    for (; left > 0; left -= kStagesOfRound) {
      SLUICE_UNROLL
      for (int stage = 0; stage < kStagesOfRound; ++stage) multiply_stage(stage, left - stage);
    }
    issued();
    arch::wgmma_wait<0>();
    ring_.release(previous);
    put_in_what_codes_leave_out(sums);
  }

  // Where the slab of a unit begins, in shared memory.
  SLUICE_DEVICE arch::SharedAddress slab_of(const Position& at, int unit) const {
    const int slab = (first_block_ + block_of(unit)) * kSlabs + slab_number(unit);
    return arch::shared_address(ring_.stage_p(at)) + bytes(slab * packed_slab_stride(config.tile_k));
  }
  SLUICE_DEVICE Codes codes_of(const Position& at, int unit) const {
    Codes codes;
    const int chunk = unit % kW4ChunksPerSlab;
    arch::load_shared(slab_of(at, unit) + bytes(arch::thread_in_warpgroup() * 16 + chunk * kW4ChunkBytes), codes.words);
    return codes;
  }
  // That of a half of a unit.
  template <bool whole_slabs, bool zero_points>
  SLUICE_DEVICE Group group_of(const Position& at, int unit, int half) const {
    const int number = whole_slabs ? 0 : (unit % kW4ChunksPerSlab * 2 + half) >> params_.group_shift;
    const arch::SharedAddress slab = slab_of(at, unit);
    Group group{.scales = 0, .zeros = kW4MiddleCode * 0x101};
    arch::load_shared(slab + bytes(kScaleOffset + pair_ * 4) + bytes(number * kW4ScaleBytes), group.scales);
    if (zero_points && (whole_slabs || params_.zero_offset > 0)) {
      std::uint16_t zeros;
      const int offset = kHalves ? kW4HalfZeroOffset : params_.zero_offset;
      arch::load_shared(slab + bytes(offset + number * kW4ZeroBytes + pair_ * 2), zeros);
      group.zeros = zeros;
    }
    return group;
  }

  static_assert(kW4MiddleCode == 8, "arch::middle_line() and line_of_scales() subtract it");
  template <bool zero_points>
  static SLUICE_DEVICE arch::CodeLine line_of(const Group& group) {
    if constexpr (zero_points)
      return arch::line_of_zeros<config.type_a>(group.zeros & 0xff, group.zeros >> 8);
    else
      return arch::middle_line<config.type_a>();
  }
  static SLUICE_DEVICE void dequantise(const Codes& codes, const arch::CodeLine& first, const arch::CodeLine& second,
                                       Fragments& fragments) {
    SLUICE_UNROLL
    for (int step = 0; step < kSteps; ++step)
      arch::dequantise<config.type_a>(codes.words[step], step < kHalfSteps ? first : second, fragments[step].words);
  }

  // Starts the multiplication of a unit.
  static SLUICE_DEVICE void start_unit(float (&sums)[Sums::kPerBlock], const Fragments& fragments, std::uint64_t q, int unit, bool adds) {
    arch::wgmma_fence();
    SLUICE_UNROLL
    for (int step = 0; step < kSteps; ++step) {
      const std::uint64_t k = arch::advance_descriptor(q, TileQ::step_offset_bytes(depth_of(unit) * kSteps + step));
      if (adds || step > 0)
        arch::wgmma<config.type_a, true>(sums, fragments[step].words, k);
      else
        arch::wgmma<config.type_a, false>(sums, fragments[step].words, k);
    }
    arch::wgmma_commit();
  }

  static SLUICE_DEVICE void put_in_what_codes_leave_out(Sums& sums) {
    constexpr float kLeftOut = arch::CodeNumbers<config.type_a>::kLeftOut;
    if constexpr (kLeftOut != 1) {
      SLUICE_UNROLL
      for (int block = 0; block < blocks; ++block) {
        arch::pin_registers(sums.values[block]);
        SLUICE_UNROLL
        for (float& sum : sums.values[block]) sum *= kLeftOut;
      }
    }
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
