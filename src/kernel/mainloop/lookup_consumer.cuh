// Empties the ring into the accumulators of one warpgroup, where P is weights of 4 bits and Q numbers of 8. The codes become numbers of
// e4m3 in the registers from which wgmma takes P, four at a time by looking them up (arch/sm90/int4.cuh): less their zero points
// they are whole numbers up to 16, which e4m3 holds. What is multiplied of a group goes into short sums, as sums of FP8 must in any case,
// and these are promoted times the group's scales. While the tensor cores multiply a group, the next is looked up into the other set of
// registers. docs/w4.md counts the instructions.
#pragma once

#include <type_traits>

#include "core/w4_layout.hpp"
#include "kernel/gemm_params.cuh"
#include "kernel/mainloop/operand_tile.cuh"
#include "kernel/mainloop/slice_position.cuh"
#include "kernel/mainloop/wgmma_consumer.cuh"
#include "kernel/pipeline.cuh"

namespace sluice {

template <KernelConfig config, int blocks>
class LookupConsumer {
 public:
  using Ring = Pipeline<config>;
  using Position = ConsumerPosition<config>;
  using TileQ = OperandTile<config, Operand::q>;
  using Sums = Accumulators<config>;

  SLUICE_DEVICE LookupConsumer(const MainloopParams& params, const Ring& ring, int first_block)
      : params_(params.w4), ring_(ring), first_block_(first_block), pair_(arch::thread_in_warpgroup() / 32 * 8 + arch::lane() / 4) {}

  // As WgmmaConsumer::multiply().
  template <class Issued>
  SLUICE_DEVICE void multiply(Sums& sums, Position& at, int k_tiles, Issued&& issued) const {
    sums.clear();
    if (k_tiles <= 0) return issued();
    if (params_.group_shift == 0) return multiply_groups<1>(sums, at, k_tiles, issued);
    if (params_.group_shift == 1) return multiply_groups<2>(sums, at, k_tiles, issued);
    multiply_groups<4>(sums, at, k_tiles, issued);
  }

 private:
  static constexpr int kDepth = arch::kWgmmaDepthBytes;  // elements of K in a wgmma, in two words of a thread's codes
  static constexpr int kStepBytes = 8;
  static constexpr int kStepsOfChunk = kW4ChunkElems / kDepth, kSteps = kW4SlabElems / kDepth;
  static_assert(blocks == 1, "short sums leave no registers for more");
  // Each group's numbers are looked up in a block of code of their own, as the wait for a stage makes one: else ptxas puts them behind the
  // wait for the tensor cores.
  static_assert(config.tile_k == kW4SlabElems, "a stage has a slab of each block");

  struct Fragment {
    std::uint32_t words[4];
  };
  // Two fp16, of a thread's rows r and r + 8.
  using Scales = std::uint32_t;

  template <int steps, class Issued>  // of a group
  SLUICE_DEVICE void multiply_groups(Sums& sums, Position& at, int k_tiles, Issued&& issued) const {
    constexpr int kGroups = kSteps / steps;  // of a stage
    float shorts[Sums::kPerBlock];
    for (float& sum : shorts) sum = 0;  // promoted once before there is anything in them
    Scales before = 0;
    Fragment fragments[2][steps];  // groups have them in turn
    ring_.wait_full(at);
    Scales next = look_up(at, 0, fragments[0]);
    Position previous = at;
    int left = k_tiles;
    // A stage, whose first group has that set of registers; the next one's is looked up last.
    const auto multiply_stage = [&](auto first_set) {
      constexpr int kFirst = first_set();
      const std::uint64_t q = TileQ::descriptor(ring_.stage_q(at));
      Position ahead = at;
      ahead.advance();
      SLUICE_UNROLL
      for (int group = 0; group < kGroups; ++group) {
        arch::wgmma_wait<0>();
        promote(sums, shorts, before);
        multiply_group(shorts, fragments[(kFirst + group) % 2], q, group * steps);
        if (group == 0 && left < k_tiles) ring_.release(previous);
        before = next;
        Fragment(&ahead_of_it)[steps] = fragments[(kFirst + group + 1) % 2];
        if (group + 1 < kGroups) {
          next = look_up(at, (group + 1) * steps, ahead_of_it);
        } else if (left > 1) {
          ring_.wait_full(ahead);
          next = look_up(ahead, 0, ahead_of_it);
        }
      }
      previous = at;
      at = ahead;
    };
    SLUICE_NO_UNROLL
    for (;;) {
      multiply_stage(std::integral_constant<int, 0>());
      if (--left == 0) break;
      multiply_stage(std::integral_constant<int, kGroups % 2>());
      if (--left == 0) break;
    }
    issued();
    arch::wgmma_wait<0>();
    promote(sums, shorts, before);
    ring_.release(previous);
  }

  // The numbers of a group, which begins with that step of the stage.
  template <int steps>
  SLUICE_DEVICE Scales look_up(const Position& at, int first_step, Fragment (&fragments)[steps]) const {
    const arch::SharedAddress slab = arch::shared_address(ring_.stage_p(at)) + bytes(first_block_ * kW4LargestSlabBytes);
    const int group = first_step / steps;
    std::uint32_t codes[steps][kStepBytes / 4];
    load_codes(slab, first_step, codes);
    Scales scales;
    arch::load_shared(slab + bytes(kW4CodeBytes + group * kW4ScaleBytes + pair_ * 4), scales);
    constexpr arch::CodeTable kMiddle = arch::code_table_of(kW4MiddleCode);
    arch::CodeTable low = kMiddle, high = kMiddle;
    if (params_.zero_offset > 0) {
      std::uint16_t zeros;
      arch::load_shared(slab + bytes(params_.zero_offset + group * kW4ZeroBytes + pair_ * 2), zeros);
      low = arch::code_table(zeros & 0xffu);
      high = arch::code_table(static_cast<std::uint32_t>(zeros) >> 8);
    }
    SLUICE_UNROLL
    for (int step = 0; step < steps; ++step) {
      std::uint32_t(&words)[4] = fragments[step].words;
      arch::look_up_codes(codes[step][0], low, high, words[0], words[1]);
      arch::look_up_codes(codes[step][1], low, high, words[2], words[3]);
    }
    return scales;
  }

  // A thread's codes of two steps lie side by side.
  template <int steps>
  SLUICE_DEVICE void load_codes(arch::SharedAddress slab, int first_step, std::uint32_t (&codes)[steps][kStepBytes / 4]) const {
    const arch::SharedAddress mine = slab + bytes(arch::thread_in_warpgroup() * kStepsOfChunk * kStepBytes);
    const auto place = [&](int step) { return bytes(step / kStepsOfChunk * kW4ChunkBytes + step % kStepsOfChunk * kStepBytes); };
    if constexpr (steps == 1) {
      for (int i = 0; i < 2; ++i) arch::load_shared(mine + place(first_step) + bytes(i * 4), codes[0][i]);
    } else {
      SLUICE_UNROLL
      for (int step = 0; step < steps; step += kStepsOfChunk) {
        std::uint32_t both[4];
        arch::load_shared(mine + place(first_step + step), both);
        for (int i = 0; i < 4; ++i) codes[step + i / 2][i % 2] = both[i];
      }
    }
  }

  // Starts the multiplication of a group.
  template <int steps>
  static SLUICE_DEVICE void multiply_group(float (&shorts)[Sums::kPerBlock], const Fragment (&fragments)[steps], std::uint64_t q,
                                           int first_step) {
    arch::wgmma_fence();
    SLUICE_UNROLL
    for (int step = 0; step < steps; ++step) {
      const std::uint64_t k = arch::advance_descriptor(q, TileQ::step_offset_bytes(first_step + step));
      if (step > 0)
        arch::wgmma_8_bit<config.type_a, true>(shorts, fragments[step].words, k);
      else
        arch::wgmma_8_bit<config.type_a, false>(shorts, fragments[step].words, k);
    }
    arch::wgmma_commit();
  }

  static SLUICE_DEVICE void promote(Sums& sums, float (&shorts)[Sums::kPerBlock], Scales scales) {
    constexpr DataType kScales = w4_scale_type(config.type_a);
    arch::pin_registers(shorts);  // until now they were the tensor cores'
    const float low = arch::as_number<kScales>(scales), high = arch::as_number<kScales>(scales >> 16);
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
