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
    const int barrier_id = TileStore<config>::kFirstBarrier + warpgroup, first_block = warpgroup * blocks_per_warpgroup(config);
    TilePart part;
    std::uint32_t slices = 0;  // still to be finished, a bit for each
    if constexpr (joins_pieces(config)) {
      if (tile.peers > 1 && meet_in_slices(params)) {
        slices = Slices(params, shared, tile, warpgroup, barrier_id).meet(sums, trace);
        if (slices == 0) return;
      } else if (tile.peers > 1 && meet_in_cluster(params)) {
        part = ClusterSums<config>(shared, warpgroup, barrier_id).exchange(sums, params.reduction.parts, trace);
      } else if (tile.peers > 1) {
        const PartialSums<config> pieces(params, warpgroup, barrier_id);
        if (tile.peer + 1 < tile.peers) return pieces.leave(sums, tile);
        pieces.collect(sums, tile, trace);
      }
    }
    if constexpr (can_find_scales(config))
      RowScales<config>::apply(params.epilogue, sums, tile, workers_per_cta(config) > 1 ? 0 : first_block);
    trace.mark(TraceEvent::epilogue_begin);
    do {  // once, but for slices that others gave up
      if constexpr (joins_in_slices(config)) {
        if (slices != 0) {
          const int slice = arch::lowest_bit(slices);
          part = params.reduction.parts[slice];
          const bool staged = is_staged(params, part);
          Slices(params, shared, tile, warpgroup, barrier_id).add_up(part, [&](int packet, const float(&values)[4]) {
            if (staged)
              put_packet<config>(sums, packet, values);
            else
              store_packet<config>(params.epilogue, values, tile, packet, first_block);
          });
        }
      }
      if (is_staged(params, part)) {
        output.store(sums, tile, part);
      } else if constexpr (joins_in_cluster(config)) {
        if (slices == 0) store_packets<config>(params.epilogue, sums, tile, part, first_block);
      }
      slices &= slices - 1;
    } while ((slices & (Slices::kLast - 1)) != 0);
    if constexpr (joins_in_slices(config)) {
      if (slices == Slices::kLast) Slices(params, shared, tile, warpgroup, barrier_id).clear();
    }
  }

 private:
  using Slices = SeparateSums<config>;

  static SLUICE_DEVICE bool meet_in_slices(const GemmParams& params) {
    return joins_in_slices(config) && params.scheduler.reduction == Reduction::separate;
  }
  // Parts that are no whole chunks of the epilogue leave straight from registers, where there is nothing but alpha.
  static SLUICE_DEVICE bool is_staged(const GemmParams& params, const TilePart& part) {
    return part.whole_chunks || params.epilogue.path == StorePath::elementwise;
  }
};

}  // namespace sluice
