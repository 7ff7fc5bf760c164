// Groups of rows end anywhere in a tile: what of a box lies behind must not be stored.
#pragma once

#include "kernel/gemm_params.cuh"

namespace sluice {

// From the row and the matrix of D in which a box of `rows` would lie to the coordinates at which the copy engine leaves out what is behind
// its group's end (the map is made for it: launch/bind_groups.hpp). False: all of it is.
SLUICE_DEVICE bool clip_rows(const EpilogueParams& params, int row_end, int rows, int& row, int& batch) {
  const int inside = row_end - row;
  if (inside <= 0) return false;
  const int clipped = inside < rows ? rows - inside : 0;
  batch = row + batch * params.batch_rows + rows - clipped;
  row = clipped;
  return true;
}

}  // namespace sluice
