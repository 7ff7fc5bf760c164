// Fills the ring with packed weights of 4 bits: a run of bytes for each slab, wherever its format lets it end, at places that are the same
// for all formats.
#pragma once

#include "core/w4_layout.hpp"
#include "kernel/gemm_params.cuh"
#include "kernel/pipeline.cuh"

namespace sluice {

template <KernelConfig config>
class W4Producer {
 public:
  using Ring = Pipeline<config>;

  static constexpr bool kAlone = true;  // used by one thread of a warp

  SLUICE_DEVICE W4Producer(const MainloopParams& params, const Ring& ring) : params_(params), ring_(ring) {}

  // As TmaProducer::load().
  SLUICE_DEVICE void load(typename Ring::Position& at, const WorkTile& tile, bool first) const {
    const auto* const matrix = static_cast<const std::byte*>(params_.p.data) + tile.group * params_.p.batch_stride_elems;
    const int full_at = first && params_.p.constant ? tile.k_begin + Ring::kLayout.stages : tile.k_end;
    if (first && !params_.p.constant) arch::wait_for_predecessor();
    SLUICE_NO_UNROLL
    for (int k_tile = tile.k_begin; k_tile < tile.k_end; ++k_tile) {
      if (k_tile == full_at) prefetch(matrix, tile, k_tile);
      ring_.wait_empty(at);
      arch::barrier_arrive_expect_bytes(ring_.full_barrier(at), params_.p.stage_bytes);
      arch::SharedAddress to = arch::shared_address(ring_.stage_p(at));
      SLUICE_UNROLL
      for (int block = 0; block < kBlocks; ++block) {
        const std::byte* const from = matrix + run_offset(tile, block, k_tile);
        SLUICE_UNROLL
        for (int slab = 0; slab < kSlabs; ++slab, to += packed_slab_stride(config.tile_k)) {
          if constexpr (halves_slabs(config.tile_k))
            load_half(to, from, k_tile % 2, at);
          else
            load(to, from + slab * params_.w4.slab_bytes, params_.w4.slab_bytes, at);
        }
      }
      at.advance();
    }
  }

 private:
  static constexpr int kBlocks = tile_p(config) / kW4BlockColumns, kSlabs = slabs_of_block(config.tile_k);
  static constexpr int kPrefetchedStages = 131072 / operand_bytes_p(config);  // as TmaProducer has them
  static_assert(swapped(config) && sharers_p(config) == 1, "weights are P, and no CTA shares its own");
  static_assert(kW4PaddedElems % config.tile_k == 0, "the slabs of every tile are all there");

  // Blocks of a tile, or whole tiles of a cluster, that lie behind the matrix take its last one, for nothing.
  SLUICE_DEVICE std::int64_t run_offset(const WorkTile& tile, int block, int k_tile) const {
    const int wanted = tile.tile_n * kBlocks + block, last = params_.w4.blocks - 1;
    const int slab = k_tile * config.tile_k / kW4SlabElems;
    return (static_cast<std::int64_t>(wanted < last ? wanted : last) * params_.w4.slabs + slab) * params_.w4.slab_bytes;
  }

  SLUICE_DEVICE void load(arch::SharedAddress to, const std::byte* from, int bytes, const typename Ring::Position& at) const {
    arch::bulk_load(to, from, bytes, ring_.full_barrier(at), params_.p.policy);
  }

  // A slab's first or second half: its chunk, then the scales and zero points of its groups.
  SLUICE_DEVICE void load_half(arch::SharedAddress to, const std::byte* slab, int half, const typename Ring::Position& at) const {
    const W4Params& w4 = params_.w4;
    const int groups = w4_groups_of_half(kW4LargestGroupsPerSlab >> w4.group_shift), first = 2 * half >> w4.group_shift;
    load(to, slab + half * kW4ChunkBytes, kW4ChunkBytes, at);
    load(to + kW4HalfScaleOffset, slab + kW4CodeBytes + first * kW4ScaleBytes, groups * kW4ScaleBytes, at);
    if (w4.zero_offset > 0) load(to + kW4HalfZeroOffset, slab + w4.zero_offset + first * kW4ZeroBytes, groups * kW4ZeroBytes, at);
  }

  SLUICE_DEVICE void prefetch(const std::byte* matrix, const WorkTile& tile, int k_tile) const {
    const int last = k_tile + kPrefetchedStages < tile.k_end ? k_tile + kPrefetchedStages : tile.k_end;
    const int slabs = ((last - k_tile) * config.tile_k + kW4SlabElems - 1) / kW4SlabElems;
    SLUICE_UNROLL
    for (int block = 0; block < kBlocks; ++block)
      arch::bulk_prefetch(matrix + run_offset(tile, block, k_tile), slabs * params_.w4.slab_bytes);
  }

  const MainloopParams& params_;
  const Ring& ring_;
};

}  // namespace sluice
