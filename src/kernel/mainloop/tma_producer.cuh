// Fills the ring through the tensor memory accelerator: one thread asks, the copy engine does the rest.
#pragma once

#include "kernel/gemm_params.cuh"
#include "kernel/mainloop/operand_tile.cuh"
#include "kernel/pipeline.cuh"

namespace sluice {

template <KernelConfig config>
class TmaProducer {
 public:
  using Ring = Pipeline<config>;

  static SLUICE_DEVICE void prefetch(const MainloopParams& params) {
    arch::prefetch_tensor_map(params.p.map);
    arch::prefetch_tensor_map(params.q.map);
  }

  // One thread of the producing warp.
  static constexpr bool kAlone = true;

  // Loads all k-tiles of one work tile. first_p, first_q: the tile's first vectors.
  static SLUICE_DEVICE void load(const MainloopParams& params, const Ring& ring, typename Ring::Position& at, int first_p, int first_q,
                                 const WorkTile& tile) {
    const int batch_p = tile.group * params.p.batch_step, batch_q = tile.group * params.q.batch_step;
    SLUICE_NO_UNROLL
    for (int k_tile = tile.k_begin; k_tile < tile.k_end; ++k_tile) {
      ring.wait_empty(at);
      arch::barrier_arrive_expect_bytes(ring.full_barrier(at), Ring::kLayout.stage_bytes);
      load_slice<Operand::p>(params.p, ring.stage_p(at), ring.full_barrier(at), first_p, k_tile * config.tile_k, batch_p);
      load_slice<Operand::q>(params.q, ring.stage_q(at), ring.full_barrier(at), first_q, k_tile * config.tile_k, batch_q);
      at.advance();
    }
  }

 private:
  // This CTA's share of the operand tile, sent to all CTAs that need it.
  template <Operand operand>
  static SLUICE_DEVICE void load_slice(const OperandParams& params, std::byte* tile, arch::Barrier* barrier, int first_vector, int first_k,
                                       int batch) {
    using Tile = OperandTile<config, operand>;
    int slice = 0;
    if constexpr (Tile::kSharers > 1) slice = arch::cta_in_cluster();
    const int vector = first_vector + slice * Tile::kSliceVectors;
    SLUICE_UNROLL
    for (int slab = 0; slab < Tile::kSlabs; ++slab) {
      std::byte* destination = tile + slab * Tile::kSlabBytes + slice * Tile::kSliceBytes;
      const int k = first_k + slab * Tile::kRowElems;
      if constexpr (Tile::kMajor == arch::Major::k) {
        load_box<Tile::kSharers>(params, destination, {k, vector, batch}, barrier);
      } else {
        SLUICE_UNROLL
        for (int block = 0; block < Tile::kSliceVectors / Tile::kRowElems; ++block)
          load_box<Tile::kSharers>(params, destination + block * Tile::kBlockBytes, {vector + block * Tile::kRowElems, k, batch}, barrier);
      }
    }
  }

  template <int sharers>
  static SLUICE_DEVICE void load_box(const OperandParams& params, std::byte* destination, arch::TensorCoordinates at,
                                     arch::Barrier* barrier) {
    constexpr std::uint16_t kWholeCluster = (1u << sharers) - 1;
    if constexpr (sharers > 1)
      arch::tma_load_multicast(destination, params.map, at, barrier, kWholeCluster, params.policy);
    else
      arch::tma_load(destination, params.map, at, barrier, params.policy);
  }
};

}  // namespace sluice
