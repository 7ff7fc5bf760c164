// Split-K: every tile in the same number of pieces. Through the workspace all first pieces come before all second ones, so that what the
// second ones wait for is done, or nearly so, when they have multiplied.
#pragma once

#include <cstdint>

#include "sluice/schedule.hpp"

#include "core/host_device.hpp"
#include "scheduler/tile_order.hpp"

namespace sluice {

struct SplitKItems {
  static constexpr bool kHasEmptyItems = false;

  SLUICE_HOST_DEVICE static constexpr std::int32_t count(const SchedulerParams& p) { return cluster_tiles(p) * p.splits; }

  // The last piece of a tile waits for the items `cluster_tiles` before it, twice as many before it, and so on; in a cluster all wait for
  // one another, and run at once.
  SLUICE_HOST_DEVICE static constexpr TilePiece piece_at(const SchedulerParams& p, std::int32_t item) {
    const std::int32_t tiles = cluster_tiles(p);
    // Pieces that meet in a cluster are neighbours.
    const bool together = p.reduction == Reduction::cluster;
    const std::int32_t many = quotient(item, together ? p.splits : tiles);
    const std::int32_t split = together ? item - many * p.splits : many;
    const std::int32_t index = together ? many : item - many * tiles;
    if (p.splits == 1) return whole_tile(p, index);
    // As equal as can be: the first `longer` pieces have one k-tile more. A product of split and k_tiles might not fit in 32 bits.
    const std::int32_t length = p.k_tiles / p.splits;
    const std::int32_t longer = p.k_tiles - length * p.splits;
    const std::int32_t k_begin = split * length + (split < longer ? split : longer);
    const std::int32_t k_end = k_begin + length + (split < longer ? 1 : 0);
    return {.index = index, .k_begin = k_begin, .k_end = k_end, .split_tile = index, .peer = split, .peers = p.splits};
  }
};

}  // namespace sluice
