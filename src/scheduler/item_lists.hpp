// Lists of items for those who walk or ask them on the CPU.
#pragma once

#include <concepts>
#include <cstdint>

#include "scheduler/items.hpp"

namespace sluice {

// The contract. Made of a schedule's parameters, with all that does not depend on the item worked out. Over all items below count() each
// (tile, k-tile) comes exactly once. kHasEmptyItems: some may be without work (peers == 0) and are to be passed over.
template <class L>
concept ItemList = std::constructible_from<L, const SchedulerParams&> && requires(const L& list, std::int32_t item) {
  { L::kHasEmptyItems } -> std::convertible_to<bool>;
  { list.count() } -> std::same_as<std::int32_t>;
  { list.piece_at(item) } -> std::same_as<TilePiece>;
};

class WholeTileItems {
 public:
  static constexpr bool kHasEmptyItems = false;
  SLUICE_HOST_DEVICE constexpr explicit WholeTileItems(const SchedulerParams& p) : tiles_(cluster_tiles(p)), k_tiles_(p.k_tiles) {}
  SLUICE_HOST_DEVICE constexpr std::int32_t count() const { return tiles_; }
  SLUICE_HOST_DEVICE constexpr TilePiece piece_at(std::int32_t item) const { return {.index = item, .k_end = k_tiles_}; }

 private:
  std::int32_t tiles_, k_tiles_;
};

static_assert(ItemList<WholeTileItems> && ItemList<SplitKItems<Reciprocal>> && ItemList<StreamKItems<PlainDivisor>> &&
              ItemList<AnyItems<PlainDivisor>>);

// Single answers, for those who do not walk a list.
constexpr std::int32_t item_count(const SchedulerParams& p) { return AnyItems<PlainDivisor>(p).count(); }
constexpr TilePiece piece_at(const SchedulerParams& p, std::int32_t item) { return AnyItems<PlainDivisor>(p).piece_at(item); }
constexpr WorkTile item_at(const SchedulerParams& p, std::int32_t item) { return Schedule<PlainDivisor>(p).item_at(item); }
constexpr WorkTile tile_at(const SchedulerParams& p, std::int32_t index) {
  WorkTile tile = TileOrder<PlainDivisor>(p).tile_at(index);
  tile.k_end = p.k_tiles;
  return tile;
}

}  // namespace sluice
