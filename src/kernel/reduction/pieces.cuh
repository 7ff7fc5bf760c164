// What becomes of a tile's sums: out they go, if the tile is whole. If it is a piece of one, by the way of Reduction.
#pragma once

#include "kernel/epilogue/fp8_results.cuh"
#include "kernel/epilogue/store_tile.cuh"
#include "kernel/reduction/cluster_sums.cuh"
#include "kernel/reduction/partial_sums.cuh"
#include "kernel/reduction/separate_sums.cuh"
#include "kernel/reduction/store_packets.cuh"

namespace sluice {

template <KernelConfig config>
class PiecesOfTiles {
 public:
  static SLUICE_DEVICE bool meet_in_cluster(const GemmParams& params) {
    return joins_in_cluster(config) && params.scheduler.reduction == Reduction::cluster;
  }

  // By one thread, before a fence and the barrier that lets the roles begin.
  static SLUICE_DEVICE void init(const GemmParams& params, std::byte* shared) {
    if (meet_in_cluster(params)) ClusterSums<config>::init(shared, params.scheduler.splits);
  }

  // By a consumer warpgroup that has multiplied.
  template <class Trace>
  static SLUICE_DEVICE void finish(const GemmParams& params, std::byte* shared, Accumulators<config>& sums, const WorkTile& tile,
                                   int warpgroup, TileStore<config>& output, const Trace& trace) {
    const int barrier_id = TileStore<config>::kFirstBarrier + warpgroup;
    TilePart part;
    std::uint32_t slices = 0;  // still to be finished
    if constexpr (joins_pieces(config)) {
      if (tile.peers > 1 && meet_in_slices(params)) {
        slices = SeparateSums<config>(params, shared, tile, warpgroup, barrier_id).meet(sums, trace);
        if (slices == 0) return;
      } else if (tile.peers > 1 && meet_in_cluster(params)) {
        part = ClusterSums<config>(shared, warpgroup, barrier_id).exchange(sums, tile.peers, trace);
      } else if (tile.peers > 1) {
        const PartialSums<config> pieces(params, warpgroup, barrier_id);
        if (tile.peer + 1 < tile.peers) return pieces.leave(sums, tile);
        pieces.collect(sums, tile, trace);
      }
    }
    if constexpr (can_find_scales(config))
      RowScales<config>::apply(params.epilogue, sums, tile, workers_per_cta(config) > 1 ? 0 : warpgroup * blocks_per_warpgroup(config));
    const bool last = (slices & SeparateSums<config>::kLast) != 0;
    slices &= SeparateSums<config>::kLast - 1;
    do {  // once, but for slices that others gave up
      if constexpr (joins_in_slices(config)) {
        if (slices != 0) part = SeparateSums<config>(params, shared, tile, warpgroup, barrier_id).add_up(sums, take_lowest(slices));
      }
      trace.mark(TraceEvent::epilogue_begin);
      if (part.whole_chunks || params.epilogue.path == StorePath::elementwise)
        output.store(sums, tile, part);
      else if constexpr (joins_in_cluster(config) || joins_in_slices(config))
        store_packets<config>(params.epilogue, sums, tile, part, warpgroup * blocks_per_warpgroup(config));
    } while (slices != 0);
    if constexpr (joins_in_slices(config)) {
      if (last) SeparateSums<config>(params, shared, tile, warpgroup, barrier_id).clear();
    }
  }

 private:
  static SLUICE_DEVICE bool meet_in_slices(const GemmParams& params) {
    return joins_in_slices(config) && params.scheduler.reduction == Reduction::separate;
  }

  static SLUICE_DEVICE int take_lowest(std::uint32_t& bits) {
    int lowest = 0;
    while ((bits >> lowest & 1) == 0) ++lowest;
    bits &= bits - 1;
    return lowest;
  }
};

}  // namespace sluice
