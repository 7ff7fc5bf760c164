// In which boxes the copy engine fetches an operand's tiles: decided here for the launch, which describes them, and for the cost model.
#pragma once

#include <cstdint>

#include "core/kernel_layout.hpp"

namespace sluice {

struct LoadBoxes {
  bool whole_tiles = false;  // one box for all slabs of a stage: the map's third direction is K, in slabs, and not the batch
  int vectors = 0;           // of a box
  int slabs = 1;             // in a stage
};

// `vectors`: of the operand, rows of A or columns of B. Costs measured on an H200, 21 November 2026:
//   a box takes the copy engine about 100 cycles, so that one for all slabs of a stage is best, where a third direction is free and K ends
//   with a slab; a row outside the matrix takes 4 cycles (64 x 57344 x 8192 tiles at M = 1: 355 us instead of 232), so a box is no wider
//   than the matrix; but a box of several slabs must have all rows of the tile, since slabs lie that far apart.
constexpr LoadBoxes load_boxes(bool k_major, std::int64_t vectors, int tile_vectors, int sharers, int tile_k, int row_elems, std::int64_t k,
                               std::int64_t batch, bool by_blocks) {
  constexpr int kMostRowsOutside = 16;
  if (!k_major) return {.vectors = row_elems};
  if (by_blocks) return {.vectors = kWgmmaRows, .slabs = tile_k / row_elems};
  LoadBoxes boxes{.vectors = tile_vectors / sharers, .slabs = tile_k / row_elems};
  if (sharers > 1) return boxes;
  boxes.whole_tiles = boxes.slabs > 1 && batch == 1 && k % row_elems == 0 && tile_vectors - vectors <= kMostRowsOutside;
  if (!boxes.whole_tiles && vectors < boxes.vectors) boxes.vectors = static_cast<int>(vectors);
  return boxes;
}

}  // namespace sluice
