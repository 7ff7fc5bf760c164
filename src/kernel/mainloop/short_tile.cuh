// Rows of a tile that lie behind the end of a matrix or of a group are not stored. They need not be fetched, but for those of groups that
// share a box with others, and blocks of 64 (or, where rows are Q's vectors, steps of 16) need not be multiplied: the tensor cores and the
// copy engine are left to the others.
#pragma once

#include <type_traits>

#include "core/groups.hpp"
#include "kernel/epilogue/store_tile.cuh"
#include "kernel/mainloop/dequantising_consumer.cuh"
#include "kernel/mainloop/lookup_consumer.cuh"
#include "kernel/mainloop/operand_tile.cuh"
#include "kernel/mainloop/promoting_consumer.cuh"
#include "kernel/mainloop/wgmma_consumer.cuh"

namespace sluice {

// Of the blocks of so many rows from first_block on, `blocks` at most, those that have rows.
template <int block_rows>
SLUICE_DEVICE int blocks_with_rows(const WorkTile& tile, int first_block, int blocks) {
  const int rows = tile.row_end - tile.first_row - first_block * block_rows, there = (rows + block_rows - 1) / block_rows;
  return there < 0 ? 0 : there < blocks ? there : blocks;
}

template <KernelConfig config, int blocks>
using ConsumerOfCodes = std::conditional_t<is_fp8(config.type_a), LookupConsumer<config, blocks>, DequantisingConsumer<config, blocks>>;

// What multiplies `blocks` blocks of P's rows.
template <KernelConfig config, int blocks = Accumulators<config>::kBlocks>
using Consumer =
    std::conditional_t<promotes(config), PromotingConsumer<config, blocks>,
                       std::conditional_t<dequantises(config), ConsumerOfCodes<config, blocks>, WgmmaConsumer<config, blocks>>>;

// How much of its rows of a tile a consumer warpgroup has to multiply.
template <KernelConfig config>
class ShortTile {
 public:
  SLUICE_DEVICE ShortTile(const WorkTile& tile, int warpgroup)
      : first_block_(first_block(config, warpgroup)),
        blocks_(blocks_of(tile, first_block_)),
        barrier_id_(TileStore<config>::kFirstBarrier + warpgroup) {}

  static SLUICE_DEVICE void begin(int) {}

  // As WgmmaConsumer::multiply(). Whether this warpgroup is to go on with the sums.
  template <class Ring, class Issued>
  SLUICE_DEVICE bool multiply(const MainloopParams& params, const Ring& ring, Accumulators<config>& sums, typename Ring::Position& at,
                              int k_tiles, Issued&& issued) const {
    if constexpr (chooses_width(config))
      multiply_columns<kWidthStep>(params, ring, sums, at, k_tiles, issued);
    else if (blocks_ == kAll)
      Consumer<config>(params, ring, first_block_).multiply(sums, at, k_tiles, issued);
    else
      multiply_less(params, ring, sums, at, k_tiles, issued);
    return true;
  }

 private:
  // Whether blocks of the tile's rows can be left out: swapped, rows are the vectors of Q, all of which one wgmma takes.
  static constexpr bool kHasBlocks = !swapped(config);
  static constexpr int kAll = Accumulators<config>::kBlocks;
  static_assert(kAll <= 2, "of three blocks there might be two");

  static SLUICE_DEVICE int blocks_of(const WorkTile& tile, int first_block) {
    if constexpr (chooses_width(config)) return blocks_with_rows<kWidthStep>(tile, 0, kWidestQ / kWidthStep);
    return kHasBlocks ? blocks_with_rows<kWgmmaRows>(tile, first_block, kAll) : kAll;
  }

  // The widths from `width` on.
  template <int width, class Ring, class Issued>
  SLUICE_DEVICE void multiply_columns(const MainloopParams& params, const Ring& ring, Accumulators<config>& sums,
                                      typename Ring::Position& at, int k_tiles, Issued&& issued) const {
    if constexpr (width < kWidestQ)
      if (blocks_ > width / kWidthStep) return multiply_columns<width + kWidthStep>(params, ring, sums, at, k_tiles, issued);
    WgmmaConsumer<config, 1, width>(params, ring, first_block_).multiply(sums, at, k_tiles, issued);
  }

  template <class Ring, class Issued>
  SLUICE_DEVICE void multiply_less(const MainloopParams& params, const Ring& ring, Accumulators<config>& sums, typename Ring::Position& at,
                                   int k_tiles, Issued&& issued) const {
    if constexpr (kHasBlocks && kAll > 1)
      if (blocks_ > 0) return Consumer<config, 1>(params, ring, first_block_).multiply(sums, at, k_tiles, issued);
    sums.clear();
    pass_over(ring, at, k_tiles);
    issued();
  }

  // Takes part in the ring and no more. Whoever came late would miss the stage's next round: a lane, or a warp whose warpgroup another lets
  // go for. Elsewhere wgmma brings them together.
  template <class Ring>
  SLUICE_DEVICE void pass_over(const Ring& ring, typename Ring::Position& at, int k_tiles) const {
    SLUICE_NO_UNROLL
    for (; k_tiles > 0; --k_tiles) {
      ring.wait_full(at);
      Ring::kEachWarpReleases ? arch::sync_warp() : arch::named_barrier_sync(barrier_id_, kWarpgroupThreads);
      ring.release(at);
      at.advance();
    }
  }

  int first_block_, blocks_, barrier_id_;
};

// What of an operand's tile a producer asks for, and in which boxes: a group's rows come by 64 (the last of them by 16, in FP8) or 32, and
// the last tile of a matrix has what there is. What does not come was in the stage before, or is zeros (ScaleProducer); it is multiplied
// for rows and columns that nobody stores.
template <KernelConfig config, Operand operand>
struct TileBoxes {
  using Tile = OperandTile<config, operand>;
  static constexpr bool kMayBeBlocks = Tile::kIsA && fetches_blocks_of_rows(config);
  static constexpr int kBlockRows = kMayBeBlocks ? rows_of_block(config) : kWgmmaRows;
  static constexpr int kShortRows = kMayBeBlocks ? rows_of_short_box(config) : 0;

  int stage_bytes;      // that all CTAs who share the tile bring together
  int of_slice;         // in a slab, by this CTA
  int short_boxes = 0;  // behind these
  bool whole_tile;      // in one box
  const arch::TensorMap* map;
  SLUICE_DEVICE TileBoxes(const OperandParams& params, const WorkTile& tile, int slice)
      : stage_bytes(params.stage_bytes), of_slice(1), whole_tile(params.whole_tiles), map(&params.map) {
    if (kMayBeBlocks && params.by_blocks) {
      constexpr int kRows = kShortRows > 0 ? kShortRows : kBlockRows, kOfSlice = Tile::kSliceVectors / kRows;
      stage_bytes = blocks_with_rows<kRows>(tile, 0, Tile::kVectors / kRows) * kRows * kSwizzleBytes * Tile::kSlabs;
      const int boxes = blocks_with_rows<kRows>(tile, slice * kOfSlice, kOfSlice);
      of_slice = boxes / (kBlockRows / kRows);
      short_boxes = boxes % (kBlockRows / kRows);
    } else if (Tile::kMajor == arch::Major::k && params.ends_early) {
      const int behind = params.vectors - Tile::first_vector(tile), there = behind > 0 ? behind : 0;
      if (there >= Tile::kVectors) return;
      const int own = there - slice * Tile::kSliceVectors;
      stage_bytes = there * kSwizzleBytes * Tile::kSlabs;
      of_slice = own > 0 ? 1 : 0;
      if (own >= Tile::kSliceVectors) return;
      whole_tile = false;
      map = &params.map_last;
    }
  }

  // Of the blocks of rows by which the tile comes: `load` is called with each one's first row in the slice, and its box.
  template <class Load>
  SLUICE_DEVICE void each_block(const OperandParams& params, Load&& load) const {
    int row = 0;
    SLUICE_NO_UNROLL
    for (; row < of_slice * kBlockRows; row += kBlockRows) load(row, *map);
    if constexpr (kShortRows > 0) {
      const int end = row + short_boxes * kShortRows;
      SLUICE_NO_UNROLL
      for (; row < end; row += kShortRows) load(row, params.map_last);
    }
  }

  static SLUICE_DEVICE void prefetch_maps(const OperandParams& params) {
    arch::prefetch_tensor_map(params.map);
    if (params.ends_early || kShortRows > 0) arch::prefetch_tensor_map(params.map_last);
  }
};

}  // namespace sluice
