// Fetches the scales of FP8 operands into the ring, a stage's along with its k-tile: a word for each vector of a tile and each 128 of K. Of
// a warp's words each lane asks for its own, since their rows need not start where the copy engine could address them.
#pragma once

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

  SLUICE_DEVICE ScaleProducer(const MainloopParams& params, const Ring& ring) : params_(params), ring_(ring) {}

  SLUICE_DEVICE bool constant() const { return false; }

  // By the warp, before the barrier that lets the roles begin: operands whose scales do not follow K have ones for good.
  SLUICE_DEVICE void fill_with_ones() const {
    typename Ring::Position at;
    for (; at.stage < Ring::kLayout.stages; ++at.stage)
      for (int block = 0; block < scale_blocks_per_stage(config); ++block) {
        if (!params_.scale_p.strides.along_k) fill<OperandTile<config, Operand::p>::kVectors>(ring_.scales_p(at, block));
        if (!params_.scale_q.strides.along_k) fill<OperandTile<config, Operand::q>::kVectors>(ring_.scales_q(at, block));
      }
  }

  SLUICE_DEVICE void load(typename Ring::Position& at, const WorkTile& tile, bool) const {
    constexpr int kBlocks = scale_blocks_per_stage(config);
    Words<Operand::p> p(params_.scale_p, tile, tile.k_begin * kBlocks);
    Words<Operand::q> q(params_.scale_q, tile, tile.k_begin * kBlocks);
    SLUICE_NO_UNROLL
    for (int k_tile = tile.k_begin; k_tile < tile.k_end; ++k_tile) {
      ring_.wait_empty(at);
      SLUICE_UNROLL
      for (int block = 0; block < kBlocks; ++block) {
        const bool inside = (k_tile * kBlocks + block) * kScaleBlockElems < params_.k;
        p.copy(ring_.scales_p(at, block), inside);
        q.copy(ring_.scales_q(at, block), inside);
      }
      arch::barrier_arrive_when_copied(ring_.full_barrier(at));
      at.advance();
    }
  }

 private:
  template <int vectors>
  static SLUICE_DEVICE void fill(arch::SharedAddress scales) {
    for (int i = arch::lane(); i < vectors; i += 32) arch::store_shared(scales + static_cast<std::uint32_t>(i) * sizeof(float), 1.0f);
  }

  // The words of one operand's tile, which the lanes ask for in turn: where those of the next block of K are.
  template <Operand operand>
  class Words {
   public:
    SLUICE_DEVICE Words(const ScaleParams& scales, const WorkTile& tile, int k_block)
        : scales_(scales),
          from_(scales.data + tile.group * scales.strides.batch + k_block * scales.strides.k_block),
          first_(Tile::first_vector(tile)) {}

    SLUICE_DEVICE void copy(arch::SharedAddress to, bool inside_k) {
      const bool chunks = operand == Operand::q && scales_.strides.block_shift > 0;
      constexpr int kChunkWords = Tile::kVectors / kScaleChunk<config> * kChunkCopies;
      const int count = !scales_.strides.along_k ? 0 : chunks ? kChunkWords : Tile::kVectors;
      SLUICE_UNROLL
      for (int i = 0; i < (Tile::kVectors + 31) / 32; ++i) {
        const int at = arch::lane() + i * 32, vector = first_ + (chunks ? at / kChunkCopies * kScaleChunk<config> : at);
        const bool inside = inside_k && vector < scales_.vectors;
        // 32 bits are enough for the scales of one matrix (core/problem.cpp).
        const int offset = inside ? (vector >> scales_.strides.block_shift) * static_cast<int>(scales_.strides.vector) : 0;
        if (at < count) arch::copy_word_async(to + static_cast<std::uint32_t>(at) * sizeof(float), from_ + offset, inside);
      }
      from_ += scales_.strides.k_block;
    }

   private:
    using Tile = OperandTile<config, operand>;
    const ScaleParams& scales_;
    const float* from_;
    int first_;
  };

  const MainloopParams& params_;
  const Ring& ring_;
};

}  // namespace sluice
