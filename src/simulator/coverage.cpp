#include "simulator/coverage.hpp"

#include <algorithm>
#include <tuple>

namespace sluice {
namespace {

struct Range {
  std::int64_t tile;
  std::int32_t begin, end;
};

// The k-tiles of a piece; with k_tiles == 0 the one visit that runs the epilogue counts as a k-tile.
Range k_range(const SchedulerParams& p, const WorkTile& piece, std::int64_t tile) {
  if (p.k_tiles == 0) return {tile, 0, 1};
  return {tile, piece.k_begin, std::max(piece.k_begin, piece.k_end)};
}

bool inside(const SchedulerParams& p, const WorkTile& tile) {
  return tile.tile_m >= 0 && tile.tile_m < p.tiles_m && tile.tile_n >= 0 && tile.tile_n < p.tiles_n && tile.group >= 0 &&
         tile.group < p.groups;
}

}  // namespace

Coverage count_coverage(const SchedulerParams& p, const std::vector<SimulatedPiece>& pieces) {
  const std::int32_t depth = std::max(p.k_tiles, 1);
  Coverage coverage;
  std::vector<Range> ranges;
  ranges.reserve(pieces.size() * static_cast<std::size_t>(p.cluster_m * p.cluster_n));
  for (const SimulatedPiece& piece : pieces)
    for (std::int32_t m = 0; m < p.cluster_m; ++m)
      for (std::int32_t n = 0; n < p.cluster_n; ++n) {
        WorkTile tile = piece.tile;
        tile.tile_m += m;
        tile.tile_n += n;
        Range range = k_range(p, tile, (static_cast<std::int64_t>(tile.group) * p.tiles_m + tile.tile_m) * p.tiles_n + tile.tile_n);
        if (!inside(p, tile)) {
          coverage.repeated += range.end - range.begin;
          continue;
        }
        const Range clipped{range.tile, std::clamp(range.begin, 0, depth), std::clamp(range.end, 0, depth)};
        coverage.repeated += (range.end - range.begin) - (clipped.end - clipped.begin);
        ranges.push_back(clipped);
      }
  std::sort(ranges.begin(), ranges.end(),
            [](const Range& x, const Range& y) { return std::tie(x.tile, x.begin, x.end) < std::tie(y.tile, y.begin, y.end); });

  std::int64_t covered = 0, tile = -1;
  std::int32_t reached = 0;  // within the tile: everything before has been counted
  for (const Range& range : ranges) {
    if (range.tile != tile) reached = 0;
    tile = range.tile;
    const std::int32_t fresh = std::max(0, range.end - std::max(range.begin, reached));
    covered += fresh;
    coverage.repeated += (range.end - range.begin) - fresh;
    reached = std::max(reached, range.end);
  }
  coverage.uncovered = static_cast<std::int64_t>(p.tiles_m) * p.tiles_n * p.groups * depth - covered;
  return coverage;
}

}  // namespace sluice
