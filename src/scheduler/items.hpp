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
  { L::piece_at(params, item) } -> std::same_as<TilePiece>;
};

struct WholeTileItems {
  static constexpr bool kHasEmptyItems = false;
  SLUICE_HOST_DEVICE static constexpr std::int32_t count(const SchedulerParams& p) { return cluster_tiles(p); }
  SLUICE_HOST_DEVICE static constexpr TilePiece piece_at(const SchedulerParams& p, std::int32_t item) { return whole_tile(p, item); }
};

// The list of p.kind.
SLUICE_HOST_DEVICE constexpr std::int32_t item_count(const SchedulerParams& p) {
  if (p.kind == SchedulerKind::split_k) return SplitKItems::count(p);
  if (p.kind == SchedulerKind::stream_k || p.kind == SchedulerKind::hybrid) return StreamKItems::count(p);
  return WholeTileItems::count(p);
}
SLUICE_HOST_DEVICE constexpr TilePiece piece_at(const SchedulerParams& p, std::int32_t item) {
  if (p.kind == SchedulerKind::split_k) return SplitKItems::piece_at(p, item);
  if (p.kind == SchedulerKind::stream_k || p.kind == SchedulerKind::hybrid) return StreamKItems::piece_at(p, item);
  return WholeTileItems::piece_at(p, item);
}
SLUICE_HOST_DEVICE constexpr WorkTile item_at(const SchedulerParams& p, std::int32_t item) { return place(p, piece_at(p, item)); }

// Whatever the kind, decided at run time.
struct AnyItems {
  static constexpr bool kHasEmptyItems = true;
  SLUICE_HOST_DEVICE static constexpr std::int32_t count(const SchedulerParams& p) { return item_count(p); }
  SLUICE_HOST_DEVICE static constexpr TilePiece piece_at(const SchedulerParams& p, std::int32_t item) { return sluice::piece_at(p, item); }
};
static_assert(ItemList<WholeTileItems> && ItemList<SplitKItems> && ItemList<StreamKItems> && ItemList<AnyItems>);

}  // namespace sluice
