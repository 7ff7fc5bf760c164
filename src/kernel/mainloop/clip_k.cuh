// Groups along K end anywhere in a k-tile: what of a box lies behind belongs to the next group, and must count as zeros.
#pragma once

#include "arch/arch.cuh"

namespace sluice {

// From where a box of `depth` elements of K would begin to the coordinates at which the copy engine writes zeros for what is behind its
// group's end (the map is made for it: launch/bind_groups.hpp).
SLUICE_DEVICE arch::TensorCoordinates clip_k(int vector, int k, int end_k, int depth) {
  const int inside = end_k - k;
  const int clipped = inside <= 0 ? depth : inside < depth ? depth - inside : 0;
  return {vector, clipped, k - clipped + depth};
}

}  // namespace sluice
