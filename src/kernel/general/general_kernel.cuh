// The kernel of general groups: GemmKernel with the same ring, consumers and stores, whose tiles belong to products of their own. Where
// that one has one problem in its parameters, this one finds each tile's group in the workspace (prepare_groups_kernel.cuh). Tiles are
// computed whole, and nothing is fetched before the predecessor has finished.
#pragma once

#include "arch/arch.cuh"
#include "core/tile_parts.hpp"
#include "kernel/epilogue/scale_sums.cuh"
#include "kernel/epilogue/store_tile.cuh"
#include "kernel/gemm_kernel.cuh"
#include "kernel/general/general_dispatcher.cuh"
#include "kernel/general/general_params.cuh"
#include "kernel/general/general_producer.cuh"
#include "kernel/mainloop/scale_producer.cuh"
#include "kernel/mainloop/short_tile.cuh"
#include "kernel/pipeline.cuh"
#include "kernel/tickets.cuh"
#include "kernel/trace/trace.cuh"
#include "kernel/work_ring.cuh"

namespace sluice {

template <KernelConfig config>
class GeneralKernel {
 public:
  SLUICE_DEVICE GeneralKernel(const GeneralGemmParams& params, std::byte* shared)
      : params_(params), shared_(shared), ring_(shared), work_(shared), tickets_(shared) {}

  SLUICE_DEVICE void run() {
    const int warpgroup = arch::warpgroup_in_cta(), warp = arch::warp_in_cta();
    if (warp < kDispatcherWarp && arch::elect_one()) make_ready(warp);
    if constexpr (kInCluster) {  // what make_ready() wrote, its own fence has made visible
      arch::sync_warp();
      arch::cluster_arrive_relaxed();
    }
    if constexpr (promotes(config))
      if (warp == kScaleWarp) ScaleProducer<config>(params_.mainloop, ring_).fill_with_ones();
    arch::sync_cta();
    if constexpr (kInCluster) arch::cluster_wait();
    if (params_.early_successor) arch::allow_successor();
    if (warpgroup == 0) {
      if constexpr (kSplitsRegisters) arch::lower_register_limit<register_split(config).producer>();
      produce_and_dispatch(warp);
    } else {
      if constexpr (kSplitsRegisters) arch::raise_register_limit<register_split(config).consumer>();
      consume(warpgroup - 1);
    }
    if constexpr (kInCluster) {  // the other CTA may still arrive at this one's barriers
      arch::cluster_arrive_relaxed();
      arch::cluster_wait();
    }
  }

 private:
  using Ring = typename Consumer<config>::Ring;
  using Work = WorkRing<config>;
  static constexpr bool kInCluster = cluster_size(config) > 1;
  static constexpr bool kPingpong = config.schedule == KernelSchedule::pingpong;
  static constexpr bool kSplitsRegisters = consumer_warpgroups(config) > 1;
  static constexpr int kFirstTurnBarrier = TileStore<config>::kFirstBarrier + 2;  // pingpong: one named barrier for each consumer

  SLUICE_DEVICE void make_ready(int warp) const {
    if (warp == 0) {
      ring_.init_full();
    } else if (warp == 1) {
      ring_.init_empty();
    } else {
      work_.init(false);
      tickets_.init();
    }
    arch::fence_barrier_init();
  }

  SLUICE_DEVICE void produce_and_dispatch(int warp) {
    if (warp == kDispatcherWarp) {
      arch::note_role("dispatcher");
      GeneralDispatcher<config>(params_, work_, tickets_).run();
    } else if (warp == 0) {
      if (arch::elect_one()) produce<Operand::p>();
    } else if (warp == 1) {
      if (arch::elect_one()) produce<Operand::q>();
    } else if constexpr (promotes(config)) {
      produce_scales();
    }
  }

  template <Operand operand>
  SLUICE_DEVICE void produce() const {
    arch::wait_for_predecessor();
    NoTrace trace(params_, Role::producing_thread);
    const GeneralProducer<config, operand> producer(operand == Operand::p ? params_.mainloop.p : params_.mainloop.q, ring_);
    typename Ring::Position at;
    typename Work::Position work_at;
    int acquired = -1;  // whose map this thread has: once is enough, and takes its time
    SLUICE_NO_UNROLL
    for (;;) {
      const WorkTile tile = work_.read(work_at);
      if (tile.peers == 0) break;
      work_.release_alone(work_at);
      trace.begin(tile);
      if (tile.k_end == 0) continue;  // has no maps
      const PreparedGroup& group = params_.general.prepared[tile.group];
      const arch::TensorMap& map = operand == Operand::p ? group.p : group.q;
      if (tile.group != acquired) arch::acquire_tensor_map(map);
      acquired = tile.group;
      producer.load(at, tile, map);
    }
  }

  SLUICE_DEVICE void produce_scales() const {
    arch::wait_for_predecessor();
    NoTrace trace(params_, Role::producing_warp);
    typename Ring::Position at;
    typename Work::Position work_at;
    SLUICE_NO_UNROLL
    for (;;) {
      const WorkTile tile = work_.read(work_at);
      if (tile.peers == 0) break;
      work_.release(work_at);
      trace.begin(tile);
      const PreparedGroup& group = params_.general.prepared[tile.group];
      const ScaleParams p = of_group(params_.mainloop.scale_p, group.scale_p), q = of_group(params_.mainloop.scale_q, group.scale_q);
      WorkTile one = tile;
      SLUICE_NO_UNROLL
      for (one.k_begin = 0; one.k_begin < tile.k_end; ++one.k_begin) {
        // Else the compiler works out before the loop where each word lies, and has no registers to keep it in.
        one.first_row = arch::opaque(one.first_row);
        one.tile_n = arch::opaque(one.tile_n);
        one.k_end = one.k_begin + 1;
        if (p.runs || q.runs) {  // the copy engine overwrites what came as words, of another group or behind the end of K
          ring_.wait_empty(at);
          arch::fence_shared_for_async();
        }
        ScaleProducer<config>(p, q, tile.end_k, ring_, false).load(at, one, false);
      }
    }
  }

  // What all groups have in common stays where the compiler finds constants, and takes no registers.
  static SLUICE_DEVICE ScaleParams of_group(const ScaleParams& common, const ScaleParams& group) {
    ScaleParams scales = arch::load_global(&group);
    scales.strides.batch = 0;
    scales.strides.block_shift = common.strides.block_shift;
    scales.strides.along_k = common.strides.along_k;
    scales.anywhere = false;
    return scales;
  }

  SLUICE_DEVICE void consume(int warpgroup) const {
    NoTrace trace(params_, Role::consumer, warpgroup);
    const int block = first_block(config, warpgroup);
    typename Ring::Position at;
    typename Work::Position work_at;
    int acquired = -1;  // whose maps of D
    arch::wait_for_predecessor();
    static_assert(kWorkSlots % 2 == 0, "pingpong: of the work ring's slots each consumer has every second");
    if (kPingpong && warpgroup == 1) give_turn(0);
    SLUICE_NO_UNROLL
    for (;;) {
      const WorkTile ahead = work_.read(work_at);
      if (ahead.peers == 0) break;
      const int k_tiles = ahead.k_end;
      if (kPingpong && work_at.stage % 2 != warpgroup) {
        at.advance(k_tiles);
        work_.release(work_at);
        continue;
      }
      trace.begin(ahead);
      if (kPingpong) wait_for_turn(warpgroup);
      Accumulators<config> sums;
      const auto issued = [&] {
        if (kPingpong) give_turn(1 - warpgroup);  // the last tile's is never waited for
      };
      ShortTile<config>(ahead, warpgroup).multiply(params_.mainloop, ring_, sums, at, k_tiles, issued);
      const WorkTile tile = work_.read(work_at);
      work_.release(work_at);
      if constexpr (is_fp8(config.type_a)) scale(sums, tile, block);
      store(sums, tile, warpgroup, block, acquired);
      at.stage = arch::uniform(at.stage);  // as in GemmKernel
    }
    TileStore<config>::finish();
  }

  // Block scales, the usual ones, were applied along K, and cost nothing here.
  SLUICE_DEVICE void scale(Accumulators<config>& sums, const WorkTile& tile, int block) const {
    if (!ScaleSums<config>::any(params_.mainloop)) return;
    const PreparedGroup& group = params_.general.prepared[tile.group];
    ScaleSums<config>::apply(sums, group.scale_p, group.scale_q, tile, block);
  }

  SLUICE_DEVICE void store(const Accumulators<config>& sums, WorkTile tile, int warpgroup, int block, int& acquired) const {
    constexpr int kStagingBytes = Ring::kLayout.staging_buffers * staging_buffer_bytes(config);
    const EpilogueParams& group = params_.general.prepared[tile.group].epilogue;
    if (TileStore<config>::may_store() && tile.group != acquired && group.path == StorePath::copy_engine) {
      if (params_.general.stores_chunks) arch::acquire_tensor_map(group.map_d);
      if (params_.general.stores_rest) arch::acquire_tensor_map(group.map_d_rest);
    }
    acquired = tile.group;
    tile.group = 0;  // each has a D of its own
    TileStore<config>(group, shared_ + Ring::kLayout.staging_offset + warpgroup * kStagingBytes, warpgroup, block)
        .store(sums, tile, TilePart{});
  }

  // As in GemmKernel: the tensor cores belong to one consumer at a time.
  static SLUICE_DEVICE void wait_for_turn(int consumer) { arch::named_barrier_sync(kFirstTurnBarrier + consumer, 2 * kWarpgroupThreads); }
  static SLUICE_DEVICE void give_turn(int consumer) { arch::named_barrier_arrive(kFirstTurnBarrier + consumer, 2 * kWarpgroupThreads); }

  const GeneralGemmParams& params_;
  std::byte* shared_;
  Ring ring_;
  Work work_;
  Tickets<config> tickets_;
};

template <KernelConfig config>
SLUICE_DEVICE void run_general_kernel(const GeneralGemmParams& params) {
  GeneralKernel<config> kernel(params, arch::dynamic_shared_memory());
  kernel.run();
}

}  // namespace sluice
