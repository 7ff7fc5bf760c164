// Which parts of a tile those who finish it together store.
#pragma once

#include <cstdint>

#include "core/host_device.hpp"

namespace sluice {

// Packets of four accumulators a thread, 8 columns of Q each, counted through a warpgroup's blocks. All of them, unless other CTAs finish
// the rest of the tile (Reduction::cluster).
struct TilePart {
  int begin = 0;
  int end = 1 << 20;
  bool whole_chunks = true;  // of the epilogue
};

// All parts of a tile, worked out before the launch (core/tile_parts.hpp): a GPU divides in some 150 cycles.
inline constexpr int kMostParts = 16;
struct TileParts {
  std::int32_t count = 1;
  std::uint8_t begin[kMostParts + 1] = {};  // of each part, and the end of the last
  bool whole_chunks = true;

  SLUICE_HOST_DEVICE constexpr TilePart operator[](int part) const { return {begin[part], begin[part + 1], whole_chunks}; }
};

}  // namespace sluice
