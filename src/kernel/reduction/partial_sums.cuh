// Brings the pieces of a tile together through the workspace. Every piece but the last leaves its sums there and counts itself; the last
// one waits for the count, adds what the others left in the order of k, and goes on to the epilogue: the same bits in every run.
//
// Consumer warpgroups do this each for their own part of the tile, with a flag of their own, so that none waits for another of its CTA.
// Whoever waits, waits for items of lower numbers alone (scheduler/items.hpp). The flags are left as they were found: zero.
#pragma once

#include "kernel/gemm_params.cuh"
#include "kernel/mainloop/wgmma_consumer.cuh"
#include "kernel/trace/trace.cuh"
#include "scheduler/workspace.hpp"

namespace sluice {

template <KernelConfig config>
class PartialSums {
 public:
  // barrier_id: a named barrier of the warpgroup's own.
  SLUICE_DEVICE PartialSums(const GemmParams& params, int warpgroup, int barrier_id)
      : params_(params),
        part_((takes_neighbours(config) ? 0 : arch::cta_in_cluster()) * sharing_warpgroups(config) +
              warpgroup % sharing_warpgroups(config)),
        barrier_id_(barrier_id) {}

  SLUICE_DEVICE void leave(const Accumulators<config>& sums, const WorkTile& tile) const {
    float* const place = place_of(tile, tile.peer);
    SLUICE_UNROLL
    for (int i = 0; i < kPackets; ++i) arch::store_global(reinterpret_cast<arch::Floats4*>(place + i * kRowElems), packet(sums, i));
    sync_warpgroup();  // what all threads have written is published by the one that counts
    if (is_first_thread()) arch::atomic_add_acq_rel(flag(tile), 1);
  }

  template <class Trace>
  SLUICE_DEVICE void collect(Accumulators<config>& sums, const WorkTile& tile, const Trace& trace) const {
    trace.mark(TraceEvent::wait_begin);
    if (is_first_thread()) {
      arch::wait_for_flag(flag(tile), static_cast<std::uint32_t>(tile.peers - 1));
      arch::store_relaxed(flag(tile), 0);
    }
    sync_warpgroup();
    trace.mark(TraceEvent::wait_end);
    const float* place = place_of(tile, 0);
    const std::int64_t step = place_of(tile, 1) - place;
    SLUICE_NO_UNROLL
    for (int others = tile.peers - 1; others > 0; others -= kAtOnce, place += kAtOnce * step) add(sums, place, step, others);
  }

 private:
  static constexpr int kPerBlock = Accumulators<config>::kPerBlock / 4;
  static constexpr int kPackets = Accumulators<config>::kBlocks * kPerBlock;
  static constexpr int kRowElems = kWarpgroupThreads * 4;  // one packet of each thread, side by side
  static_assert(Accumulators<config>::kPerBlock % 4 == 0 && kPackets * kRowElems == part_elems(config));

  static constexpr int kAtOnce = pieces_at_once(config);
  // A large tile's sums are fetched in two halves: beside the accumulators there are no registers for all of another piece's.
  static constexpr int kMostPackets = 24;
  static constexpr int kHalf = kPackets > kMostPackets ? (kPackets + 1) / 2 : kPackets;

  // What `others` have left, or kAtOnce of them.
  static SLUICE_DEVICE void add(Accumulators<config>& sums, const float* place, std::int64_t step, int others) {
    add_packets<0, kHalf>(sums, place, step, others);
    if constexpr (kHalf < kPackets) add_packets<kHalf, kPackets>(sums, place, step, others);
  }

  // Packets [first, end).
  template <int first, int end>
  static SLUICE_DEVICE void add_packets(Accumulators<config>& sums, const float* place, std::int64_t step, int others) {
    arch::Floats4 left[kAtOnce][end - first];
    SLUICE_UNROLL
    for (int piece = 0; piece < kAtOnce; ++piece) {
      SLUICE_UNROLL
      for (int i = first; i < end; ++i) {
        left[piece][i - first] = {};
        if (piece == 0 || piece < others)
          left[piece][i - first] = arch::load_global_from_l2(reinterpret_cast<const arch::Floats4*>(place + piece * step + i * kRowElems));
      }
    }
    SLUICE_UNROLL
    for (int piece = 0; piece < kAtOnce; ++piece) {
      SLUICE_UNROLL
      for (int i = first; i < end; ++i) {
        SLUICE_UNROLL
        for (int e = 0; e < 4; ++e) sums.values[i / kPerBlock][i % kPerBlock * 4 + e] += left[piece][i - first].values[e];
      }
    }
  }

  static SLUICE_DEVICE arch::Floats4 packet(const Accumulators<config>& sums, int i) {
    const float* from = &sums.values[i / kPerBlock][i % kPerBlock * 4];
    return {{from[0], from[1], from[2], from[3]}};
  }
  static SLUICE_DEVICE bool is_first_thread() { return arch::thread_in_warpgroup() == 0; }
  SLUICE_DEVICE void sync_warpgroup() const { arch::named_barrier_sync(barrier_id_, kWarpgroupThreads); }

  SLUICE_DEVICE std::uint32_t* flag(const WorkTile& tile) const {
    return params_.reduction.flags + tile.split_tile * parts_per_cluster_tile(config) + part_;
  }
  // This thread's first packet among the sums that a piece has left.
  SLUICE_DEVICE float* place_of(const WorkTile& tile, int peer) const {
    const std::int64_t part =
        std::int64_t{deposit_place(tile, peer, params_.reduction.deposit_step)} * parts_per_cluster_tile(config) + part_;
    return params_.reduction.sums + part * part_elems(config) + arch::thread_in_warpgroup() * 4;
  }

  const GemmParams& params_;
  int part_;
  int barrier_id_;
};

}  // namespace sluice
