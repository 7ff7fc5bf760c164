// Stream-K: tiles laid end to end along k and cut into equal ranges, one for each cluster, wherever the cuts fall. With
// stream_k_tiles below the number of tiles (hybrid) the others stay whole.
//
//   tiles    |     0     |     1     |     2     |   ...        range 1 has the end of tile 1, a finaliser,
//   ranges   |      0       |      1       |      2     ...      and the beginning of tile 2, which others wait for
//
// The items come in three sections, each made of whole rows with an item for every range:
//   1. the piece at the end of the range, if it leaves its tile incomplete: early, since the next range waits for it,
//   2. whole tiles, first those inside the ranges, then those that are not cut,
//   3. the piece at the beginning of the range, if it completes a tile that another range began: late, when its sums are there.
// A piece waits for the range before its own, and what it waits for is in section 1: always an item of a lower number. Dealt
// round robin to as many clusters as ranges, every cluster gets its own range and waits for clusters of lower numbers only.
#pragma once

#include <cstdint>

#include "sluice/schedule.hpp"

#include "core/host_device.hpp"
#include "scheduler/tile_order.hpp"

namespace sluice {

// Where the cuts fall in a region, the same in all of them. Offsets count k-tiles from the region's first. check_scheduler() keeps all
// k-tiles of the tiles that are cut below 2^30.
template <class Divisor>
class StreamKCuts {
 public:
  StreamKCuts() = default;
  SLUICE_HOST_DEVICE constexpr explicit StreamKCuts(const SchedulerParams& p) : k_tiles_(p.k_tiles), by_k_tiles_(p.k_tiles) {
    const std::int32_t all = quotient(p.stream_k_tiles, p.stream_k_regions) * p.k_tiles;
    const std::int32_t least = p.min_k_tiles < p.k_tiles ? p.min_k_tiles : p.k_tiles;
    const std::int32_t wanted = quotient(p.stream_k_ranges, p.stream_k_regions), possible = quotient(all, least);
    ranges_ = wanted < possible ? wanted : possible;
    length_ = quotient(all, ranges_);
    longer_ = all - length_ * ranges_;
    by_length_ = Divisor(length_);
    by_longer_ = Divisor(length_ + 1);
    const std::int32_t half = (k_tiles_ - 1) / 2;  // a tile too short for two pieces is not cut at all
    down_ = least - 1 < half ? least - 1 : half;
    up_ = k_tiles_ - least > down_ ? k_tiles_ - least : down_;
    const std::int32_t longest = length_ + (longer_ > 0 ? 1 : 0);
    most_whole_tiles_ = quotient(longest + down_ + (k_tiles_ - 1 - up_), k_tiles_);
  }

  // Those that have work, of a region's.
  SLUICE_HOST_DEVICE constexpr std::int32_t ranges() const { return ranges_; }
  // At least as many as the whole tiles of any range.
  SLUICE_HOST_DEVICE constexpr std::int32_t most_whole_tiles() const { return most_whole_tiles_; }
  // That an offset lies in.
  SLUICE_HOST_DEVICE constexpr std::int32_t tile(std::int32_t offset) const { return by_k_tiles_.quotient(offset); }

  // The beginning of a range, and so the end of the one before it. A cut that would leave too short a piece moves to the edge of its tile.
  SLUICE_HOST_DEVICE constexpr std::int32_t cut(std::int32_t range) const {
    const std::int32_t even = range * length_ + (range < longer_ ? range : longer_);
    const std::int32_t tile_begin = tile(even) * k_tiles_, inside = even - tile_begin;
    if (inside <= down_) return tile_begin;
    return inside > up_ ? tile_begin + k_tiles_ : even;
  }

  // The ranges with the first and with the last k-tile of a tile.
  SLUICE_HOST_DEVICE constexpr std::int32_t first_range(std::int32_t tile) const { return last_even_cut(tile * k_tiles_ + down_); }
  SLUICE_HOST_DEVICE constexpr std::int32_t last_range(std::int32_t tile) const { return last_even_cut(tile * k_tiles_ + up_); }

 private:
  // The last range whose cut, before it was moved, is at `offset` or before.
  SLUICE_HOST_DEVICE constexpr std::int32_t last_even_cut(std::int32_t offset) const {
    const std::int32_t in_longer = longer_ * (length_ + 1);
    return offset < in_longer ? by_longer_.quotient(offset) : longer_ + by_length_.quotient(offset - in_longer);
  }

  std::int32_t k_tiles_ = 0;
  std::int32_t ranges_ = 0;
  std::int32_t length_ = 0;  // of a range; the first `longer_` have one k-tile more
  std::int32_t longer_ = 0;
  // A cut at most so far into a tile moves to the tile's beginning, one further than `up_` to its end.
  std::int32_t down_ = 0;
  std::int32_t up_ = 0;
  std::int32_t most_whole_tiles_ = 0;
  Divisor by_k_tiles_, by_length_, by_longer_;
};

template <class Divisor>
class StreamKItems {
 public:
  StreamKItems() = default;
  SLUICE_HOST_DEVICE constexpr explicit StreamKItems(const SchedulerParams& p)
      : k_tiles_(p.k_tiles), tiles_(cluster_tiles(p)), cut_tiles_(p.stream_k_tiles) {
    if (cut_tiles_ == 0) return;
    cuts_ = StreamKCuts<Divisor>(p);
    ranges_ = p.stream_k_ranges;
    per_region_ = quotient(ranges_, p.stream_k_regions);
    tiles_per_region_ = quotient(cut_tiles_, p.stream_k_regions);
    whole_rows_ = quotient(tiles_ - cut_tiles_ + ranges_ - 1, ranges_);
    by_ranges_ = Divisor(ranges_);
    by_region_ = Divisor(per_region_);
  }

  SLUICE_HOST_DEVICE constexpr std::int32_t count() const {
    return cut_tiles_ == 0 ? tiles_ : (1 + cuts_.most_whole_tiles() + whole_rows_ + 1) * ranges_;
  }

  SLUICE_HOST_DEVICE constexpr TilePiece piece_at(std::int32_t item) const {
    const std::int32_t whole = item - (cut_tiles_ == 0 ? 0 : (1 + cuts_.most_whole_tiles()) * ranges_);  // number of an uncut tile
    if (whole >= 0 && whole < tiles_ - cut_tiles_) return whole_tile(cut_tiles_ + whole);
    const std::int32_t row = by_ranges_.quotient(item);
    return of_range(row, item - row * ranges_);
  }

 private:
  static SLUICE_HOST_DEVICE constexpr TilePiece no_piece() { return {.peers = 0}; }
  SLUICE_HOST_DEVICE constexpr TilePiece whole_tile(std::int32_t index) const { return {.index = index, .k_end = k_tiles_}; }

  // An item that belongs to a range: an empty one where the range has none in this row.
  SLUICE_HOST_DEVICE constexpr TilePiece of_range(std::int32_t row, std::int32_t range) const {
    const std::int32_t region = by_region_.quotient(range), local = range - region * per_region_;
    if (local >= cuts_.ranges()) return no_piece();
    const std::int32_t begin = cuts_.cut(local), end = cuts_.cut(local + 1);
    const std::int32_t first = cuts_.tile(begin), last = cuts_.tile(end);  // the tiles with the two cuts
    const std::int32_t head = begin - first * k_tiles_, tail = end - last * k_tiles_;

    if (row == 0) return tail == 0 || begin == end ? no_piece() : piece(region, last, first == last ? head : 0, tail, local);
    if (row <= cuts_.most_whole_tiles()) {
      const std::int32_t tile = first + (head > 0 ? 1 : 0) + row - 1;
      return tile < last ? whole_tile(region * tiles_per_region_ + tile) : no_piece();
    }
    const bool completes = row > cuts_.most_whole_tiles() + whole_rows_ && head > 0 && first < last;
    return completes ? piece(region, first, head, k_tiles_, local) : no_piece();
  }

  SLUICE_HOST_DEVICE constexpr TilePiece piece(std::int32_t region, std::int32_t tile, std::int32_t k_begin, std::int32_t k_end,
                                               std::int32_t range) const {
    const std::int32_t beginner = cuts_.first_range(tile);
    // A range begins one tile at most that it does not complete: its number serves as the tile's.
    return {.index = region * tiles_per_region_ + tile,
            .k_begin = k_begin,
            .k_end = k_end,
            .split_tile = region * per_region_ + beginner,
            .peer = range - beginner,
            .peers = cuts_.last_range(tile) - beginner + 1};
  }

  std::int32_t k_tiles_ = 0, tiles_ = 0, cut_tiles_ = 0;
  StreamKCuts<Divisor> cuts_;
  std::int32_t ranges_ = 0, per_region_ = 0, tiles_per_region_ = 0;
  std::int32_t whole_rows_ = 0;  // of tiles that are not cut
  Divisor by_ranges_, by_region_;
};

}  // namespace sluice
