// D = A B with weights of 4 bits and few rows of A, at the speed at which memory hands out the weights. No warp waits for another to load:
// each asks for its own part of K of a strip of 16 columns, 1 KB at a time and three or four of them ahead, straight into its registers,
// where it turns the codes into numbers and multiplies them (mma.sync) by the rows of A, which wait in shared memory. Nothing stands
// between the first instruction and the first request, no piece of a tile meets another in global memory, and there is little code to
// fetch: that is what few rows wait for elsewhere (docs/w4.md).
//
// The warps of a team share out K of a strip, slab by slab in turn; the strips of a CTA go to its teams in turn. What they have added up
// they leave in shared memory, and one of them, another for each strip, brings it together, in the order of the warps, and stores. The CTAs
// of a cluster, if there are, share out K before that: each pushes what its team has of a strip to the one that stores it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "arch/arch.cuh"
#include "arch/warp_mma.cuh"
#include "core/kernel_layout.hpp"
#include "core/streaming_layout.hpp"
#include "core/w4_layout.hpp"
#include "kernel/gemm_params.cuh"
#include "kernel/streaming/store_fragment.cuh"

namespace sluice {

template <KernelConfig config, bool zero_points, int slabs_ahead>
class StreamingKernel {
 public:
  SLUICE_DEVICE StreamingKernel(const GemmParams& params, std::byte* shared)
      : params_(params),
        w4_(params.mainloop.w4),
        shared_(arch::shared_address(shared)),
        barriers_(reinterpret_cast<arch::Barrier*>(shared + kStreamingBarrierOffset)),
        warp_(arch::warp_in_cta()),
        lane_(arch::lane()),
        team_warps_(static_cast<int>(arch::opaque(1u << w4_.log2_team_warps))),  // else it is worked out again for each part
        in_team_(warp_ & (team_warps_ - 1)),
        team_(warp_ >> w4_.log2_team_warps),
        share_(kShares > 1 ? arch::cta_in_cluster() : 0),
        unit_(kShares > 1 ? arch::cluster_in_grid() : arch::cta_in_grid()),
        units_(kShares > 1 ? arch::clusters_in_grid() : arch::ctas_in_grid()),
        k_begin_(first_slab_of_share(params.scheduler.k_tiles, kShares, share_)),
        k_tiles_(first_slab_of_share(params.scheduler.k_tiles, kShares, share_ + 1) - k_begin_),
        row_bytes_(static_cast<std::uint32_t>(streaming_row_bytes(longest_share(params.scheduler.k_tiles, kShares)))),
        slab_step_(team_warps_ * w4_.slab_bytes) {
    // Lanes behind the last row take that one's place: columns of the product do not mix.
    const int row = lane_ % 8 < params.epilogue.m ? lane_ % 8 : params.epilogue.m - 1;
    row_ = row_address(row) + bytes(lane_ / 8 * 16);
  }

  SLUICE_DEVICE void run() {
    Part parts[slabs_ahead];
    const bool constant = params_.mainloop.p.constant;
    aim();
    if (constant) ask_for_all(parts);
    if (warp_ == 0) make_barriers();
    clear_behind_k();
    arch::sync_cta();
    if constexpr (kShares > 1) arch::cluster_arrive_relaxed();  // what make_barriers() wrote, its own fence has made visible
    if (params_.early_successor) arch::allow_successor();
    arch::wait_for_predecessor();
    if (warp_ == 0) fetch_rows();
    if (!constant) ask_for_all(parts);
    if constexpr (kShares > 1) arch::cluster_wait();
    multiply_all(parts);
    if constexpr (kShares > 1) finish_strips();
  }

 private:
  static constexpr DataType kType = config.type_a;
  static constexpr int kShares = streaming_shares(config);
  static constexpr int kColumns = 16;  // of a strip: rows of mma's first operand
  static constexpr int kStripsOfBlock = kW4BlockColumns / kColumns;
  static constexpr int kStripChunkBytes = kW4ChunkBytes / kStripsOfBlock;
  static constexpr int kRowSlabBytes = kW4SlabElems * 2;  // of a row of A
  static constexpr int kHalves = kW4SlabElems / 32;       // of chunks: what load_matrices() takes of a row of A
  static constexpr int kFirstTeamBarrier = 1;             // named barriers; 0 is that of the CTA
  static_assert(config.tile_n == kColumns && config.tile_m == 8 && config.tile_k == kW4SlabElems && dequantises(config));

  // Of a strip, a slab: what a warp multiplies at a time.
  struct Part {
    std::uint32_t codes[kW4ChunksPerSlab][4];
    std::uint32_t scales;  // of a lane's columns c and c + 8
    std::uint16_t zeros;
  };

  SLUICE_DEVICE void multiply_all(Part (&parts)[slabs_ahead]) {
    if (strip(0) >= params_.scheduler.tiles_n) return;
    begin_strip();
    if (left_ <= 0 && !next_strip()) return;
    for (bool more = true; more;) {
      SLUICE_UNROLL
      for (Part& part : parts) more = more && take(part);
    }
  }

  // This team's strip number i. A cluster's strips are neighbours by as many as it has CTAs; its teams have them in turn.
  SLUICE_DEVICE int number(int i) const { return team_ + i * (kStreamingWarps >> w4_.log2_team_warps); }  // among the cluster's
  SLUICE_DEVICE int strip(int i) const { return (unit_ + number(i) / kShares * units_) * kShares + number(i) % kShares; }

  // Where the next part to be asked for lies. Every address is one addition away from the one before: instructions are what is short.
  SLUICE_DEVICE void aim() {
    const int at = strip(ahead_), in_block = at % kStripsOfBlock;
    ahead_left_ = at < params_.scheduler.tiles_n ? k_tiles_ - in_team_ : 0;
    const std::byte* const slab = static_cast<const std::byte*>(params_.mainloop.p.data) +
                                  (static_cast<std::int64_t>(at / kStripsOfBlock) * w4_.slabs + k_begin_ + in_team_) * w4_.slab_bytes;
    const int pair = in_block * (kColumns / 2) + lane_ / 4;
    codes_ = slab + in_block * kStripChunkBytes + lane_ * 16;
    scales_ = slab + kW4CodeBytes + pair * 4;
    zeros_ = slab + w4_.zero_offset + pair * 2;
  }

  SLUICE_DEVICE void ask_for(Part& part) {
    if (ahead_left_ <= 0) {
      ++ahead_;
      aim();
      if (ahead_left_ <= 0) return;
    }
    SLUICE_UNROLL
    for (int chunk = 0; chunk < kW4ChunksPerSlab; ++chunk) arch::load_streaming(codes_ + chunk * kW4ChunkBytes, part.codes[chunk]);
    part.scales = arch::load_global(reinterpret_cast<const std::uint32_t*>(scales_));
    if constexpr (zero_points) {
      part.zeros = arch::load_global(reinterpret_cast<const std::uint16_t*>(zeros_));
      zeros_ += slab_step_;
    }
    codes_ += slab_step_;
    scales_ += slab_step_;
    ahead_left_ -= team_warps_;
  }
  SLUICE_DEVICE void ask_for_all(Part (&parts)[slabs_ahead]) {
    SLUICE_UNROLL
    for (Part& part : parts) ask_for(part);
  }

  SLUICE_DEVICE int arrivals() const { return (k_tiles_ + (1 << w4_.log2_slabs_of_arrival) - 1) >> w4_.log2_slabs_of_arrival; }
  SLUICE_DEVICE void make_barriers() const {
    if (lane_ <= kMostStreamingArrivals) arch::barrier_init(barriers_ + lane_, 1);
    if (kShares > 1) arch::sync_warp();
    if (kShares > 1 && lane_ == 0) {
      const int tiles = params_.scheduler.tiles_n / kShares;  // of the cluster
      const int finished = unit_ < tiles ? (tiles - unit_ + units_ - 1) / units_ : 0;
      arch::barrier_arrive_expect_bytes(sums_barrier(), finished * kShares * kStreamingPartBytes);
    }
    arch::fence_barrier_init();
  }

  // A row's elements behind K, in its last slab: what is multiplied by padding must be a number.
  SLUICE_DEVICE void clear_behind_k() const {
    const int thread = warp_ * 32 + lane_, elems = elems_of_row(), packets = (k_tiles_ * kW4SlabElems - elems) / 8;
    if (k_tiles_ == 0) return;
    for (int i = thread; i < params_.epilogue.m * packets; i += kStreamThreads) {
      const int row = i / packets, packet = i - row * packets;
      arch::store_shared(row_address(row) + bytes(elems * 2 + packet * 16), {0, 0, 0, 0});
    }
  }
  // Of K, that this CTA multiplies.
  SLUICE_DEVICE int elems_of_row() const {
    const int padded = k_tiles_ * kW4SlabElems, rest = params_.mainloop.k - k_begin_ * kW4SlabElems;
    return rest < padded ? rest : padded;
  }

  // A lane a row, one part of K after the other, so that the first slabs can be multiplied while the last ones are on their way.
  SLUICE_DEVICE void fetch_rows() const {
    const int rows = params_.epilogue.m, elems = kW4SlabElems << w4_.log2_slabs_of_arrival, all = elems_of_row();
    const auto* const row =
        static_cast<const std::uint16_t*>(params_.mainloop.q.data) + lane_ * params_.mainloop.q.leading_elems + k_begin_ * kW4SlabElems;
    for (int i = 0; i < arrivals(); ++i) {
      const int begin = i * elems, rest = all - begin, count = rest < elems ? rest : elems;
      if (lane_ == 0) arch::barrier_arrive_expect_bytes(barriers_ + i, rows * count * 2);
      arch::sync_warp();
      if (lane_ < rows) arch::bulk_load(row_address(lane_) + bytes(begin * 2), row + begin, count * 2, barriers_ + i);
    }
  }
  SLUICE_DEVICE arch::SharedAddress row_address(int row) const { return shared_ + bytes(kStreamingRowsOffset) + bytes(row) * row_bytes_; }

  SLUICE_DEVICE void begin_strip() {
    left_ = k_tiles_ - in_team_;
    elements_ = row_ + bytes(in_team_ * kRowSlabBytes);
  }

  // Multiplies a part, and asks for another in its place. False: there is nothing more to do.
  SLUICE_DEVICE bool take(Part& part) {
    if (strip_ == 0) arch::barrier_wait(barriers_ + ((k_tiles_ - left_) >> w4_.log2_slabs_of_arrival), 0);
    multiply(part);
    ask_for(part);
    elements_ += bytes(team_warps_ * kRowSlabBytes);
    left_ -= team_warps_;
    return left_ > 0 || next_strip();
  }

  // The codes less their zero points are multiplied as they are, and the sums over the slab by its scales.
  SLUICE_DEVICE void multiply(const Part& part) {
    if constexpr (zero_points) line_ = arch::line_of_zeros<kType>(part.zeros & 0xff, part.zeros >> 8);
    std::uint32_t x[kHalves][4];
    SLUICE_UNROLL
    for (int half = 0; half < kHalves; ++half) arch::load_matrices<false>(elements_ + bytes(half * 64), x[half]);
    float shorts[2][4] = {};  // two, so that each multiplication need not wait for the one before
    SLUICE_UNROLL
    for (int half = 0; half < kHalves; ++half) {
      SLUICE_UNROLL
      for (int step = 0; step < 2; ++step) {
        std::uint32_t numbers[4];
        arch::dequantise<kType>(part.codes[half / 2][half % 2 * 2 + step], line_, numbers);
        arch::mma<kType>(shorts[step], numbers, x[half][2 * step], x[half][2 * step + 1]);
      }
    }
    const float low = arch::as_number<kType>(part.scales), high = arch::as_number<kType>(part.scales >> 16);
    SLUICE_UNROLL
    for (int i = 0; i < 4; ++i) sums_[i] = arch::fused_multiply_add(shorts[0][i] + shorts[1][i], i < 2 ? low : high, sums_[i]);
  }

  // Ends the strip, and those after it of which this warp has no part. False: that was the last.
  SLUICE_DEVICE bool next_strip() {
    do {
      bring_together();
      ++strip_;
      if (strip(strip_) >= params_.scheduler.tiles_n) return false;
      begin_strip();
    } while (left_ <= 0);
    return true;
  }

  // A team waits for itself once a strip: whoever comes to the next strip's barrier has finished with the buffer before.
  SLUICE_DEVICE void bring_together() {
    const arch::SharedAddress buffer = shared_ + bytes((strip_ & 1) * kStreamingWarps * kStreamingPartBytes + lane_ * 16);
    arch::store_shared(buffer + bytes(warp_ * kStreamingPartBytes),
                       {arch::as_bits(sums_[0]), arch::as_bits(sums_[1]), arch::as_bits(sums_[2]), arch::as_bits(sums_[3])});
    arch::named_barrier_sync(kFirstTeamBarrier + team_, 32 * team_warps_);
    SLUICE_UNROLL
    for (float& sum : sums_) sum = 0;
    if ((strip_ & (team_warps_ - 1)) != in_team_) return;
    float total[4] = {0, 0, 0, 0};
    SLUICE_NO_UNROLL
    for (int i = 0; i < team_warps_; i += 4) {
      float parts[4][4];
      SLUICE_UNROLL
      for (int j = 0; j < 4; ++j) arch::load_shared(buffer + bytes((team_ * team_warps_ + i + j) * kStreamingPartBytes), parts[j]);
      SLUICE_UNROLL
      for (int j = 0; j < 4; ++j) {
        SLUICE_UNROLL
        for (int e = 0; e < 4; ++e) total[e] += parts[j][e];
      }
    }
    SLUICE_UNROLL
    for (float& sum : total) sum *= arch::CodeNumbers<kType>::kLeftOut;
    if constexpr (kShares > 1)
      push(total);
    else
      store(total, strip(strip_));
  }

  // To the CTA that finishes this strip.
  SLUICE_DEVICE void push(const float (&total)[4]) const {
    const int among = number(strip_), owner = among % kShares;
    arch::store_async(arch::in_cta(received(among / kShares, share_), owner), total,
                      arch::in_cta(arch::shared_address(sums_barrier()), owner));
  }
  // The strips that are this CTA's to finish, when all shares of all of them are there.
  SLUICE_DEVICE void finish_strips() const {
    arch::barrier_wait(sums_barrier(), 0);
    SLUICE_NO_UNROLL
    for (int i = warp_; (unit_ + i * units_) * kShares < params_.scheduler.tiles_n; i += kStreamingWarps) {
      float total[4] = {0, 0, 0, 0}, part[4];
      SLUICE_UNROLL
      for (int share = 0; share < kShares; ++share) {
        arch::load_shared(received(i, share), part);
        SLUICE_UNROLL
        for (int e = 0; e < 4; ++e) total[e] += part[e];
      }
      store(total, (unit_ + i * units_) * kShares + share_);
    }
  }
  SLUICE_DEVICE arch::Barrier* sums_barrier() const { return barriers_ + kMostStreamingArrivals; }
  SLUICE_DEVICE arch::SharedAddress received(int strip, int share) const {
    return row_address(params_.epilogue.m) + bytes((strip * kShares + share) * kStreamingPartBytes + lane_ * 16);
  }

  SLUICE_DEVICE void store(const float (&total)[4], int strip) const {
    store_fragment<kType>(params_.epilogue, total, 0, strip * kColumns, lane_);
  }

  static SLUICE_DEVICE constexpr std::uint32_t bytes(int count) { return static_cast<std::uint32_t>(count); }

  const GemmParams& params_;
  const W4Params& w4_;
  arch::SharedAddress shared_;
  arch::Barrier* barriers_;
  int warp_, lane_;
  int team_warps_, in_team_, team_;
  int share_, unit_, units_;  // a CTA, or a cluster whose CTAs share out K
  int k_begin_, k_tiles_;     // of this CTA
  std::uint32_t row_bytes_;
  std::int64_t slab_step_;  // bytes to the next slab of this warp's
  arch::SharedAddress row_ = 0;
  // What is asked for next: of strip `ahead_` of the team's.
  int ahead_ = 0, ahead_left_ = 0;
  const std::byte *codes_ = nullptr, *scales_ = nullptr, *zeros_ = nullptr;
  // What is multiplied next.
  int strip_ = 0, left_ = 0;
  arch::SharedAddress elements_ = 0;  // of this lane's row
  arch::CodeLine line_ = arch::middle_line<kType>();
  float sums_[4] = {0, 0, 0, 0};
};

template <KernelConfig config, int slabs_ahead>
SLUICE_DEVICE void run_streaming_kernel_ahead(const GemmParams& params) {
  std::byte* const shared = arch::dynamic_shared_memory();
  if (params.mainloop.w4.zero_offset > 0)
    StreamingKernel<config, true, slabs_ahead>(params, shared).run();
  else
    StreamingKernel<config, false, slabs_ahead>(params, shared).run();
}

template <KernelConfig config>
SLUICE_DEVICE void run_streaming_kernel(const GemmParams& params) {
  if (params.mainloop.w4.far_ahead)
    run_streaming_kernel_ahead<config, kSlabsFarAhead>(params);
  else
    run_streaming_kernel_ahead<config, kSlabsAhead>(params);
}

}  // namespace sluice
