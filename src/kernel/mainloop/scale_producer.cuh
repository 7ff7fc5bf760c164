// Fetches the scales of FP8 operands into the ring, a stage's along with its k-tile: a word for each vector of a tile and each 128 of K. Of
// a warp's words each lane asks for its own, since their rows need not start where the copy engine could address them.
#pragma once

#include "kernel/gemm_params.cuh"
#include "kernel/mainloop/operand_tile.cuh"
#include "kernel/pipeline.cuh"

namespace sluice {

template <KernelConfig config>
class ScaleProducer {
 public:
  using Ring = Pipeline<config>;

  // Used by all lanes of a warp.
  static constexpr bool kAlone = false;

  SLUICE_DEVICE ScaleProducer(const MainloopParams& params, const Ring& ring) : params_(params), ring_(ring) {}

  SLUICE_DEVICE bool constant() const { return false; }

  SLUICE_DEVICE void load(typename Ring::Position& at, const WorkTile& tile, bool) const {
    if (!params_.scale_p.along_k && !params_.scale_q.along_k) return;  // nobody waits for any
    SLUICE_NO_UNROLL
    for (int k_tile = tile.k_begin; k_tile < tile.k_end; ++k_tile) {
      ring_.wait_empty(at);
      SLUICE_UNROLL
      for (int block = 0; block < scale_blocks_per_stage(config); ++block) {
        const int k_block = k_tile * scale_blocks_per_stage(config) + block;
        copy<Operand::p>(params_.scale_p, tile, k_block, ring_.scales_p(at, block));
        copy<Operand::q>(params_.scale_q, tile, k_block, ring_.scales_q(at, block));
      }
      arch::barrier_arrive_when_copied(ring_.full_barrier(at));
      at.advance();
    }
  }

 private:
  template <Operand operand>
  SLUICE_DEVICE void copy(const ScaleParams& scales, const WorkTile& tile, int k_block, arch::SharedAddress to) const {
    using Tile = OperandTile<config, operand>;
    if (!scales.along_k) return;
    const float* from = scales.data + tile.group * scales.batch_stride + k_block * scales.k_stride;
    const bool inside_k = k_block * kScaleBlockElems < params_.k;
    const int first = Tile::first_vector(tile);
    SLUICE_NO_UNROLL
    for (int i = arch::lane(); i < Tile::kVectors; i += 32) {
      const int vector = first + i;
      const bool inside = inside_k && vector < scales.vectors;
      arch::copy_word_async(to + static_cast<std::uint32_t>(i) * sizeof(float),
                            from + (inside ? (vector >> scales.block_shift) * scales.vector_stride : 0), inside);
    }
  }

  const MainloopParams& params_;
  const Ring& ring_;
};

}  // namespace sluice
