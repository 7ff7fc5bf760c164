// Brings the pieces of a tile together inside a cluster: each CTA finishes a part of the tile (part_begin()), into which the others push
// their sums through distributed shared memory. The ring of stages, which nobody needs any more, takes them in; added up in the order of k,
// they give the same bits in every run.
//
// A CTA computes one piece (check_scheduler() sees to it), so that the barriers serve once. Nobody leaves too early: who still receives
// waits for it, and who has received everything is touched no more.
#pragma once

#include "core/tile_parts.hpp"
#include "kernel/mainloop/wgmma_consumer.cuh"
#include "kernel/pipeline.cuh"
#include "kernel/trace/trace.cuh"

namespace sluice {

template <KernelConfig config>
class ClusterSums {
 public:
  // warpgroup: of the consumers. barrier_id: a named barrier of its own.
  SLUICE_DEVICE ClusterSums(std::byte* shared, int warpgroup, int barrier_id)
      : ready_(reinterpret_cast<arch::Barrier*>(shared + Ring::kLayout.reduction_barrier_offset)),
        full_(ready_ + 1 + warpgroup),
        area_(arch::shared_address(shared) + static_cast<std::uint32_t>(warpgroup * kAreaBytes)),
        barrier_id_(barrier_id) {}

  // By one thread, before a fence and the barrier of the CTA. Then all threads arrive at the cluster's barrier, for exchange() to wait for.
  static SLUICE_DEVICE void init(std::byte* shared, int splits) {
    arch::Barrier* const barriers = reinterpret_cast<arch::Barrier*>(shared + Ring::kLayout.reduction_barrier_offset);
    SLUICE_UNROLL
    for (int i = 0; i <= kWarpgroups; ++i) {
      arch::barrier_init(&barriers[i], i == 0 ? splits * kWarpgroups : 1);
      arch::note_barrier(&barriers[i], i == 0 ? "cluster ready" : "cluster sums", i);
    }
  }

  // The part that this CTA is to store, with everybody's sums in it.
  template <class Trace>
  SLUICE_DEVICE TilePart exchange(Accumulators<config>& sums, const TileParts& parts, const Trace& trace) const {
    const int me = arch::cta_in_cluster(), splits = parts.count;
    const TilePart mine = parts[me];
    const int bytes = (splits - 1) * (mine.end - mine.begin) * kPacketBytes;
    trace.mark(TraceEvent::wait_begin);
    arch::cluster_wait();
    arch::named_barrier_sync(barrier_id_, kWarpgroupThreads);  // all warps have multiplied: this warpgroup needs the ring no more
    const int thread = arch::thread_in_warpgroup();
    if (thread == 0 && bytes > 0) arch::barrier_arrive_expect_bytes(full_, bytes);
    if (thread < splits) arch::barrier_arrive_in_cluster(ready_, thread);
    arch::barrier_wait(ready_, 0);
    push(sums, me, parts);
    if (bytes > 0) {
      arch::barrier_wait(full_, 0);
      trace.mark(TraceEvent::wait_end);
      add(sums, mine, splits);
    }
    return mine;
  }

 private:
  using Ring = Pipeline<config>;
  static constexpr int kWarpgroups = sharing_warpgroups(config);
  static constexpr int kPackets = packets_per_warpgroup(config);
  static constexpr int kPerBlock = packets_per_block(config);
  static constexpr int kAreaBytes = Ring::kLayout.stages * stage_bytes(config) / kWarpgroups / 16 * 16;
  static_assert(kWarpgroups + 1 <= kReductionBarriers && kPerBlock * Accumulators<config>::kBlocks == kPackets);

  // The others' packets lie in their CTAs' order, one packet of all threads after the other.
  SLUICE_DEVICE void push(const Accumulators<config>& sums, int me, const TileParts& parts) const {
    SLUICE_UNROLL
    for (int i = 0; i < kPackets; ++i) {
      const int owner = part_owner(config, i, parts.count);
      if (owner == me) continue;
      const TilePart its = parts[owner];
      const int place = (me < owner ? me : me - 1) * (its.end - its.begin) + i - its.begin;
      const float* from = &sums.values[i / kPerBlock][i % kPerBlock * 4];
      const float values[4] = {from[0], from[1], from[2], from[3]};
      arch::store_async(arch::in_cta(address(place), owner), values, arch::in_cta(arch::shared_address(full_), owner));
    }
  }

  SLUICE_DEVICE void add(Accumulators<config>& sums, const TilePart& mine, int splits) const {
    SLUICE_NO_UNROLL
    for (int other = 0; other + 1 < splits; ++other) {
      const int first = other * (mine.end - mine.begin) - mine.begin;
      SLUICE_UNROLL
      for (int i = 0; i < kPackets; ++i) {
        if (i < mine.begin || i >= mine.end) continue;
        float values[4];
        arch::load_shared(address(first + i), values);
        SLUICE_UNROLL
        for (int e = 0; e < 4; ++e) sums.values[i / kPerBlock][i % kPerBlock * 4 + e] += values[e];
      }
    }
  }

  SLUICE_DEVICE arch::SharedAddress address(int packet) const {
    return area_ + static_cast<std::uint32_t>(packet * kPacketBytes + arch::thread_in_warpgroup() * 16);
  }

  arch::Barrier* ready_;
  arch::Barrier* full_;
  arch::SharedAddress area_;
  int barrier_id_;
};

}  // namespace sluice
