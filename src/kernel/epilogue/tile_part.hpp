// Which part of a tile a CTA stores.
#pragma once

namespace sluice {

// Packets of four accumulators a thread, 8 columns of Q each, counted through a warpgroup's blocks. All of them, unless other CTAs finish
// the rest of the tile (Reduction::cluster).
struct TilePart {
  int begin = 0;
  int end = 1 << 20;
  bool whole_chunks = true;  // of the epilogue
};

}  // namespace sluice
