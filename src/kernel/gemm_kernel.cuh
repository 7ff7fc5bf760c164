// The GEMM kernel: persistent, warp-specialised. Warpgroup 0 produces (fills the ring of stages) and, with its last warp, dispatches (works
// out the tiles); the others consume (multiply, bring pieces together, store). Everything it does is in its policies: the scheduler says
// which tiles, the producer loads them, the consumer multiplies them, the reduction joins them, the store writes them out.
#pragma once

#include <type_traits>

#include "arch/arch.cuh"
#include "core/kernel_layout.hpp"
#include "kernel/dispatcher.cuh"
#include "kernel/epilogue/scale_sums.cuh"
#include "kernel/epilogue/store_tile.cuh"
#include "kernel/gemm_params.cuh"
#include "kernel/grouped_dispatcher.cuh"
#include "kernel/mainloop/scale_producer.cuh"
#include "kernel/mainloop/sliced_tile.cuh"
#include "kernel/mainloop/thread_producer.cuh"
#include "kernel/mainloop/tma_producer.cuh"
#include "kernel/mainloop/w4_producer.cuh"
#include "kernel/pipeline.cuh"
#include "kernel/reduction/pieces.cuh"
#include "kernel/tickets.cuh"
#include "kernel/trace/trace.cuh"
#include "kernel/work_ring.cuh"

namespace sluice {

// Registers per thread of each role. The launch gives all warpgroups the same number; with three warpgroups that is 168, too few for 128
// and more accumulators, so producers hand theirs over. Two warpgroups start with enough.
struct RegisterSplit {
  int producer, consumer;
};
constexpr RegisterSplit register_split(const KernelConfig& config) {
  if (consumer_warpgroups(config) > 2) return k_slices(config) > 1 ? RegisterSplit{56, 152} : RegisterSplit{32, 160};  // 4 x 128 in all
  if (dequantises(config) && accumulators_per_thread(config) <= 64) return {88, 208};
  if (config.load == LoadPath::threads || (accumulators_per_thread(config) <= 64 && !promotes(config)))
    return {72, 216};  // 3 x 168, as all
  return joins_pieces(config) && !dequantises(config) ? RegisterSplit{56, 224} : RegisterSplit{40, 232};
}

template <KernelConfig config, class Trace = NoTrace>
class GemmKernel {
 public:
  SLUICE_DEVICE GemmKernel(const GemmParams& params, std::byte* shared)
      : params_(params), shared_(shared), ring_(shared), work_(shared), tickets_(shared) {}

  SLUICE_DEVICE void run() {
    const int warpgroup = arch::warpgroup_in_cta(), warp = arch::warp_in_cta();
    int item = Dispatcher<config>::unit();
    if (warp < kDispatcherWarp && arch::elect_one()) make_ready(warp);
    if constexpr (kInCluster) {  // what make_ready() wrote, its own fence has made visible
      arch::sync_warp();
      arch::cluster_arrive_relaxed();
    }
    if constexpr (promotes(config))
      if (warp == kScaleWarp) ScaleProducer<config>(params_.mainloop, ring_).fill_with_ones();
    // While barriers are being made.
    if (warp == kDispatcherWarp && known_early()) Dispatcher<config>(params_, work_, tickets_).put_first(item);
    if constexpr (kSplitsRegisters) sync_barriers_ready();
    // Each role ends by itself. With code behind both, ptxas takes what they do for divergent: main loops move all descriptors of wgmma
    // from registers of every lane.
    if (warpgroup == 0) {
      produce_and_dispatch(warp, item);
      if constexpr (kInCluster) arch::cluster_arrive_relaxed();
    } else {
      consume(warpgroup - 1);
    }
  }

 private:
  using Ring = typename Consumer<config>::Ring;
  using Work = WorkRing<config>;
  using Pieces = PiecesOfTiles<config>;
  using ProducerOfP = std::conditional_t<dequantises(config), W4Producer<config>, TmaProducer<config, Operand::p>>;
  static constexpr bool kInCluster = cluster_size(config) > 1;
  static constexpr bool kPingpong = config.schedule == KernelSchedule::pingpong;
  static constexpr bool kSplitsRegisters = consumer_warpgroups(config) > 1;
  static constexpr int kFirstTurnBarrier = TileStore<config>::kFirstBarrier + 2;  // pingpong: one named barrier for each consumer

  // The first warps each make some of the barriers, since each takes some 20 cycles.
  SLUICE_DEVICE void make_ready(int warp) const {
    if (warp == 0) {
      ring_.init_full();
    } else if (warp == 1) {
      ring_.init_empty();
      if (config.load == LoadPath::tma) {
        if (!dequantises(config)) TileBoxes<config, Operand::p>::prefetch_maps(params_.mainloop.p);
        TileBoxes<config, Operand::q>::prefetch_maps(params_.mainloop.q);
      }
      TileStore<config>::prefetch(params_.epilogue);
    } else {
      work_.init(known_early());
      if (!known_early()) tickets_.init();
      Pieces::init(params_, shared_);
    }
    arch::fence_barrier_init();
  }

  SLUICE_DEVICE void sync_barriers_ready() const {
    arch::sync_cta();
    if constexpr (kInCluster) {
      arch::cluster_wait();
    } else if (Pieces::meet_in_cluster(params_)) {
      arch::cluster_arrive_relaxed();  // ClusterSums waits, when its turn comes
    }
  }

  SLUICE_DEVICE bool known_early() const { return Dispatcher<config>::known_early(params_); }

  // A role waits for barriers where its code begins: the way there is cold. (With more consumers main loops lack registers then.)
  SLUICE_DEVICE void begin_role() const { kSplitsRegisters ? void() : sync_barriers_ready(); }

  SLUICE_DEVICE void produce_and_dispatch(int warp, int item) {
    if constexpr (kSplitsRegisters) arch::lower_register_limit<register_split(config).producer>();
    if (warp == kDispatcherWarp) {
      arch::note_role("dispatcher");
      begin_role();
      if constexpr (computes_groups(config))
        if (config.scope == KernelScope::groups || params_.groups.grouping != Grouping::none)
          return GroupedDispatcher<config>(params_, work_, tickets_).run();
      if (arch::elect_one()) Dispatcher<config>(params_, work_, tickets_).run(item);
    } else if constexpr (config.load == LoadPath::threads) {
      begin_role();
      produce(ThreadProducer<config>(params_.mainloop, ring_));
    } else if (warp == 0) {
      begin_role();
      if (arch::elect_one()) produce(ProducerOfP(params_.mainloop, ring_));
    } else if (warp == 1) {
      begin_role();
      if (arch::elect_one()) produce(TmaProducer<config, Operand::q>(params_.mainloop, ring_));
    } else {
      begin_role();
      if constexpr (promotes(config)) produce(ScaleProducer<config>(params_.mainloop, ring_));
    }
  }

  template <class Producer>
  SLUICE_DEVICE void produce(const Producer& producer) const {
    Trace trace(params_, Producer::kAlone ? Role::producing_thread : Role::producing_warp);
    typename Ring::Position at;
    typename Work::Position work_at;
    SLUICE_NO_UNROLL
    for (bool first = true;;) {
      const WorkTile tile = work_.read(work_at);
      if (tile.peers == 0) break;
      Producer::kAlone ? work_.release_alone(work_at) : work_.release(work_at);
      trace.begin(tile);
      producer.load(at, tile, first);
      Pieces::template fetch<Producer, ProducerOfP>(params_, ring_, at, tile);
      first = first && tile.k_begin == tile.k_end;
      trace.mark(TraceEvent::mainloop_end);
    }
  }

  SLUICE_DEVICE void consume(int warpgroup) const {
    begin_role();
    if (params_.early_successor) arch::allow_successor();
    if constexpr (kSplitsRegisters) arch::raise_register_limit<register_split(config).consumer>();
    Trace trace(params_, Role::consumer, warpgroup);
    const int block = first_block(config, warpgroup);
    constexpr int kStagingBytes = Ring::kLayout.staging_buffers * staging_buffer_bytes(config);
    TileStore<config> output(params_.epilogue, shared_ + Ring::kLayout.staging_offset + warpgroup * kStagingBytes, warpgroup, block);
    typename Ring::Position at;
    typename Work::Position work_at;
    arch::wait_for_predecessor();
    static_assert(kWorkSlots % 2 == 0, "pingpong: of the work ring's slots each consumer has every second");
    if (kPingpong && warpgroup == 1) give_turn(0);
    ShareOfTile<config>::begin(warpgroup);
    SLUICE_NO_UNROLL
    for (;;) {
      const WorkTile ahead = work_.read(work_at);
      if (ahead.peers == 0) break;
      const int k_tiles = ahead.k_end - ahead.k_begin;
      if (kPingpong && work_at.stage % 2 != warpgroup) {
        at.advance(k_tiles + Pieces::stages(params_, ahead));
        work_.release(work_at);
        continue;
      }
      trace.begin(ahead);
      if (kPingpong) wait_for_turn(warpgroup);
      trace.mark_first_data(ring_, at, k_tiles);
      Accumulators<config> sums;
      const auto pass_on = [&] { kPingpong ? give_turn(1 - warpgroup) : void(); };  // the last tile's is never waited for
      const auto issued = [&] { Pieces::when_issued(params_, work_, work_at, pass_on); };
      const bool finishes = ShareOfTile<config>(ahead, warpgroup).multiply(params_.mainloop, ring_, sums, at, k_tiles, issued);
      trace.mark(TraceEvent::mainloop_end);
      const WorkTile tile = work_.read(work_at);
      work_.release(work_at);
      if constexpr (is_fp8(config.type_a)) ScaleSums<config>::apply(sums, params_.mainloop, tile, block);
      Pieces::finish(params_, shared_, ring_, at, sums, tile, warpgroup, finishes, output, trace, pass_on);
      trace.mark(TraceEvent::done);
      at.stage = arch::uniform(at.stage);  // else the main loop moves each descriptor from a register of every lane to one of the warp
    }
    output.finish();
    if constexpr (kInCluster) {  // the other CTAs may still arrive at this one's barriers
      arch::cluster_arrive_relaxed();
      arch::cluster_wait();
    }
  }

  // Pingpong: tensor cores belong to one consumer at a time. Whoever has issued his last wgmma passes them on, and writes out meanwhile.
  static SLUICE_DEVICE void wait_for_turn(int consumer) { arch::named_barrier_sync(kFirstTurnBarrier + consumer, 2 * kWarpgroupThreads); }
  static SLUICE_DEVICE void give_turn(int consumer) { arch::named_barrier_arrive(kFirstTurnBarrier + consumer, 2 * kWarpgroupThreads); }

  const GemmParams& params_;
  std::byte* shared_;
  Ring ring_;
  Work work_;
  Tickets<config> tickets_;
};

template <KernelConfig config, class Trace = NoTrace>
SLUICE_DEVICE void run_gemm_kernel(const GemmParams& params) {
  GemmKernel<config, Trace> kernel(params, arch::dynamic_shared_memory());
  kernel.run();
}

}  // namespace sluice
