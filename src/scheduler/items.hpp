// A schedule as a list of items: pure functions of the parameters and the item's number. Who takes which item is another matter
// (WorkClaim), and so the order must be safe for any taker: an item waits only for items of lower numbers.
#pragma once

#include <concepts>
#include <cstdint>

#include "sluice/schedule.hpp"

#include "core/host_device.hpp"
#include "scheduler/split_k.hpp"
#include "scheduler/stream_k.hpp"
#include "scheduler/tile_order.hpp"

namespace sluice {

// The contract. Over all items below count() each (tile, k-tile) comes exactly once. kHasEmptyItems: some may be without work
// (peers == 0) and are to be passed over.
template <class L>
concept ItemList = requires(const SchedulerParams& params, std::int32_t item) {
  { L::kHasEmptyItems } -> std::convertible_to<bool>;
  { L::count(params) } -> std::same_as<std::int32_t>;
  { L::at(params, item) } -> std::same_as<WorkTile>;
};

struct WholeTileItems {
  static constexpr bool kHasEmptyItems = false;
  SLUICE_HOST_DEVICE static constexpr std::int32_t count(const SchedulerParams& p) { return cluster_tiles(p); }
  SLUICE_HOST_DEVICE static constexpr WorkTile at(const SchedulerParams& p, std::int32_t item) { return tile_at(p, item); }
};

// The list of p.kind.
SLUICE_HOST_DEVICE constexpr std::int32_t item_count(const SchedulerParams& p) {
  if (p.kind == SchedulerKind::split_k) return SplitKItems::count(p);
  if (p.kind == SchedulerKind::stream_k || p.kind == SchedulerKind::hybrid) return StreamKItems::count(p);
  return WholeTileItems::count(p);
}
SLUICE_HOST_DEVICE constexpr WorkTile item_at(const SchedulerParams& p, std::int32_t item) {
  if (p.kind == SchedulerKind::split_k) return SplitKItems::at(p, item);
  if (p.kind == SchedulerKind::stream_k || p.kind == SchedulerKind::hybrid) return StreamKItems::at(p, item);
  return WholeTileItems::at(p, item);
}

// Whatever the kind, decided at run time.
struct AnyItems {
  static constexpr bool kHasEmptyItems = true;
  SLUICE_HOST_DEVICE static constexpr std::int32_t count(const SchedulerParams& p) { return item_count(p); }
  SLUICE_HOST_DEVICE static constexpr WorkTile at(const SchedulerParams& p, std::int32_t item) { return item_at(p, item); }
};
static_assert(ItemList<WholeTileItems> && ItemList<SplitKItems> && ItemList<StreamKItems> && ItemList<AnyItems>);

// How many places of the workspace WorkTile::split_tile can name.
SLUICE_HOST_DEVICE constexpr std::int32_t split_tile_count(const SchedulerParams& p) {
  if (p.reduction == Reduction::cluster) return 0;
  if (p.kind == SchedulerKind::split_k) return p.splits > 1 ? cluster_tiles(p) : 0;
  return p.stream_k_tiles > 0 ? p.stream_k_ranges : 0;
}

// The place in the workspace where a piece that does not complete its tile leaves its sums, below deposit_count(). Under stream-K every
// range leaves one piece at most, so that its own number serves.
SLUICE_HOST_DEVICE constexpr std::int32_t deposit_place(const SchedulerParams& p, const WorkTile& tile, std::int32_t peer) {
  return p.kind == SchedulerKind::split_k ? peer * cluster_tiles(p) + tile.split_tile : tile.split_tile + peer;
}
SLUICE_HOST_DEVICE constexpr std::int64_t deposit_count(const SchedulerParams& p) {
  if (p.reduction == Reduction::cluster) return 0;
  if (p.kind == SchedulerKind::split_k) return std::int64_t{p.splits - (p.reduction == Reduction::workspace ? 1 : 0)} * cluster_tiles(p);
  return p.stream_k_tiles > 0 ? p.stream_k_ranges : 0;
}

}  // namespace sluice
