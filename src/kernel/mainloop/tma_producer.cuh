// Fills the ring through the tensor memory accelerator: one thread for each operand asks, the copy engine does the rest. Two threads,
// because asking takes one 300 to 400 cycles a stage, and tiles as small as 128 x 80 x 64 are multiplied in 320 (H200, 21 November 2026).
#pragma once

#include "core/groups.hpp"
#include "kernel/gemm_params.cuh"
#include "kernel/mainloop/clip_k.cuh"
#include "kernel/mainloop/operand_tile.cuh"
#include "kernel/mainloop/short_tile.cuh"
#include "kernel/pipeline.cuh"

namespace sluice {

template <KernelConfig config, Operand operand>
class TmaProducer {
 public:
  using Ring = Pipeline<config>;

  static constexpr bool kAlone = true;  // used by one thread of a warp

  SLUICE_DEVICE TmaProducer(const MainloopParams& params, const Ring& ring)
      : params_(operand == Operand::p ? params.p : params.q), ring_(ring) {}

  // Loads this operand's part of all k-tiles of a work tile. `first`: none before it had any. What is not constant waits for the
  // predecessor, as late as can be; what is goes on, when the ring is full, for some k-tiles as far as L2.
  SLUICE_DEVICE void load(typename Ring::Position& at, const WorkTile& tile, bool first) const {
    const int slice = Tile::slice();
    const Place place{Tile::first_vector(tile) + slice * Tile::kSliceVectors,
                      tile.group * params_.batch_step,
                      slice * Tile::kSliceVectors * kSwizzleBytes,
                      Tile::sharers(),
                      Boxes(params_, tile, slice),
                      kGroupsAlongK ? tile.first_k : 0,
                      kGroupsAlongK ? tile.end_k : 0};
    const int full_at = first && params_.constant ? tile.k_begin + Ring::kLayout.stages : tile.k_end;
    const int wait_at = first && !params_.constant ? tile.k_begin : tile.k_end;
    SLUICE_NO_UNROLL
    for (int k_tile = tile.k_begin; k_tile < tile.k_end; ++k_tile) {
      if (k_tile == full_at) prefetch(place, k_tile, tile.k_end);
      ring_.wait_empty(at);
      arch::barrier_arrive_expect_bytes(ring_.full_barrier(at), place.boxes.stage_bytes);
      if (k_tile == wait_at) arch::wait_for_predecessor();
      load_slice<false>(place, k_tile, operand == Operand::p ? ring_.stage_p(at) : ring_.stage_q(at), ring_.full_barrier(at));
      at.advance();
    }
  }

 private:
  using Tile = OperandTile<config, operand>;
  using Boxes = TileBoxes<config, operand>;
  static constexpr bool kGroupsAlongK = computes_groups_along_k(config);
  // While this kernel waits for its predecessor and then for what is not constant, memory need not rest: 128 KiB a CTA, 17 MB in all.
  static constexpr int kPrefetchedStages = 131072 / Ring::kLayout.stage_bytes;

  // This CTA's share of the operand's tile, which goes to all CTAs that need it.
  struct Place {
    int vector, batch;
    int offset_bytes;  // in a slab
    std::uint16_t sharers;
    Boxes boxes;
    int first_k, end_k;
  };

  SLUICE_DEVICE void prefetch(const Place& place, int k_tile, int k_end) const {
    const int last = k_tile + kPrefetchedStages < k_end ? k_tile + kPrefetchedStages : k_end;
    SLUICE_NO_UNROLL
    for (; k_tile < last; ++k_tile) load_slice<true>(place, k_tile, nullptr, nullptr);
  }

  template <bool prefetch>
  SLUICE_DEVICE void load_slice(const Place& place, int k_tile, std::byte* tile, arch::Barrier* barrier) const {
    if (Tile::kSlabs > 1 && Tile::kSharers == 1 && place.boxes.whole_tile)
      return load_box<prefetch>(place, *place.boxes.map, tile, {0, place.vector, k_tile * Tile::kSlabs}, barrier);
    SLUICE_UNROLL
    for (int slab = 0; slab < Tile::kSlabs; ++slab) {
      std::byte* destination = tile + slab * Tile::kSlabBytes + place.offset_bytes;
      const int k = place.first_k + k_tile * config.tile_k + slab * Tile::kRowElems;
      if constexpr (Boxes::kMayBeBlocks) {
        place.boxes.each_block(params_, [&](int row, const arch::TensorMap& map) {
          load_box<prefetch>(place, map, destination + row * kSwizzleBytes, {k, place.vector + row, place.batch}, barrier);
        });
      } else if constexpr (Tile::kMajor == arch::Major::k) {
        if (place.boxes.of_slice > 0) load_box<prefetch>(place, *place.boxes.map, destination, {k, place.vector, place.batch}, barrier);
      } else {
        SLUICE_UNROLL
        for (int vector = 0; vector < Tile::kSliceVectors; vector += Tile::kRowElems)
          load_box<prefetch>(place, *place.boxes.map, destination + vector / Tile::kRowElems * Tile::kBlockBytes,
                             box_of_k(place, place.vector + vector, k), barrier);
      }
    }
  }

  SLUICE_DEVICE arch::TensorCoordinates box_of_k(const Place& place, int vector, int k) const {
    if (kGroupsAlongK && params_.clips_k) return clip_k(vector, k, place.end_k, Tile::kRowElems);
    return {vector, k, place.batch};
  }

  template <bool prefetch>
  SLUICE_DEVICE void load_box(const Place& place, const arch::TensorMap& map, std::byte* destination, arch::TensorCoordinates at,
                              arch::Barrier* barrier) const {
    if constexpr (prefetch)
      arch::tma_prefetch(map, at);
    else if constexpr (Tile::kSharers > 1)
      arch::tma_load_multicast(destination, map, at, barrier, place.sharers, params_.policy);
    else
      arch::tma_load(destination, map, at, barrier, params_.policy);
  }

  const OperandParams& params_;
  const Ring& ring_;
};

}  // namespace sluice
