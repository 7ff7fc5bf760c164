// Schedules of general groups (Grouping::general): whole tiles, those of one group behind those of the one before. Each group has as many
// along M, N and K as its sizes make.
#pragma once

#include <cstdint>

#include "sluice/schedule.hpp"

#include "core/host_device.hpp"
#include "scheduler/plain_divisor.hpp"
#include "scheduler/tile_order.hpp"

namespace sluice {

// A group's sizes, within the problem's, and how many cluster tiles they make. Read in one access.
struct alignas(16) GroupSizes {
  std::int32_t m = 0;
  std::int32_t n = 0;
  std::int32_t k = 0;
  std::int32_t cluster_tiles = 0;

  bool operator==(const GroupSizes&) const = default;
};

// Of a CTA.
struct TileSizes {
  std::int32_t m, n, k;
};

// The schedule of one group, in that of a plan.
SLUICE_HOST_DEVICE constexpr SchedulerParams schedule_of_group(SchedulerParams s, const TileSizes& tile, const GroupSizes& group) {
  const auto tiles = [](std::int32_t extent, std::int32_t tile_elems, std::int32_t cluster) {
    return (extent + tile_elems * cluster - 1) / (tile_elems * cluster) * cluster;
  };
  s.tiles_m = tiles(group.m, tile.m, s.cluster_m);
  s.tiles_n = tiles(group.n, tile.n, s.cluster_n);
  s.k_tiles = tiles(group.k, tile.k, 1);
  s.groups = 1;
  return s;
}

SLUICE_HOST_DEVICE constexpr GroupSizes with_tiles(const SchedulerParams& s, const TileSizes& tile, GroupSizes group) {
  group.cluster_tiles = cluster_tiles(schedule_of_group(s, tile, group));
  return group;
}

// Tile number `index` of a group, which has so many.
SLUICE_HOST_DEVICE constexpr WorkTile tile_of_group(const SchedulerParams& s, const TileSizes& tile_sizes, std::int32_t number,
                                                    const GroupSizes& group, std::int32_t index) {
  const SchedulerParams own = schedule_of_group(s, tile_sizes, group);
  WorkTile tile = TileOrder<PlainDivisor>(own).tile_at(index);
  tile.group = number;
  tile.k_end = own.k_tiles;
  tile.row_end = group.m;
  tile.end_k = group.k;
  return tile;
}

}  // namespace sluice
