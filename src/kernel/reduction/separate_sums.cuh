// Brings the many pieces of a tile together with all hands (Reduction::separate): every piece leaves its sums in the workspace, and when
// the last one has come, those that came last each finish a slice of the tile, adding up what all pieces have left in the order of k. The
// same bits in every run, whoever adds.
//
// Waiting for pieces of higher numbers is no danger, since nobody waits for ever: who has waited long enough says so and goes, and the last
// piece finishes his slice. One word for each part of a tile holds all there is to know; the last piece clears it.
#pragma once

#include "core/tile_parts.hpp"
#include "kernel/gemm_params.cuh"
#include "kernel/mainloop/wgmma_consumer.cuh"
#include "kernel/pipeline.cuh"
#include "kernel/trace/trace.cuh"
#include "scheduler/workspace.hpp"

namespace sluice {

template <KernelConfig config>
class SeparateSums {
 public:
  // warpgroup: of the consumers. barrier_id: a named barrier of its own.
  SLUICE_DEVICE SeparateSums(const GemmParams& params, std::byte* shared, const WorkTile& tile, int warpgroup, int barrier_id)
      : params_(params),
        verdict_(arch::shared_address(shared + Pipeline<config>::kLayout.verdict_offset) + static_cast<std::uint32_t>(warpgroup) * 16),
        tile_(tile),
        part_((takes_neighbours(config) ? 0 : arch::cta_in_cluster()) * consumer_warpgroups(config) + warpgroup),
        barrier_id_(barrier_id) {}

  // Leaves this piece's sums. Returns the slices that are now this warpgroup's to finish, a bit for each, and kLast if clear() is, too.
  template <class Trace>
  SLUICE_DEVICE std::uint32_t meet(const Accumulators<config>& sums, const Trace& trace) const {
    float* const place = place_of(tile_.peer);
    SLUICE_UNROLL
    for (int i = 0; i < kPackets; ++i) {
      const float* from = &sums.values[i / kPerBlock][i % kPerBlock * 4];
      arch::store_global(reinterpret_cast<arch::Floats4*>(place + i * kRowElems), arch::Floats4{{from[0], from[1], from[2], from[3]}});
    }
    sync_warpgroup();  // what all threads have written is published by the one that counts
    trace.mark(TraceEvent::wait_begin);
    if (arch::thread_in_warpgroup() == 0) {
      const std::uint32_t verdict[4] = {arrive(), 0, 0, 0};
      arch::store_shared(verdict_, verdict);
    }
    sync_warpgroup();
    std::uint32_t verdict[4];
    arch::load_shared(verdict_, verdict);
    trace.mark(TraceEvent::wait_end);
    return verdict[0];
  }

  // When all slices are finished, by whoever came last: once those that waited have seen it, and they are all running, nobody needs the
  // word.
  SLUICE_DEVICE void clear() const {
    if (arch::thread_in_warpgroup() != 0) return;
    while (went(arch::load_acquire(word())) + 1 != slices()) {}
    arch::store_relaxed(word(), 0);
  }
  static constexpr std::uint32_t kLast = 1u << 16;

  // Adds up a slice of the tile, and hands it over packet by packet: take(packet, values).
  template <class Take>
  SLUICE_DEVICE void add_up(const TilePart& part, const Take& take) const {
    int i = part.begin;
    SLUICE_NO_UNROLL
    for (; i + kManyPackets <= part.end; i += kManyPackets) add_packets<kManyPackets, kManyLoads / kManyPackets>(i, take);
    SLUICE_NO_UNROLL
    for (; i < part.end; ++i) add_packets<1, kManyLoads>(i, take);
  }

 private:
  static constexpr int kPackets = packets_per_warpgroup(config);
  static constexpr int kPerBlock = packets_per_block(config);
  static constexpr int kRowElems = kWarpgroupThreads * 4;  // one packet of each thread, side by side
  // In flight: as many as registers allow.
  static constexpr bool kFewRegisters = config.ctas_per_sm > 1 ||
                                        ((promotes(config) || dequantises(config)) && consumer_warpgroups(config) > 1);
  static constexpr int kManyLoads = kFewRegisters ? 8 : consumer_warpgroups(config) == 1 ? 32 : 16, kManyPackets = 4;
  // A look at the word takes about half a microsecond.
  static constexpr int kMostLooks = 64;

  // The word: how many pieces have come, how many of those that waited have gone on, and the slices of those who gave up waiting.
  static constexpr std::uint32_t kCame = 1, kWent = 1 << 8;
  static SLUICE_DEVICE std::uint32_t abandoned(int slice) { return 1u << (16 + slice); }
  static SLUICE_DEVICE int came(std::uint32_t word) { return static_cast<int>(word & 0xff); }
  static SLUICE_DEVICE int went(std::uint32_t word) { return static_cast<int>(word >> 8 & 0xff); }

  SLUICE_DEVICE std::uint32_t* word() const { return params_.reduction.flags + tile_.split_tile * parts_per_cluster_tile(config) + part_; }

  // One thread. The slices to finish, with kLast if this was the last piece to come.
  SLUICE_DEVICE std::uint32_t arrive() const {
    const std::uint32_t before = arch::atomic_add_acq_rel(word(), kCame);
    const int slice = came(before) - (tile_.peers - slices());
    if (slice < 0) return 0;  // those who come later will do
    if (came(before) + 1 == tile_.peers) return kLast | 1u << slice | before >> 16;
    SLUICE_NO_UNROLL
    for (int looks = 0; looks < kMostLooks; ++looks) {
      if (came(arch::load_acquire(word())) < tile_.peers) continue;
      arch::atomic_add_relaxed(word(), kWent);
      return 1u << slice;
    }
    return came(arch::atomic_add_acq_rel(word(), kWent + abandoned(slice))) == tile_.peers ? 1u << slice : 0;
  }

  // Of packets [first, first + packets), `pieces` at a time.
  template <int packets, int pieces, class Take>
  SLUICE_DEVICE void add_packets(int first, const Take& take) const {
    const float* place = place_of(0) + first * kRowElems;
    const std::int64_t step = place_of(1) - place_of(0);
    float total[packets][4] = {};
    SLUICE_NO_UNROLL
    for (int piece = 0; piece < tile_.peers; piece += pieces, place += pieces * step) {
      arch::Floats4 left[pieces][packets];
      SLUICE_UNROLL
      for (int j = 0; j < pieces; ++j) {
        SLUICE_UNROLL
        for (int i = 0; i < packets; ++i) {
          left[j][i] = {};
          if (piece + j < tile_.peers)
            left[j][i] = arch::load_global_from_l2(reinterpret_cast<const arch::Floats4*>(place + j * step + i * kRowElems));
        }
      }
      SLUICE_UNROLL
      for (int j = 0; j < pieces; ++j) {
        SLUICE_UNROLL
        for (int i = 0; i < packets; ++i) {
          SLUICE_UNROLL
          for (int e = 0; e < 4; ++e) total[i][e] += left[j][i].values[e];
        }
      }
    }
    SLUICE_UNROLL
    for (int i = 0; i < packets; ++i) take(first + i, total[i]);
  }

  SLUICE_DEVICE int slices() const { return params_.reduction.parts.count; }
  SLUICE_DEVICE void sync_warpgroup() const { arch::named_barrier_sync(barrier_id_, kWarpgroupThreads); }

  // This thread's first packet among the sums that a piece has left.
  SLUICE_DEVICE float* place_of(int peer) const {
    const std::int64_t part =
        std::int64_t{deposit_place(tile_, peer, params_.reduction.deposit_step)} * parts_per_cluster_tile(config) + part_;
    return params_.reduction.sums + part * part_elems(config) + arch::thread_in_warpgroup() * 4;
  }

  const GemmParams& params_;
  arch::SharedAddress verdict_;
  const WorkTile& tile_;
  int part_;
  int barrier_id_;
};

}  // namespace sluice
