// Fills the ring with one operand of general groups, as TmaProducer does with that of one problem: by the map of the tile's group, which a
// kernel before this one has made.
#pragma once

#include "kernel/gemm_params.cuh"
#include "kernel/mainloop/operand_tile.cuh"
#include "kernel/pipeline.cuh"

namespace sluice {

// Used by one thread of a warp.
template <KernelConfig config, Operand operand>
class GeneralProducer {
 public:
  using Ring = Pipeline<config>;

  SLUICE_DEVICE GeneralProducer(const OperandParams& params, const Ring& ring) : params_(params), ring_(ring) {}

  // Loads this operand's part of all k-tiles of one work tile.
  SLUICE_DEVICE void load(typename Ring::Position& at, const WorkTile& tile, const arch::TensorMap& map) const {
    const int slice = Tile::slice(), vector = Tile::first_vector(tile) + slice * Tile::kSliceVectors;
    const std::uint16_t sharers = Tile::sharers();
    SLUICE_NO_UNROLL
    for (int k_tile = 0; k_tile < tile.k_end; ++k_tile) {
      ring_.wait_empty(at);
      arch::barrier_arrive_expect_bytes(ring_.full_barrier(at), params_.stage_bytes);
      std::byte* const stage =
          (operand == Operand::p ? ring_.stage_p(at) : ring_.stage_q(at)) + slice * Tile::kSliceVectors * kSwizzleBytes;
      SLUICE_UNROLL
      for (int slab = 0; slab < Tile::kSlabs; ++slab) {
        const arch::TensorCoordinates from{k_tile * config.tile_k + slab * Tile::kRowElems, vector, 0};
        if constexpr (Tile::kSharers > 1)
          arch::tma_load_multicast(stage + slab * Tile::kSlabBytes, map, from, ring_.full_barrier(at), sharers, params_.policy);
        else
          arch::tma_load(stage + slab * Tile::kSlabBytes, map, from, ring_.full_barrier(at), params_.policy);
      }
      at.advance();
    }
  }

 private:
  using Tile = OperandTile<config, operand>;
  static_assert(Tile::kMajor == arch::Major::k && config.load == LoadPath::tma);

  const OperandParams& params_;
  const Ring& ring_;
};

}  // namespace sluice
