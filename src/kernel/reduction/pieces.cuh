// What becomes of a tile's sums: out they go, if the tile is whole. If it is a piece of one, by the way of Reduction.
#pragma once

#include <type_traits>

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

  // Of the ring, behind a work tile's own: what other pieces have left.
  static SLUICE_DEVICE int stages(const GemmParams& params, const WorkTile& tile) {
    if constexpr (joins_pieces(config)) return PartialSums<config>(params).stages(tile);
    return 0;
  }

  // By all who fill the ring: of those who fill it with P, one thread asks.
  template <class Producer, class ProducerOfP, class Ring>
  static SLUICE_DEVICE void fetch(const GemmParams& params, const Ring& ring, typename Ring::Position& at, const WorkTile& tile) {
    if constexpr (joins_pieces(config)) {
      constexpr bool kThreads = config.load == LoadPath::threads, kScales = !Producer::kAlone && !kThreads;
      const bool asks = kThreads ? arch::thread_in_warpgroup() == 0 : std::is_same_v<Producer, ProducerOfP>;
      const PartialSums<config> pieces(params);
      if (pieces.stages(tile) > 0) pieces.fetch(ring, at, tile, asks, kScales && arch::lane() == 0 ? 2 : 1);
    }
  }

  // By a consumer warpgroup whose last wgmma of a tile is under way. Pingpong: the other's turn comes when stages() are passed. From
  // further back, a round of the ring or more, it would take a barrier's phase for the next but one.
  template <class Work, class PassOn>
  static SLUICE_DEVICE void when_issued(const GemmParams& params, const Work& work, const typename Work::Position& at, PassOn&& pass_on) {
    if constexpr (joins_pieces(config) && config.schedule == KernelSchedule::pingpong)
      if (stages(params, work.read(at)) > 0) return;
    pass_on();
  }

  // By a consumer warpgroup that has multiplied, and that finishes the tile or has left its sums to one that does. `pass_on`: as before.
  template <class Ring, class Trace, class PassOn>
  static SLUICE_DEVICE void finish(const GemmParams& params, std::byte* shared, const Ring& ring, typename Ring::Position& at,
                                   Accumulators<config>& sums, const WorkTile& tile, int warpgroup, bool finishes,
                                   TileStore<config>& output, const Trace& trace, PassOn&& pass_on) {
    if (!finishes) return follow(at, stages(params, tile));
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
        const PartialSums<config> pieces(params);
        if (tile.peer + 1 < tile.peers) return pieces.leave(sums, tile, warpgroup, barrier_id);
        pieces.collect(sums, ring, at, tile, warpgroup, barrier_id, trace);
        pass_on();
        if constexpr (k_slices(config) > 1) arch::named_barrier_arrive(kCollectedBarrier, kConsumers);
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
  // Slices of K: the first warpgroup collects, and the others come behind.
  static constexpr int kCollectedBarrier = TileStore<config>::kFirstBarrier + 3,
                       kConsumers = consumer_warpgroups(config) * kWarpgroupThreads;

  template <class Position>
  static SLUICE_DEVICE void follow(Position& at, int stages) {
    if (stages == 0) return;
    arch::named_barrier_sync(kCollectedBarrier, kConsumers);
    at.advance(stages);
  }

  static SLUICE_DEVICE bool meet_in_slices(const GemmParams& params) {
    return joins_in_slices(config) && params.scheduler.reduction == Reduction::separate;
  }
  // Parts that are no whole chunks of the epilogue leave straight from registers, where there is nothing but alpha.
  static SLUICE_DEVICE bool is_staged(const GemmParams& params, const TilePart& part) {
    return is_short(config) || part.whole_chunks || params.epilogue.path == StorePath::elementwise;
  }
};

}  // namespace sluice
