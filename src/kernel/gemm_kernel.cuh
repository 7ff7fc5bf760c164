// The GEMM kernel: persistent, warp-specialised. Warpgroup 0 produces (fills the ring of stages), the others consume (multiply and store).
// Everything it does is in four policies: the scheduler says which tiles, the producer loads them, the consumer multiplies them, the store
// writes them out.
#pragma once

#include "arch/arch.cuh"
#include "core/kernel_layout.hpp"
#include "kernel/epilogue/store_tile.cuh"
#include "kernel/gemm_params.cuh"
#include "kernel/mainloop/thread_producer.cuh"
#include "kernel/mainloop/tma_producer.cuh"
#include "kernel/mainloop/wgmma_consumer.cuh"
#include "kernel/pipeline.cuh"
#include "scheduler/scheduler.hpp"

namespace sluice {

// Registers per thread of each role. The launch gives all warpgroups the same number; with three warpgroups that is 168, too few for 128
// and more accumulators, so producers hand theirs over. Two warpgroups start with enough.
struct RegisterSplit {
  int producer;
  int consumer;
};
constexpr RegisterSplit register_split(const KernelConfig& config) {
  return config.load == LoadPath::tma ? RegisterSplit{24, 240} : RegisterSplit{72, 216};  // 3 x 168 in all
}

template <KernelConfig config, Scheduler TileScheduler, class Producer>
class GemmKernel {
 public:
  SLUICE_DEVICE GemmKernel(const GemmParams& params, std::byte* shared)
      : params_(params), shared_(shared), ring_(shared), work_(params.scheduler, arch::cluster_in_grid(), arch::clusters_in_grid()) {}

  SLUICE_DEVICE void run() {
    const int warpgroup = arch::warpgroup_in_cta();
    if (arch::warp_in_cta() == 0 && arch::elect_one()) {
      Producer::prefetch(params_.mainloop);
      TileStore<config>::prefetch(params_.epilogue);
      ring_.init();
    }
    WorkTile tile;
    int worker;
    const bool any = next_tile(tile, worker);
    sync_barriers_ready();
    arch::allow_successor();
    arch::wait_for_predecessor();  // nothing in global memory is touched before this
    arch::note_role(warpgroup == 0 ? "producer" : warpgroup == 1 ? "consumer 0" : "consumer 1");
    if (warpgroup == 0) {
      if constexpr (kSplitsRegisters) arch::lower_register_limit<register_split(config).producer>();
      if (any && Producer::participates()) produce(tile, worker);
    } else {
      if constexpr (kSplitsRegisters) arch::raise_register_limit<register_split(config).consumer>();
      if (any) consume(warpgroup - 1, tile, worker);
    }
    if constexpr (kInCluster) {  // the other CTA may still arrive at this one's barriers
      arch::cluster_arrive_relaxed();
      arch::cluster_wait();
    }
  }

 private:
  using Ring = Pipeline<config>;
  static constexpr bool kInCluster = cluster_size(config) > 1;
  static constexpr bool kPingpong = config.schedule == KernelSchedule::pingpong;
  static constexpr int kWorkers = workers_per_cta(config);
  static constexpr bool kSplitsRegisters = consumer_warpgroups(config) > 1;
  static constexpr int kFirstTurnBarrier = TileStore<config>::kFirstBarrier + 2;  // pingpong: one named barrier for each consumer

  SLUICE_DEVICE void sync_barriers_ready() const {
    if constexpr (kInCluster) {  // what init() wrote, its own fence has made visible
      arch::cluster_arrive_relaxed();
      arch::cluster_wait();
    } else {
      arch::sync_cta();
    }
  }

  // The scheduler deals in tiles of a cluster's first CTA.
  SLUICE_DEVICE bool next_tile(WorkTile& tile, int& worker) {
    if (!work_.next(tile, worker)) return false;
    if constexpr (kInCluster) {
      tile.tile_m += arch::cta_in_cluster() % config.cluster_m;
      tile.tile_n += arch::cta_in_cluster() / config.cluster_m;
    }
    arch::note_work(tile.tile_m, tile.tile_n, tile.group, tile.k_begin, tile.k_end);
    return true;
  }

  SLUICE_DEVICE void produce(WorkTile tile, int worker) {
    typename Ring::Position at;
    do {
      const int first_m = tile.tile_m * config.tile_m, first_n = tile.tile_n * config.tile_n;
      Producer::load(params_.mainloop, ring_, at, swapped(config) ? first_n : first_m, swapped(config) ? first_m : first_n, tile);
    } while (next_tile(tile, worker));
  }

  SLUICE_DEVICE void consume(int warpgroup, WorkTile tile, int worker) {
    const int first_block = kPingpong ? 0 : warpgroup * blocks_per_warpgroup(config);
    constexpr int kStagingBytes = Ring::kLayout.staging_buffers * staging_buffer_bytes(config);
    TileStore<config> output(params_.epilogue, shared_ + Ring::kLayout.staging_offset + warpgroup * kStagingBytes, warpgroup, first_block);
    const int me = kPingpong ? warpgroup : 0;
    int previous_worker = me;
    typename Ring::Position at;
    do {
      if (worker == me) {
        if (kPingpong && previous_worker != me) wait_for_turn(me);
        Accumulators<config> sums;
        WgmmaConsumer<config>::multiply(sums, ring_, at, first_block, tile.k_end - tile.k_begin, [&] {
          const int following = work_.next_worker();
          if (kPingpong && following != work_.kNobody && following != me) give_turn(following);
        });
        output.store(sums, tile);
      } else {
        at.advance(tile.k_end - tile.k_begin);
      }
      previous_worker = worker;
    } while (next_tile(tile, worker));
    output.finish();
  }

  // Pingpong: the tensor cores belong to one consumer at a time, in the order of the tiles. Whoever has issued his last wgmma passes them
  // on, and writes out while the other computes.
  static SLUICE_DEVICE void wait_for_turn(int worker) { arch::named_barrier_sync(kFirstTurnBarrier + worker, 2 * kWarpgroupThreads); }
  static SLUICE_DEVICE void give_turn(int worker) { arch::named_barrier_arrive(kFirstTurnBarrier + worker, 2 * kWarpgroupThreads); }

  const GemmParams& params_;
  std::byte* shared_;
  Ring ring_;
  InterleavedWork<TileScheduler, kWorkers> work_;
};

// The whole body of the kernel of one configuration.
template <KernelConfig config>
SLUICE_DEVICE void run_gemm_kernel(const GemmParams& params) {
  using Producer = std::conditional_t<config.load == LoadPath::tma, TmaProducer<config>, ThreadProducer<config>>;
  GemmKernel<config, DataParallelScheduler, Producer> kernel(params, arch::dynamic_shared_memory());
  kernel.run();
}

}  // namespace sluice
