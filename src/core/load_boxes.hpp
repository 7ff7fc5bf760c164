// In which boxes the copy engine fetches an operand's tiles: decided here for the launch, which describes them, and for the cost model.
#pragma once

#include <cstdint>

#include "core/groups.hpp"

namespace sluice {

// Rows of A or columns of B, as producers fetch them.
struct FetchedOperand {
  bool k_major = true;
  std::int64_t vectors = 0, pitch_bytes = 0;  // how many, and from one to the next
  int tile_vectors = 0, sharers = 1;          // CTAs that fetch a slice each
  int block_rows = 0, short_rows = 0;         // of boxes left out behind a group, and of those for its last rows; or 0
  bool of_groups = false;                     // only the device knows where they end
};
constexpr FetchedOperand fetched_a(const GemmProblem& p, const KernelConfig& c) {
  return {k_major_a(c), p.m, p.lda * size_bytes(p.type_a), c.tile_m, c.cluster_n, rows_of_block(p, c), rows_of_short_box(p, c),
          is_grouped(p)};
}
constexpr FetchedOperand fetched_b(const GemmProblem& p, const KernelConfig& c) {
  return {k_major_b(c), p.n, p.ldb * size_bytes(p.type_b), c.tile_n, c.cluster_m};
}
struct LoadBoxes {
  bool whole_tiles = false;    // one box for all slabs of a stage: the map's third direction is K, in slabs, and not the batch
  int vectors = 0, slabs = 1;  // of a box, in a stage
  // The last tile's boxes end with the operand: some CTA of those that share it fetches less, in a box of `last` if not 0, or nothing.
  bool ends_early = false;
  int last = 0;  // where blocks are left out behind a group: of a box for its last rows
};

// Costs measured on an H200, 21 November 2026: a box takes the copy engine about 100 cycles, so that one for all slabs of a stage is best,
// where a third direction is free and K ends with a slab; a row outside the matrix takes 4 (64 x 57344 x 8192 tiles at M = 1: 355 us
// instead of 232). But a box of several slabs must have all rows of the tile, since slabs lie that far apart.
constexpr LoadBoxes load_boxes(const FetchedOperand& operand, int tile_k, int row_elems, std::int64_t k, std::int64_t batch) {
  constexpr int kMostRowsOutside = 16;
  if (!operand.k_major) return {.vectors = row_elems};
  if (operand.block_rows > 0) return {.vectors = operand.block_rows, .slabs = tile_k / row_elems, .last = operand.short_rows};
  LoadBoxes boxes{.vectors = operand.tile_vectors / operand.sharers, .slabs = tile_k / row_elems};
  if (operand.sharers == 1) {
    boxes.whole_tiles = boxes.slabs > 1 && batch == 1 && k % row_elems == 0 && operand.tile_vectors - operand.vectors <= kMostRowsOutside;
    if (!boxes.whole_tiles && operand.vectors < boxes.vectors) boxes.vectors = static_cast<int>(operand.vectors);
  }
  if (operand.of_groups || boxes.vectors == 0) return boxes;
  const std::int64_t in_last = operand.vectors % operand.tile_vectors, outside = in_last == 0 ? 0 : operand.tile_vectors - in_last;
  boxes.ends_early = operand.vectors != boxes.vectors && outside > (boxes.whole_tiles ? kMostRowsOutside : 0);
  if (boxes.ends_early) boxes.last = static_cast<int>(operand.vectors % boxes.vectors);
  return boxes;
}

}  // namespace sluice
