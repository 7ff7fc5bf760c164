// Schedules of general groups: whatever the sizes, the items of all clusters are each k-tile of each group's tiles once.
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "core/general_groups.hpp"
#include "scheduler/general_groups.hpp"

namespace sluice {
namespace {

auto between(std::int32_t least, std::int32_t most) { return rc::gen::inRange(least, most + 1); }

struct Drawn {
  SchedulerParams schedule;  // of the largest
  TileSizes tile;
  GroupLimits limits;
  std::vector<GroupArguments> groups;
};

Drawn draw() {
  Drawn d;
  d.tile = {*rc::gen::element(8, 64, 128), *rc::gen::element(64, 96, 256), *rc::gen::element(64, 128)};
  d.schedule.cluster_m = *between(1, 2);
  d.schedule.cluster_n = *between(1, 2);
  d.schedule.raster = *rc::gen::element(Rasterization::along_m, Rasterization::along_n);
  d.schedule.cohort = *between(1, 9);
  d.limits = {*between(1, 2000), *between(1, 2000), *between(0, 2000)};
  const int count = *rc::gen::oneOf(between(1, 3), between(1, 40));
  const auto extent = [](std::int32_t most) { return *rc::gen::oneOf(between(-1, 1), between(0, most), between(most, 2 * most)); };
  for (int i = 0; i < count; ++i) {
    GroupArguments g;
    g.m = extent(d.limits.m), g.n = extent(d.limits.n), g.k = extent(d.limits.k);
    d.groups.push_back(g);
  }
  return d;
}

RC_GTEST_PROP(GeneralGroups, EveryTileComesOnce, ()) {
  const Drawn d = draw();
  for (std::size_t number = 0; number < d.groups.size(); ++number) {
    const GroupArguments g = within(d.limits, d.groups[number]);
    const GroupSizes sizes = with_tiles(d.schedule, d.tile, {g.m, g.n, g.k});
    RC_ASSERT((sizes.cluster_tiles == 0) == (g.m == 0));
    std::map<std::pair<std::int32_t, std::int32_t>, int> seen;
    for (std::int32_t index = 0; index < sizes.cluster_tiles; ++index) {
      const WorkTile tile = tile_of_group(d.schedule, d.tile, static_cast<std::int32_t>(number), sizes, index);
      RC_ASSERT(tile.group == static_cast<std::int32_t>(number));
      RC_ASSERT(tile.peers == 1 && tile.split_tile == -1 && tile.k_begin == 0 && tile.first_row == 0);
      RC_ASSERT(tile.row_end == g.m);
      RC_ASSERT(tile.end_k == g.k);
      RC_ASSERT(tile.k_end * d.tile.k >= g.k && (tile.k_end - 1) * d.tile.k < g.k);
      RC_ASSERT(tile.tile_m % d.schedule.cluster_m == 0 && tile.tile_n % d.schedule.cluster_n == 0);
      ++seen[{tile.tile_m, tile.tile_n}];
    }
    // Clusters that have a part of D, and none that has not.
    for (std::int32_t m = 0; m * d.tile.m < g.m; m += d.schedule.cluster_m)
      for (std::int32_t n = 0; n * d.tile.n < g.n; n += d.schedule.cluster_n) RC_ASSERT((seen[{m, n}] == 1));
    RC_ASSERT(std::all_of(seen.begin(), seen.end(), [](const auto& tile) { return tile.second == 1; }));
    RC_ASSERT(static_cast<std::int32_t>(seen.size()) == sizes.cluster_tiles);
  }
}

// What a plan counts on: no group has more tiles than the largest that it may be.
RC_GTEST_PROP(GeneralGroups, NoneHasMoreTilesThanTheLargest, ()) {
  const Drawn d = draw();
  const std::int32_t most = with_tiles(d.schedule, d.tile, {d.limits.m, d.limits.n, d.limits.k}).cluster_tiles;
  for (const GroupArguments& given : d.groups) {
    const GroupArguments g = within(d.limits, given);
    RC_ASSERT(with_tiles(d.schedule, d.tile, {g.m, g.n, g.k}).cluster_tiles <= most);
  }
}

}  // namespace
}  // namespace sluice
