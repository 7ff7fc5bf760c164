// In which boxes the copy engine fetches an operand's tiles: decided here for the launch, which describes them, and for the cost model.
#pragma once

#include <cstdint>

#include "core/kernel_layout.hpp"

namespace sluice {

// An operand as producers fetch it: its rows of A or columns of B are `vectors`.
struct FetchedOperand {
  bool k_major = true;
  std::int64_t vectors = 0;
  std::int64_t pitch_bytes = 0;  // from one to the next, where they lie along K
  int tile_vectors = 0;
  int sharers = 1;         // CTAs of a cluster that fetch a slice of a tile each
  bool of_groups = false;  // only the device knows where vectors end,
  bool by_blocks = false;  // and boxes of 64 behind that are left out
};

struct LoadBoxes {
  bool whole_tiles = false;  // one box for all slabs of a stage: the map's third direction is K, in slabs, and not the batch
  int vectors = 0;           // of a box
  int slabs = 1;             // in a stage
  bool ends_early = false;   // the last tile's boxes end with the operand: some CTA of those that share it fetches less, or nothing,
  int last = 0;              // and one a box of so many vectors, unless this is 0
};

// Costs measured on an H200, 21 November 2026:
//   a box takes the copy engine about 100 cycles, so that one for all slabs of a stage is best, where a third direction is free and K ends
//   with a slab; a row outside the matrix takes 4 cycles (64 x 57344 x 8192 tiles at M = 1: 355 us instead of 232), so the box with which
//   the last tile ends is no wider than what there is; but a box of several slabs must have all rows of the tile, since slabs lie that far
//   apart.
constexpr LoadBoxes load_boxes(const FetchedOperand& operand, int tile_k, int row_elems, std::int64_t k, std::int64_t batch) {
  constexpr int kMostRowsOutside = 16;
  if (!operand.k_major) return {.vectors = row_elems};
  if (operand.by_blocks) return {.vectors = kWgmmaRows, .slabs = tile_k / row_elems};
  LoadBoxes boxes{.vectors = operand.tile_vectors / operand.sharers, .slabs = tile_k / row_elems};
  if (operand.sharers == 1) {
    const bool nearly_whole = operand.tile_vectors - operand.vectors <= kMostRowsOutside;
    boxes.whole_tiles = boxes.slabs > 1 && batch == 1 && k % row_elems == 0 && nearly_whole;
    if (!boxes.whole_tiles && operand.vectors < boxes.vectors) boxes.vectors = static_cast<int>(operand.vectors);
  }
  if (operand.of_groups || boxes.vectors == 0) return boxes;
  const std::int64_t in_last = operand.vectors % operand.tile_vectors;
  const bool as_others = in_last == 0 || operand.vectors == boxes.vectors;
  const bool hardly_shorter = boxes.whole_tiles && operand.tile_vectors - in_last <= kMostRowsOutside;
  boxes.ends_early = !as_others && !hardly_shorter;
  if (boxes.ends_early) boxes.last = static_cast<int>(operand.vectors % boxes.vectors);
  return boxes;
}

}  // namespace sluice
