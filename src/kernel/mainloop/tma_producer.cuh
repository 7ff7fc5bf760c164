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

  // Loads all k-tiles of one work tile; of the first `ahead`, load_ahead() has done its part.
  static SLUICE_DEVICE void load(const MainloopParams& params, const Ring& ring, typename Ring::Position& at, const WorkTile& tile,
                                 int ahead) {
    SLUICE_NO_UNROLL
    for (int k_tile = tile.k_begin; k_tile < tile.k_end; ++k_tile, --ahead) {
      if (ahead <= 0) begin_stage(params, ring, at);
      if (ahead <= 0 || !params.p.constant) load_slice<Operand::p>(params.p, ring, at, tile, k_tile);
      if (ahead <= 0 || !params.q.constant) load_slice<Operand::q>(params.q, ring, at, tile, k_tile);
      at.advance();
    }
  }

  // Before the predecessor has finished: what is constant of the CTA's first k-tiles, as many as the ring holds, and a few more as far as
  // L2. Returns how many the ring holds.
  static SLUICE_DEVICE int load_ahead(const MainloopParams& params, const Ring& ring, const WorkTile& tile) {
    if (!params.p.constant && !params.q.constant) return 0;
    const int k_tiles = tile.k_end - tile.k_begin, ahead = k_tiles < Ring::kLayout.stages ? k_tiles : Ring::kLayout.stages;
    typename Ring::Position at;
    SLUICE_NO_UNROLL
    for (int k_tile = tile.k_begin; k_tile < tile.k_begin + ahead; ++k_tile) {
      begin_stage(params, ring, at);
      if (params.p.constant) load_slice<Operand::p>(params.p, ring, at, tile, k_tile);
      if (params.q.constant) load_slice<Operand::q>(params.q, ring, at, tile, k_tile);
      at.advance();
    }
    const int last = tile.k_begin + ahead + kPrefetchedStages < tile.k_end ? tile.k_begin + ahead + kPrefetchedStages : tile.k_end;
    SLUICE_NO_UNROLL
    for (int k_tile = tile.k_begin + ahead; k_tile < last; ++k_tile) {
      if (params.p.constant) load_slice<Operand::p, kPrefetch>(params.p, ring, at, tile, k_tile);
      if (params.q.constant) load_slice<Operand::q, kPrefetch>(params.q, ring, at, tile, k_tile);
    }
    return ahead;
  }

 private:
  static constexpr bool kPrefetch = true;
  // While this kernel waits for its predecessor and then for what is not constant, memory need not rest: 128 KiB a CTA, 17 MB in all.
  static constexpr int kPrefetchedStages = 131072 / Ring::kLayout.stage_bytes;

  static SLUICE_DEVICE void begin_stage(const MainloopParams& params, const Ring& ring, const typename Ring::Position& at) {
    ring.wait_empty(at);
    arch::barrier_arrive_expect_bytes(ring.full_barrier(at), params.stage_bytes);
  }

  // This CTA's share of the operand tile, sent to all CTAs that need it.
  template <Operand operand, bool prefetch = false>
  static SLUICE_DEVICE void load_slice(const OperandParams& params, const Ring& ring, const typename Ring::Position& at,
                                       const WorkTile& work, int k_tile) {
    using Tile = OperandTile<config, operand>;
    std::byte* const tile = operand == Operand::p ? ring.stage_p(at) : ring.stage_q(at);
    arch::Barrier* const barrier = ring.full_barrier(at);
    const int first_k = k_tile * config.tile_k, batch = work.group * params.batch_step;
    int slice = 0;
    if constexpr (Tile::kSharers > 1) slice = arch::cta_in_cluster();
    const int vector = Tile::first_vector(work) + slice * Tile::kSliceVectors;
    if constexpr (Tile::kSlabs > 1 && Tile::kSharers == 1) {
      if (params.whole_tiles) return load_box<1, prefetch>(params, tile, {0, vector, k_tile * Tile::kSlabs}, barrier);
    }
    SLUICE_UNROLL
    for (int slab = 0; slab < Tile::kSlabs; ++slab) {
      std::byte* destination = tile + slab * Tile::kSlabBytes + slice * Tile::kSliceBytes;
      const int k = first_k + slab * Tile::kRowElems;
      if constexpr (Tile::kMajor == arch::Major::k) {
        load_box<Tile::kSharers, prefetch>(params, destination, {k, vector, batch}, barrier);
      } else {
        SLUICE_UNROLL
        for (int block = 0; block < Tile::kSliceVectors / Tile::kRowElems; ++block)
          load_box<Tile::kSharers, prefetch>(params, destination + block * Tile::kBlockBytes, {vector + block * Tile::kRowElems, k, batch},
                                             barrier);
      }
    }
  }

  template <int sharers, bool prefetch>
  static SLUICE_DEVICE void load_box(const OperandParams& params, std::byte* destination, arch::TensorCoordinates at,
                                     arch::Barrier* barrier) {
    constexpr std::uint16_t kWholeCluster = (1u << sharers) - 1;
    if constexpr (prefetch)
      arch::tma_prefetch(params.map, at);
    else if constexpr (sharers > 1)
      arch::tma_load_multicast(destination, params.map, at, barrier, kWholeCluster, params.policy);
    else
      arch::tma_load(destination, params.map, at, barrier, params.policy);
  }
};

}  // namespace sluice
