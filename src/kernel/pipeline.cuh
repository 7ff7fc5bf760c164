// A ring of shared-memory stages between one producer and the consumers, each stage with a full and an empty barrier.
#pragma once

#include "arch/arch.cuh"
#include "core/kernel_layout.hpp"

namespace sluice {

// A place in the ring, and the parity of the round it is in.
template <int stages>
struct RingPosition {
  int stage = 0;
  std::uint32_t parity = 0;

  SLUICE_DEVICE void advance() {
    if (++stage == stages) {
      stage = 0;
      parity ^= 1;
    }
  }
  SLUICE_DEVICE void advance(int steps) {
    const int target = stage + steps;
    parity ^= static_cast<std::uint32_t>(target / stages) & 1;
    stage = target % stages;
  }
};

template <KernelConfig config>
class Pipeline {
 public:
  static constexpr SharedMemoryLayout kLayout = shared_memory_layout(config);
  using Position = RingPosition<kLayout.stages>;
  static constexpr bool kEachWarpReleases = cluster_size(config) == 1;  // or one for its warpgroup

  SLUICE_DEVICE explicit Pipeline(std::byte* shared)
      : shared_(shared), full_(reinterpret_cast<arch::Barrier*>(shared + kLayout.barrier_offset)), empty_(full_ + kLayout.stages) {}

  // By one thread each (lanes would take turns), before a fence and the barrier that lets the roles begin.
  SLUICE_DEVICE void init_full() const { init(full_, kFullArrivals, "full"); }
  SLUICE_DEVICE void init_empty() const { init(empty_, kEmptyArrivals, "empty"); }

  SLUICE_DEVICE std::byte* stage_p(const Position& at) const { return shared_ + at.stage * kLayout.stage_bytes; }
  SLUICE_DEVICE std::byte* stage_q(const Position& at) const { return stage_p(at) + operand_bytes_p(config); }
  SLUICE_DEVICE arch::Barrier* full_barrier(const Position& at) const { return &full_[at.stage]; }

  // Producer: until every consumer that reads this stage, in every CTA that receives the copy, has let go of it.
  SLUICE_DEVICE void wait_empty(const Position& at) const { arch::barrier_wait(&empty_[at.stage], at.parity ^ 1); }
  SLUICE_DEVICE void wait_full(const Position& at) const { arch::barrier_wait(&full_[at.stage], at.parity); }
  SLUICE_DEVICE bool is_full(const Position& at) const { return arch::barrier_has_ended(&full_[at.stage], at.parity); }

  // Consumer: lets go of the stage in every CTA of the cluster, because each of them copies into all. Each warp does, but in clusters one
  // for all four: what it has waited for is what its warpgroup has multiplied (PTX ISA, wgmma.wait_group), and arrivals from afar are slow.
  SLUICE_DEVICE void release(const Position& at) const {
    const int lane = arch::lane(), warp = arch::thread_in_warpgroup() / 32;
    if constexpr (cluster_size(config) == 1) {
      if (lane == 0) arch::barrier_arrive(&empty_[at.stage]);
    } else if (lane == 0 && warp < cluster_size(config)) {
      arch::barrier_arrive_in_cluster_relaxed(&empty_[at.stage], warp);
    }
  }

 protected:
  std::byte* shared_;
  arch::Barrier* full_;
  arch::Barrier* empty_;

 private:
  static SLUICE_DEVICE void init(arch::Barrier* barriers, int arrivals, const char* name) {
    SLUICE_UNROLL
    for (int i = 0; i < kLayout.stages; ++i) {
      arch::barrier_init(&barriers[i], arrivals);
      arch::note_barrier(&barriers[i], name, i);
    }
  }

  static constexpr int kFullArrivals = config.load == LoadPath::tma ? 2 + scale_arrivals(config) : producing_warps(config) * 32;
  static constexpr int kWarpgroupsPerStage = config.schedule == KernelSchedule::cooperative ? consumer_warpgroups(config) : 1;
  static constexpr int kEmptyArrivals = kWarpgroupsPerStage * ((kEachWarpReleases ? kWarpsPerWarpgroup : 1) + cluster_size(config) - 1);
  static_assert(cluster_size(config) == 1 || (cluster_size(config) <= kWarpsPerWarpgroup && !dequantises(config)));
};

}  // namespace sluice
