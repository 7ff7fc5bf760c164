// Fetches the scales of FP8 operands into the ring, a stage's along with its k-tile: a word for each vector of a tile and each 128 of K.
// Where those of neighbouring vectors are neighbours, and start where the copy engine can address them, it fetches a run of them for one
// instruction; else each lane of a warp asks for words of its own. (256 words cost a warp almost as long as the tensor cores need for a
// stage of 256 x 128 x 128: 842 instead of 811 us for 4096 x 7168 x 16384, H200, 22 November 2026.)
#pragma once

#include "core/groups.hpp"
#include "kernel/gemm_params.cuh"
#include "kernel/mainloop/operand_tile.cuh"
#include "kernel/mainloop/scaled_pipeline.cuh"

namespace sluice {

template <KernelConfig config>
class ScaleProducer {
 public:
  using Ring = ScaledPipeline<config>;

  // Used by all lanes of a warp.
  static constexpr bool kAlone = false;

  SLUICE_DEVICE ScaleProducer(const MainloopParams& params, const Ring& ring)
      : ScaleProducer(params.scale_p, params.scale_q, params.k, ring) {}
  SLUICE_DEVICE ScaleProducer(const ScaleParams& p, const ScaleParams& q, const std::int32_t& k, const Ring& ring)
      : scale_p_(p), scale_q_(q), k_(k), ring_(ring) {}

  // By the warp, before the barrier that lets the roles begin: operands whose scales do not follow K have ones for good, and runs leave
  // what is behind the matrix as it was.
  SLUICE_DEVICE void fill_with_ones() const {
    typename Ring::Position at;
    for (; at.stage < Ring::kLayout.stages; ++at.stage)
      for (int block = 0; block < scale_blocks_per_stage(config); ++block) {
        if (!all_come_as_words(scale_p_)) fill<OperandTile<config, Operand::p>::kVectors>(ring_.scales_p(at, block));
        if (!all_come_as_words(scale_q_)) fill<OperandTile<config, Operand::q>::kVectors>(ring_.scales_q(at, block));
      }
    arch::fence_shared_for_async();
  }

  SLUICE_DEVICE void load(typename Ring::Position& at, const WorkTile& tile, bool first) const {
    // Once a tile: this warp has no cycle to spare, and a question more in its loop costs tiles of 128 x 112 4%.
    if (!scale_p_.anywhere && !scale_q_.anywhere)
      load_stages<false>(at, tile, first);
    else
      load_stages<true>(at, tile, first);
  }

 private:
  // anywhere: tiles may begin where the copy engine cannot address their scales, which come as words, then.
  template <bool anywhere>
  SLUICE_DEVICE void load_stages(typename Ring::Position& at, const WorkTile& tile, bool first) const {
    constexpr int kBlocks = scale_blocks_per_stage(config);
    const int first_block = tile.k_begin * kBlocks + (computes_groups_along_k(config) ? tile.first_k >> kLog2ScaleBlock : 0);
    Words<Operand::p, anywhere> p(scale_p_, tile, first_block);
    Words<Operand::q, anywhere> q(scale_q_, tile, first_block);
    if (first) arch::wait_for_predecessor();
    SLUICE_NO_UNROLL
    for (int k_tile = tile.k_begin; k_tile < tile.k_end; ++k_tile) {
      ring_.wait_empty(at);
      const int blocks_left = (k_ + kScaleBlockElems - 1) / kScaleBlockElems - k_tile * kBlocks;
      // A run overwrites what came by ordinary stores: words of a tile that began elsewhere, and zeros where K ended inside a stage.
      if constexpr (anywhere || kBlocks > 1)
        if ((anywhere || blocks_left % kBlocks != 0) && p.run_bytes() + q.run_bytes() > 0) arch::fence_shared_for_async();
      arch::Barrier* const full = ring_.full_barrier(at);
      if (arch::elect_one()) {
        const int blocks = blocks_left < kBlocks ? blocks_left : kBlocks;
        arch::barrier_arrive_expect_bytes(full, (p.run_bytes() + q.run_bytes()) * blocks);
      }
      arch::sync_warp();
      SLUICE_UNROLL
      for (int block = 0; block < kBlocks; ++block) {
        p.copy(ring_.scales_p(at, block), block < blocks_left, full);
        q.copy(ring_.scales_q(at, block), block < blocks_left, full);
      }
      arch::barrier_arrive_when_copied(full);
      at.advance();
    }
  }

  static SLUICE_DEVICE bool all_come_as_words(const ScaleParams& scales) { return scales.strides.along_k && !scales.runs; }

  template <int vectors>
  static SLUICE_DEVICE void fill(arch::SharedAddress scales) {
    for (int i = arch::lane(); i < vectors; i += 32) arch::store_shared(scales + static_cast<std::uint32_t>(i) * sizeof(float), 1.0f);
  }

  // The words of one operand's tile, which the lanes ask for in turn: where those of the next block of K are.
  template <Operand operand, bool anywhere>
  class Words {
   public:
    SLUICE_DEVICE Words(const ScaleParams& scales, const WorkTile& tile, int k_block)
        : scales_(scales),
          from_(scales.data + tile.group * scales.strides.batch + k_block * scales.strides.k_block),
          first_(Tile::first_vector(tile)),
          run_bytes_(in_runs() ? words_inside() * static_cast<int>(sizeof(float)) : 0) {}

    // That the copy engine brings of a block of K.
    SLUICE_DEVICE int run_bytes() const { return run_bytes_; }

    SLUICE_DEVICE void copy(arch::SharedAddress to, bool inside_k, arch::Barrier* full) {
      if (in_runs() && inside_k) {
        if (run_bytes_ > 0 && arch::elect_one()) arch::bulk_load(to, from_ + first_, run_bytes_, full);
      } else if (operand == Operand::q && scales_.strides.block_shift > 0) {
        copy_words<Tile::kVectors / kScaleChunk<config> * kChunkCopies, kChunkCopies, kScaleChunk<config>>(to, inside_k);
      } else if (scales_.strides.along_k) {
        copy_words<Tile::kVectors, 1, 1>(to, inside_k);
      }
      from_ += scales_.strides.k_block;
    }

   private:
    using Tile = OperandTile<config, operand>;

    SLUICE_DEVICE bool in_runs() const { return scales_.runs && (!anywhere || first_ % kRunWords == 0); }

    SLUICE_DEVICE int words_inside() const {
      const int left = scales_.vectors - first_;
      return left < 0 ? 0 : left < Tile::kVectors ? left : Tile::kVectors;
    }

    // `copies` of the scale of every `apart`-th vector.
    template <int count, int copies, int apart>
    SLUICE_DEVICE void copy_words(arch::SharedAddress to, bool inside_k) const {
      SLUICE_UNROLL
      for (int i = 0; i < (count + 31) / 32; ++i) {
        const int at = arch::lane() + i * 32, vector = first_ + at / copies * apart;
        const bool inside = inside_k && vector < scales_.vectors;
        // 32 bits are enough for the scales of one matrix (core/problem.cpp).
        const int offset = inside ? (vector >> scales_.strides.block_shift) * static_cast<int>(scales_.strides.vector) : 0;
        if (at < count) arch::copy_word_async(to + static_cast<std::uint32_t>(at) * sizeof(float), from_ + offset, inside);
      }
    }

    const ScaleParams& scales_;
    const float* from_;
    int first_;
    int run_bytes_;
  };

  const ScaleParams& scale_p_;
  const ScaleParams& scale_q_;
  const std::int32_t& k_;
  const Ring& ring_;
};

}  // namespace sluice
