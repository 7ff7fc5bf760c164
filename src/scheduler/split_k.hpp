// Split-K: every tile in the same number of pieces. Through the workspace all first pieces come before all second ones, so that what the
// second ones wait for is done, or nearly so, when they have multiplied.
#pragma once

#include <cstdint>

#include "sluice/schedule.hpp"

#include "core/host_device.hpp"
#include "scheduler/tile_order.hpp"

namespace sluice {

template <class Divisor>
class SplitKItems {
 public:
  SplitKItems() = default;
  SLUICE_HOST_DEVICE constexpr explicit SplitKItems(const SchedulerParams& p)
      : tiles_(cluster_tiles(p)),
        splits_(p.kind == SchedulerKind::split_k ? p.splits : 1),
        together_(splits_ > 1 && p.reduction == Reduction::cluster),
        k_tiles_(p.k_tiles),
        lead_(p.lead),
        length_(quotient(k_tiles_ - lead_, splits_)),
        by_row_(together_ ? splits_ : tiles_) {}

  SLUICE_HOST_DEVICE constexpr std::int32_t count() const { return tiles_ * splits_; }

  // The last piece of a tile waits for the items `tiles_` before it, twice as many before it, and so on; in a cluster all wait for
  // one another, and run at once.
  SLUICE_HOST_DEVICE constexpr TilePiece piece_at(std::int32_t item) const {
    const std::int32_t row = by_row_.quotient(item), in_row = item - row * (together_ ? splits_ : tiles_);
    const std::int32_t split = together_ ? in_row : row, index = together_ ? row : in_row;
    if (splits_ == 1) return {.index = index, .k_end = k_tiles_};
    // But for the lead as equal as can be: the first `longer` pieces have one k-tile more. A product of split and k_tiles might not fit in
    // 32 bits.
    const std::int32_t longer = k_tiles_ - lead_ - length_ * splits_;
    const std::int32_t k_begin = split * length_ + (split < longer ? split : longer);
    const std::int32_t k_end = split == splits_ - 1 ? k_tiles_ : k_begin + length_ + (split < longer ? 1 : 0);
    return {.index = index, .k_begin = k_begin, .k_end = k_end, .split_tile = index, .peer = split, .peers = splits_};
  }

 private:
  std::int32_t tiles_ = 0, splits_ = 1;
  bool together_ = false;  // pieces that meet in a cluster are neighbours
  std::int32_t k_tiles_ = 0, lead_ = 0, length_ = 0;
  Divisor by_row_;
};

}  // namespace sluice
