// Schedules of grouped problems (Grouping): the tiles of all groups, one group's behind the other's, are shared out as those of one product
// are. How many there are is known when the sizes are: until then a plan has the most that there can be.
#pragma once

#include <cstdint>

#include "sluice/schedule.hpp"

#include "core/groups.hpp"
#include "core/host_device.hpp"
#include "scheduler/single_items.hpp"

namespace sluice {

// How many tiles stream_k and hybrid cut, of `tiles` in all. Hybrid: the wave that is not full, and a full one with it. Ranges are then
// between one and two tiles long, so that each cluster has two cut tiles at most, and what is left is whole waves.
SLUICE_HOST_DEVICE constexpr std::int32_t tiles_to_cut(SchedulerKind kind, std::int32_t tiles, std::int32_t ranges) {
  if (kind == SchedulerKind::stream_k || tiles < ranges) return tiles;
  const std::int32_t last_wave = tiles - tiles / ranges * ranges;
  return last_wave == 0 ? 0 : last_wave + ranges;
}

// Of one group: rows of cluster tiles, cluster_rows of them, behind those of the groups before it.
struct GroupTiles {
  std::int32_t group = 0;
  std::int32_t first_cluster_row = 0;
  std::int32_t cluster_rows = 0;
  GroupRange rows;
};
SLUICE_HOST_DEVICE constexpr std::int32_t cluster_rows_of(const GroupRange& rows, std::int32_t rows_per_cluster) {
  return (rows.count + rows_per_cluster - 1) / rows_per_cluster;
}

// A plan's schedule for groups that have so many rows of cluster tiles together. Sizes that are none (ragged ones that do not ascend) may
// come to more than the plan has room for in the workspace: what is beyond is left out.
SLUICE_HOST_DEVICE constexpr SchedulerParams with_cluster_rows(SchedulerParams p, std::int32_t cluster_rows) {
  if (cluster_rows * p.cluster_m < p.tiles_m) p.tiles_m = cluster_rows * p.cluster_m;
  const bool cuts = p.kind == SchedulerKind::stream_k || p.kind == SchedulerKind::hybrid;
  if (cuts && p.k_tiles > 0) p.stream_k_tiles = tiles_to_cut(p.kind, cluster_tiles(p), p.stream_k_ranges);
  return p;
}

// To which row of cluster tiles a piece belongs, and where it lies once its group is known.
SLUICE_HOST_DEVICE constexpr std::int32_t cluster_row_of(const SchedulerParams& p, const TilePiece& piece) {
  return quotient(piece.index, clusters_n(p));
}
SLUICE_HOST_DEVICE constexpr WorkTile place_in_group(SchedulerParams p, TilePiece piece, const GroupTiles& group) {
  piece.index -= group.first_cluster_row * clusters_n(p);
  p.tiles_m = group.cluster_rows * p.cluster_m;
  WorkTile tile = TileOrder<PlainDivisor>(p).place(piece);
  tile.group = group.group;
  tile.first_row = group.rows.first;
  tile.row_end = group.rows.first + group.rows.count;
  return tile;
}

// To a whole tile of a batch that stands for groups along K what its group has of K, in the schedule of all that there is.
SLUICE_HOST_DEVICE constexpr void give_k(const SchedulerParams& p, std::int32_t tile_k, const GroupRange& k, WorkTile& tile) {
  tile.first_k = k.first;
  tile.end_k = k.first + k.count;
  tile.k_end = p.k_tiles == 0 ? 0 : (k.count + tile_k - 1) / tile_k;
}

}  // namespace sluice
