// Which tile has which number. Neighbouring numbers run at the same time, so the order decides what stays in L2.
#pragma once

#include <cstdint>

#include "sluice/schedule.hpp"

#include "core/host_device.hpp"
#include "scheduler/divisor.hpp"

namespace sluice {

SLUICE_HOST_DEVICE constexpr std::int32_t clusters_m(const SchedulerParams& p) { return quotient(p.tiles_m, p.cluster_m); }
SLUICE_HOST_DEVICE constexpr std::int32_t clusters_n(const SchedulerParams& p) { return quotient(p.tiles_n, p.cluster_n); }

// Cluster tiles of one group, and of all.
SLUICE_HOST_DEVICE constexpr std::int32_t cluster_tiles_per_group(const SchedulerParams& p) { return clusters_m(p) * clusters_n(p); }
SLUICE_HOST_DEVICE constexpr std::int32_t cluster_tiles(const SchedulerParams& p) { return cluster_tiles_per_group(p) * p.groups; }

// What a list says of an item: the number of a tile, and which of its k-tiles. Where the tile lies is worked out last, in one place,
// because that code is large and stands in every kernel.
struct TilePiece {
  std::int32_t index = 0, k_begin = 0, k_end = 0;
  std::int32_t split_tile = -1, peer = 0, peers = 1;  // as in WorkTile
};

// Where tiles lie. What does not depend on the tile is worked out once: on a GPU the first tile is all that a launch waits for.
template <class Divisor>
class TileOrder {
 public:
  TileOrder() = default;
  SLUICE_HOST_DEVICE constexpr explicit TileOrder(const SchedulerParams& p)
      : along_m_(p.raster == Rasterization::along_m),
        cluster_m_(p.cluster_m),
        cluster_n_(p.cluster_n),
        cohort_(p.cohort),
        length_(along_m_ ? clusters_m(p) : clusters_n(p)),
        across_(along_m_ ? clusters_n(p) : clusters_m(p)),
        by_group_(length_ * across_),
        by_strip_(p.cohort * length_),
        by_width_(p.cohort),
        by_last_width_(across_ - quotient(across_ - 1, p.cohort) * p.cohort) {}

  // The whole output tile with number `index` in [0, cluster_tiles), in units of CTA tiles: its first tile along M and along N.
  // Groups follow one another. Inside a group, strips of `cohort` clusters are walked in the rasterization direction, every second
  // strip backwards, so that a strip begins beside the tiles just finished. The last strip may be narrower.
  SLUICE_HOST_DEVICE constexpr WorkTile tile_at(std::int32_t index) const {
    WorkTile tile;
    tile.group = by_group_.quotient(index);
    const std::int32_t within = index - tile.group * length_ * across_;
    const std::int32_t strip = by_strip_.quotient(within), first = strip * cohort_;
    const std::int32_t in_strip = within - first * length_;
    const bool narrower = across_ - first < cohort_;
    const std::int32_t step = narrower ? by_last_width_.quotient(in_strip) : by_width_.quotient(in_strip);
    const std::int32_t along = strip % 2 == 0 ? step : length_ - 1 - step;
    const std::int32_t side = first + (in_strip - step * (narrower ? across_ - first : cohort_));
    tile.tile_m = (along_m_ ? along : side) * cluster_m_;
    tile.tile_n = (along_m_ ? side : along) * cluster_n_;
    return tile;
  }

  SLUICE_HOST_DEVICE constexpr WorkTile place(const TilePiece& piece) const {
    const WorkTile at = tile_at(piece.index);
    return {at.tile_m, at.tile_n, at.group, piece.k_begin, piece.k_end, piece.split_tile, piece.peer, piece.peers};
  }

 private:
  bool along_m_ = false;
  std::int32_t cluster_m_ = 1, cluster_n_ = 1, cohort_ = 1;
  std::int32_t length_ = 0, across_ = 0;  // of a strip, and of all of them: clusters
  Divisor by_group_, by_strip_, by_width_, by_last_width_;
};

}  // namespace sluice
