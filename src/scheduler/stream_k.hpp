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
class StreamKCuts {
 public:
  SLUICE_HOST_DEVICE constexpr explicit StreamKCuts(const SchedulerParams& p) : k_tiles_(p.k_tiles) {
    const std::int32_t all = p.stream_k_tiles / p.stream_k_regions * p.k_tiles;
    const std::int32_t least = p.min_k_tiles < p.k_tiles ? p.min_k_tiles : p.k_tiles;
    const std::int32_t wanted = p.stream_k_ranges / p.stream_k_regions, possible = all / least;
    ranges_ = wanted < possible ? wanted : possible;
    length_ = all / ranges_;
    longer_ = all - length_ * ranges_;
    const std::int32_t half = (k_tiles_ - 1) / 2;  // a tile too short for two pieces is not cut at all
    down_ = least - 1 < half ? least - 1 : half;
    up_ = k_tiles_ - least > down_ ? k_tiles_ - least : down_;
  }

  // Those that have work, of a region's.
  SLUICE_HOST_DEVICE constexpr std::int32_t ranges() const { return ranges_; }

  // The beginning of a range, and so the end of the one before it. A cut that would leave too short a piece moves to the edge of its tile.
  SLUICE_HOST_DEVICE constexpr std::int32_t cut(std::int32_t range) const {
    const std::int32_t even = range * length_ + (range < longer_ ? range : longer_);
    const std::int32_t tile_begin = even / k_tiles_ * k_tiles_, inside = even - tile_begin;
    if (inside <= down_) return tile_begin;
    return inside > up_ ? tile_begin + k_tiles_ : even;
  }

  // The ranges with the first and with the last k-tile of a tile.
  SLUICE_HOST_DEVICE constexpr std::int32_t first_range(std::int32_t tile) const { return last_even_cut(tile * k_tiles_ + down_); }
  SLUICE_HOST_DEVICE constexpr std::int32_t last_range(std::int32_t tile) const { return last_even_cut(tile * k_tiles_ + up_); }

  // At least as many as the whole tiles of any range.
  SLUICE_HOST_DEVICE constexpr std::int32_t most_whole_tiles() const {
    const std::int32_t longest = length_ + (longer_ > 0 ? 1 : 0);
    return (longest + down_ + (k_tiles_ - 1 - up_)) / k_tiles_;
  }

 private:
  // The last range whose cut, before it was moved, is at `offset` or before.
  SLUICE_HOST_DEVICE constexpr std::int32_t last_even_cut(std::int32_t offset) const {
    const std::int32_t in_longer = longer_ * (length_ + 1);
    return offset < in_longer ? offset / (length_ + 1) : longer_ + (offset - in_longer) / length_;
  }

  std::int32_t k_tiles_;
  std::int32_t ranges_ = 0;
  std::int32_t length_ = 0;  // of a range; the first `longer_` have one k-tile more
  std::int32_t longer_ = 0;
  // A cut at most so far into a tile moves to the tile's beginning, one further than `up_` to its end.
  std::int32_t down_ = 0;
  std::int32_t up_ = 0;
};

struct StreamKItems {
  static constexpr bool kHasEmptyItems = true;

  SLUICE_HOST_DEVICE static constexpr std::int32_t count(const SchedulerParams& p) {
    const std::int32_t whole = cluster_tiles(p) - p.stream_k_tiles;
    if (p.stream_k_tiles == 0) return whole;
    const std::int32_t rows = StreamKCuts(p).most_whole_tiles() + (whole + p.stream_k_ranges - 1) / p.stream_k_ranges;
    return (1 + rows + 1) * p.stream_k_ranges;
  }

  SLUICE_HOST_DEVICE static constexpr TilePiece piece_at(const SchedulerParams& p, std::int32_t item) {
    if (p.stream_k_tiles == 0) return whole_tile(p, item);
    const StreamKCuts cuts(p);
    const std::int32_t row = item / p.stream_k_ranges;
    const std::int32_t range = item - row * p.stream_k_ranges;
    const std::int32_t whole = item - (1 + cuts.most_whole_tiles()) * p.stream_k_ranges;  // number of an uncut tile
    if (whole >= 0 && whole < cluster_tiles(p) - p.stream_k_tiles) return whole_tile(p, p.stream_k_tiles + whole);
    return of_range(p, cuts, row, range);
  }

 private:
  // An item that belongs to a range: an empty one where the range has none in this row.
  SLUICE_HOST_DEVICE static constexpr TilePiece of_range(const SchedulerParams& p, const StreamKCuts& cuts, std::int32_t row,
                                                         std::int32_t range) {
    const std::int32_t per_region = p.stream_k_ranges / p.stream_k_regions;
    const std::int32_t region = range / per_region, local = range - region * per_region;
    if (local >= cuts.ranges()) return no_piece();
    const std::int32_t begin = cuts.cut(local), end = cuts.cut(local + 1);
    const std::int32_t first = begin / p.k_tiles, last = end / p.k_tiles;  // the tiles with the two cuts
    const std::int32_t head = begin - first * p.k_tiles, tail = end - last * p.k_tiles;
    const std::int32_t first_tile = region * (p.stream_k_tiles / p.stream_k_regions);

    if (row == 0) {
      if (tail == 0 || begin == end) return no_piece();
      return piece(p, cuts, region, first_tile, last, first == last ? head : 0, tail, local);
    }
    if (row <= cuts.most_whole_tiles()) {
      const std::int32_t tile = first + (head > 0 ? 1 : 0) + row - 1;
      return tile < last ? whole_tile(p, first_tile + tile) : no_piece();
    }
    const std::int32_t whole_rows = (cluster_tiles(p) - p.stream_k_tiles + p.stream_k_ranges - 1) / p.stream_k_ranges;
    const bool completes = row > cuts.most_whole_tiles() + whole_rows && head > 0 && first < last;
    return completes ? piece(p, cuts, region, first_tile, first, head, p.k_tiles, local) : no_piece();
  }

  SLUICE_HOST_DEVICE static constexpr TilePiece piece(const SchedulerParams& p, const StreamKCuts& cuts, std::int32_t region,
                                                      std::int32_t first_tile, std::int32_t tile, std::int32_t k_begin, std::int32_t k_end,
                                                      std::int32_t range) {
    const std::int32_t beginner = cuts.first_range(tile);
    // A range begins one tile at most that it does not complete: its number serves as the tile's.
    return {.index = first_tile + tile,
            .k_begin = k_begin,
            .k_end = k_end,
            .split_tile = region * (p.stream_k_ranges / p.stream_k_regions) + beginner,
            .peer = range - beginner,
            .peers = cuts.last_range(tile) - beginner + 1};
  }
};

}  // namespace sluice
