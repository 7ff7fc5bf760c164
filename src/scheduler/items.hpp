// A schedule as a list of items: pure functions of the parameters and the item's number. Who takes which item is another matter
// (WorkClaim), and so the order must be safe for any taker: an item waits only for items of lower numbers.
#pragma once

#include <cstdint>

#include "sluice/schedule.hpp"

#include "core/host_device.hpp"
#include "scheduler/split_k.hpp"
#include "scheduler/stream_k.hpp"
#include "scheduler/tile_order.hpp"

namespace sluice {

// Whatever the kind, decided at run time. Whole tiles are split into one piece each.
template <class Divisor>
class AnyItems {
 public:
  AnyItems() = default;
  SLUICE_HOST_DEVICE constexpr explicit AnyItems(const SchedulerParams& p)
      : cuts_(p.kind == SchedulerKind::stream_k || p.kind == SchedulerKind::hybrid), split_k_(p) {
    if (cuts_) stream_k_ = StreamKItems<Divisor>(p);
    count_ = cuts_ ? stream_k_.count() : split_k_.count();
  }
  SLUICE_HOST_DEVICE constexpr std::int32_t count() const { return count_; }
  // Whether some items may be empty.
  SLUICE_HOST_DEVICE constexpr bool cuts() const { return cuts_; }
  SLUICE_HOST_DEVICE constexpr TilePiece piece_at(std::int32_t item, bool uncut = false) const {
    return cuts_ && !uncut ? stream_k_.piece_at(item) : split_k_.piece_at(item);
  }

 private:
  bool cuts_ = false;
  std::int32_t count_ = 0;
  SplitKItems<Divisor> split_k_;
  StreamKItems<Divisor> stream_k_;
};

// A schedule as a kernel has it: what to do, and where.
template <class Divisor>
struct Schedule {
  AnyItems<Divisor> items;
  TileOrder<Divisor> order;

  Schedule() = default;
  SLUICE_HOST_DEVICE constexpr explicit Schedule(const SchedulerParams& p) : items(p), order(p) {}
  SLUICE_HOST_DEVICE constexpr WorkTile item_at(std::int32_t item, bool uncut = false) const {
    return order.place(items.piece_at(item, uncut));
  }
};

}  // namespace sluice
