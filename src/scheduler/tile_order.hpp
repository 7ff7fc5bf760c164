// Which tile has which number. Neighbouring numbers run at the same time, so the order decides what stays in L2.
#pragma once

#include <cstdint>

#include "sluice/schedule.hpp"

#include "core/host_device.hpp"

namespace sluice {

// a / b, b above 0: often a plain case, and a GPU divides in some 150 cycles. NOLINTNEXTLINE(clang-analyzer-core.DivideZero)
SLUICE_HOST_DEVICE constexpr std::int32_t quotient(std::int32_t a, std::int32_t b) { return a < b ? 0 : b == 1 ? a : a / b; }

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
SLUICE_HOST_DEVICE constexpr TilePiece whole_tile(const SchedulerParams& p, std::int32_t index) {
  return {.index = index, .k_end = p.k_tiles};
}
SLUICE_HOST_DEVICE constexpr TilePiece no_piece() { return {.peers = 0}; }

// The whole output tile with number `index` in [0, cluster_tiles), in units of CTA tiles: its first tile along M and along N.
// Groups follow one another. Inside a group, strips of `cohort` clusters are walked in the rasterization direction, every second
// strip backwards, so that a strip begins beside the tiles just finished.
SLUICE_HOST_DEVICE constexpr WorkTile tile_at(const SchedulerParams& p, std::int32_t index) {
  const std::int32_t per_group = cluster_tiles_per_group(p);
  const std::int32_t group = quotient(index, per_group);
  const std::int32_t within = index - group * per_group;

  const bool along_m = p.raster == Rasterization::along_m;
  const std::int32_t length = along_m ? clusters_m(p) : clusters_n(p);  // of a strip
  const std::int32_t across = along_m ? clusters_n(p) : clusters_m(p);

  const std::int32_t strip = quotient(within, p.cohort * length);
  const std::int32_t first = strip * p.cohort;
  const std::int32_t width = across - first < p.cohort ? across - first : p.cohort;  // the last strip may be narrower
  const std::int32_t in_strip = within - first * length;
  const std::int32_t step = quotient(in_strip, width);
  const std::int32_t along = strip % 2 == 0 ? step : length - 1 - step;
  const std::int32_t side = first + (in_strip - step * width);

  WorkTile tile;
  tile.tile_m = (along_m ? along : side) * p.cluster_m;
  tile.tile_n = (along_m ? side : along) * p.cluster_n;
  tile.group = group;
  tile.k_end = p.k_tiles;
  return tile;
}

SLUICE_HOST_DEVICE constexpr WorkTile place(const SchedulerParams& p, const TilePiece& piece) {
  const WorkTile at = tile_at(p, piece.index);
  return {at.tile_m, at.tile_n, at.group, piece.k_begin, piece.k_end, piece.split_tile, piece.peer, piece.peers};
}

}  // namespace sluice
