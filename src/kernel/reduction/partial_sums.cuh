// Brings the pieces of a tile together through the workspace. Every piece but the last leaves its sums there and counts itself. For the
// last one a producer waits for the count and fetches what the others left through the ring, in stages behind the tile's own: while these
// are multiplied it comes, and is added in the order of k: the same bits in every run.
//
// Consumer warpgroups count each for their own part of the tile, so that none waits for another of its CTA. Whoever waits, waits for items
// of lower numbers alone (scheduler/items.hpp). The counts are left as they were found: zero.
#pragma once

#include "kernel/gemm_params.cuh"
#include "kernel/mainloop/wgmma_consumer.cuh"
#include "kernel/pipeline.cuh"
#include "kernel/trace/trace.cuh"
#include "scheduler/workspace.hpp"

namespace sluice {

template <KernelConfig config>
class PartialSums {
 public:
  using Position = typename Pipeline<config>::Position;

  SLUICE_DEVICE explicit PartialSums(const GemmParams& params) : params_(params) {}

  // Of the ring, behind a work tile's own: what other pieces have left.
  SLUICE_DEVICE int stages(const WorkTile& tile) const {
    const bool collects = tile.peer + 1 == tile.peers && params_.scheduler.reduction == Reduction::workspace;
    return collects ? (tile.peers - 1) * kStagesOfPiece : 0;
  }

  // By a consumer warpgroup, whose named barrier barrier_id is.
  SLUICE_DEVICE void leave(const Accumulators<config>& sums, const WorkTile& tile, int warpgroup, int barrier_id) const {
    const int part = warpgroup % kParts;
    float* const place = place_of(tile, tile.peer, part) + arch::thread_in_warpgroup() * 4;
    SLUICE_UNROLL
    for (int i = 0; i < kPackets; ++i) arch::store_global(reinterpret_cast<arch::Floats4*>(place + i * kPacketElems), packet(sums, i));
    arch::named_barrier_sync(barrier_id, kWarpgroupThreads);  // what all threads have written is published by the one that counts
    if (arch::thread_in_warpgroup() == 0) arch::atomic_add_acq_rel(flag(tile, part), 1);
  }

  // By all threads that fill the ring: the one that `asks`, and others, of which each arrives so many times.
  template <class Ring>
  SLUICE_DEVICE void fetch(const Ring& ring, Position& at, const WorkTile& tile, bool asks, int arrivals) const {
    if (asks) wait_for_others(tile);
    SLUICE_NO_UNROLL
    for (int peer = 0; peer + 1 < tile.peers; ++peer) {
      SLUICE_NO_UNROLL
      for (int first = 0; first < kPackets; first += kPacketsOfStage, at.advance()) {
        ring.wait_empty(at);
        if (asks)
          fetch_stage(ring, at, place_of(tile, peer, 0) + first * kPacketElems, first);
        else
          for (int i = 0; i < arrivals; ++i) arch::barrier_arrive(ring.full_barrier(at));
      }
    }
  }

  // By a consumer warpgroup.
  template <class Ring, class Trace>
  SLUICE_DEVICE void collect(Accumulators<config>& sums, const Ring& ring, Position& at, const WorkTile& tile, int warpgroup,
                             int barrier_id, const Trace& trace) const {
    int thread = arch::thread_in_warpgroup();
    if (promotes(config)) thread = arch::opaque(thread);  // FP8's main loops have no register for where it reads
    const std::uint32_t mine = warpgroup % kParts * kPacketsOfStage * kPacketBytes + thread * 16;
    trace.mark(TraceEvent::wait_begin);
    ring.wait_full(at);
    trace.mark(TraceEvent::wait_end);
    SLUICE_NO_UNROLL
    for (int others = tile.peers - 1; others > 0; --others) {
      SLUICE_UNROLL
      for (int first = 0; first < kPackets; first += kPacketsOfStage) {
        ring.wait_full(at);
        const arch::SharedAddress from = arch::shared_address(ring.stage_p(at)) + mine;
        SLUICE_UNROLL
        for (int i = first; i < kPackets && i < first + kPacketsOfStage; ++i) add(sums, i, from + (i - first) * kPacketBytes);
        Ring::kEachWarpReleases ? arch::sync_warp() : arch::named_barrier_sync(barrier_id, kWarpgroupThreads);
        ring.release(at);
        at.advance();
      }
    }
  }

 private:
  static constexpr int kPerBlock = Accumulators<config>::kPerBlock / 4;
  static constexpr int kPackets = Accumulators<config>::kBlocks * kPerBlock, kPacketElems = kPacketBytes / 4;
  static constexpr int kParts = sharing_warpgroups(config);
  static constexpr int kPacketsOfStage = (operand_bytes_p(config) + operand_bytes_q(config)) / (kParts * kPacketBytes);
  static constexpr int kStagesOfPiece = (kPackets + kPacketsOfStage - 1) / kPacketsOfStage;
  static_assert(Accumulators<config>::kPerBlock % 4 == 0 && kPackets * kPacketElems == part_elems(config));

  SLUICE_DEVICE void wait_for_others(const WorkTile& tile) const {
    arch::wait_for_predecessor();
    SLUICE_UNROLL
    for (int part = 0; part < kParts; ++part) {
      arch::wait_for_flag(flag(tile, part), static_cast<std::uint32_t>(tile.peers - 1));
      arch::store_relaxed(flag(tile, part), 0);
    }
    arch::fence_global_for_async();
  }

  SLUICE_DEVICE void fetch_stage(const Pipeline<config>& ring, const Position& at, const float* from, int first) const {
    const int left = kPackets - first, bytes = (left < kPacketsOfStage ? left : kPacketsOfStage) * kPacketBytes;
    arch::barrier_arrive_expect_bytes(ring.full_barrier(at), kParts * bytes);
    SLUICE_UNROLL
    for (int part = 0; part < kParts; ++part)
      arch::bulk_load(arch::shared_address(ring.stage_p(at)) + part * kPacketsOfStage * kPacketBytes, from + part * part_elems(config),
                      bytes, ring.full_barrier(at));
  }

  static SLUICE_DEVICE void add(Accumulators<config>& sums, int packet, arch::SharedAddress from) {
    float left[4];
    arch::load_shared(from, left);
    SLUICE_UNROLL
    for (int e = 0; e < 4; ++e) sums.values[packet / kPerBlock][packet % kPerBlock * 4 + e] += left[e];
  }

  static SLUICE_DEVICE arch::Floats4 packet(const Accumulators<config>& sums, int i) {
    const float* from = &sums.values[i / kPerBlock][i % kPerBlock * 4];
    return {{from[0], from[1], from[2], from[3]}};
  }

  // Of this CTA's parts of a cluster's tile, the first.
  static SLUICE_DEVICE int first_part() { return (takes_neighbours(config) ? 0 : arch::cta_in_cluster()) * kParts; }
  SLUICE_DEVICE std::uint32_t* flag(const WorkTile& tile, int part) const {
    return params_.reduction.flags + tile.split_tile * parts_per_cluster_tile(config) + first_part() + part;
  }
  SLUICE_DEVICE float* place_of(const WorkTile& tile, int peer, int part) const {
    const std::int64_t place = deposit_place(tile, peer, params_.reduction.deposit_step);
    return params_.reduction.sums + (place * parts_per_cluster_tile(config) + first_part() + part) * part_elems(config);
  }

  const GemmParams& params_;
};

}  // namespace sluice
