// Single answers, for those who do not walk a list: planner, simulator, tests.
#pragma once

#include "scheduler/items.hpp"
#include "scheduler/plain_divisor.hpp"

namespace sluice {

constexpr std::int32_t item_count(const SchedulerParams& p) { return AnyItems<PlainDivisor>(p).count(); }
constexpr TilePiece piece_at(const SchedulerParams& p, std::int32_t item) { return AnyItems<PlainDivisor>(p).piece_at(item); }
constexpr WorkTile item_at(const SchedulerParams& p, std::int32_t item) { return Schedule<PlainDivisor>(p).item_at(item); }
constexpr WorkTile tile_at(const SchedulerParams& p, std::int32_t index) {
  WorkTile tile = TileOrder<PlainDivisor>(p).tile_at(index);
  tile.k_end = p.k_tiles;
  return tile;
}

}  // namespace sluice
