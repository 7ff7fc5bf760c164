// D = A B with weights of 16 bits and few rows of A, at the speed at which memory hands out the weights. Each warp is alone: it has a ring
// of two stages to itself, asks for its own part of K of two strips of 16 columns, multiplies it (mma.sync), and asks for what comes next
// in its place. Nobody waits for another but where the warps' sums come together, once for two strips.
//
// A CTA takes less than half of an SM, so that the next launch's lies beside it: its weights, if they are declared constant, are on their
// way while this one still multiplies. That is what few rows wait for elsewhere (docs/decisions/0020-a-ring-for-each-warp.md).
#pragma once

#include <cstddef>
#include <cstdint>

#include "arch/arch.cuh"
#include "arch/warp_mma.cuh"
#include "core/kernel_layout.hpp"
#include "core/ring_layout.hpp"
#include "kernel/epilogue/finish_elements.cuh"
#include "kernel/gemm_params.cuh"

namespace sluice {

template <KernelConfig config>
class RingKernel {
 public:
  SLUICE_DEVICE RingKernel(const GemmParams& params, std::byte* shared)
      : params_(params),
        warp_(arch::warp_in_cta()),
        lane_(arch::lane()),
        ctas_(arch::ctas_in_grid()),
        ring_(shared + warp_ * kStages * kStageBytes),
        barriers_(reinterpret_cast<arch::Barrier*>(shared + ring_barrier_offset(config)) + warp_ * kStages),
        sums_(arch::shared_address(shared + ring_sums_offset(config))),
        zero_(static_cast<std::uint32_t>(params.epilogue.m) >> 31) {
    const int row = memory_row(lane_ / 4), quarter = lane_ % 4;
    low_ = bytes(row * kRingRowBytes + (quarter ^ row) * 16);
    high_ = bytes(row * kRingRowBytes + ((quarter + 4) ^ row) * 16);
  }

  SLUICE_DEVICE void run() {
    if (params_.early_successor) arch::allow_successor();
    if (lane_ == 0) make_barriers();
    arch::sync_warp();
    const bool constant = params_.mainloop.p.constant;
    if (!constant) arch::wait_for_predecessor();
    Place weights = first(), rows = weights;
    SLUICE_NO_UNROLL
    for (int i = 0; i < kStages; ++i) ask_for_weights(weights, 0);
    find_rows();
    if (constant) arch::wait_for_predecessor();
    SLUICE_NO_UNROLL
    for (int i = 0; i < kStages; ++i) ask_for_rows(rows);
    SLUICE_NO_UNROLL
    for (int strip = arch::cta_in_grid(); inside(strip); strip += kRingStrips * ctas_) {
      Sums sums = {};
      SLUICE_NO_UNROLL
      for (int k_tile = warp_; k_tile < params_.scheduler.k_tiles; k_tile += kRingWarps) multiply(sums, inside(strip + ctas_), rows);
      bring_together(sums, strip);
    }
  }

 private:
  static constexpr DataType kType = config.type_a;
  static constexpr int kStages = kRingStages, kStageBytes = ring_stage_bytes(config), kStripBytes = ring_strip_bytes(config);
  static constexpr int kColumns = 16;                            // of a strip: rows of mma's first operand
  static constexpr int kGroups = config.tile_m / 8;              // of rows of A: columns of mma's second operand
  static constexpr int kRowsOffset = kRingStrips * kStripBytes;  // in a stage
  static constexpr int kHalfBytes = 8 * kRingRowBytes;           // eight columns of a strip, or rows of A
  static constexpr int kPacketElems = 8, kPacketsPerRow = kRingElems / kPacketElems, kRowsAtOnce = 32 / kPacketsPerRow;
  static_assert(config.tile_n == kColumns && config.tile_m % 8 == 0 && config.tile_k == kRingElems && cluster_size(config) == 1);
  static_assert(ring_shared_bytes(config) <= kSharedMemoryPerSmBytes / 2 - kSharedMemoryPerCtaReservedBytes);

  // mma's, of 16 columns and eight rows.
  using Sums = float[kRingStrips][kGroups][4];

  // What a warp asks for next: its k-tiles of this CTA's first two strips, then of the next two. Strips are dealt out in turn.
  struct Place {
    int strip;
    int k_tile;
    int stage;
  };
  SLUICE_DEVICE Place first() const {
    return {warp_ < params_.scheduler.k_tiles ? arch::cta_in_grid() : params_.scheduler.tiles_n, warp_, 0};
  }
  SLUICE_DEVICE void advance(Place& at) const {
    at.stage = at.stage + 1 == kStages ? 0 : at.stage + 1;
    at.k_tile += kRingWarps;
    if (at.k_tile < params_.scheduler.k_tiles) return;
    at.k_tile = warp_;
    at.strip += kRingStrips * ctas_;
  }
  SLUICE_DEVICE bool inside(int strip) const { return strip < params_.scheduler.tiles_n; }

  // A stage is full when its weights have come and each lane's part of the rows.
  SLUICE_DEVICE void make_barriers() const {
    SLUICE_UNROLL
    for (int stage = 0; stage < kStages; ++stage) arch::barrier_init(barriers_ + stage, 1 + 32);
    arch::fence_barrier_init();
  }

  // `nothing` is 0. Where a stage was in use, it is known when the loads from it have ended.
  SLUICE_DEVICE void ask_for_weights(Place& at, std::uint32_t nothing) const {
    if (!inside(at.strip)) return;
    if (arch::elect_one()) {
      const OperandParams& b = params_.mainloop.p;
      const bool two = inside(at.strip + ctas_);
      std::byte* const to = ring_ + at.stage * kStageBytes;
      const int k = at.k_tile * kRingElems + static_cast<int>(nothing);
      arch::barrier_arrive_expect_bytes(barriers_ + at.stage, two ? 2 * b.stage_bytes : b.stage_bytes);
      arch::tma_load(to, b.map, {k, at.strip * kColumns, 0}, barriers_ + at.stage, b.policy);
      if (two) arch::tma_load(to + kStripBytes, b.map, {k, (at.strip + ctas_) * kColumns, 0}, barriers_ + at.stage, b.policy);
    }
    arch::sync_warp();
    advance(at);
  }

  // The packets of the rows of A that this lane copies: of every fourth row, from one on. Swizzled as the copy engine swizzles weights.
  SLUICE_DEVICE void find_rows() {
    const int row = lane_ / kPacketsPerRow, packet = lane_ % kPacketsPerRow;
    rows_ = static_cast<const std::uint16_t*>(params_.mainloop.q.data) + row * params_.mainloop.q.leading_elems + packet * kPacketElems;
    rows_step_ = kRowsAtOnce * params_.mainloop.q.leading_elems;
    rows_left_ = params_.epilogue.m - row;
    elems_left_ = params_.mainloop.k - packet * kPacketElems;
    rows_to_ = bytes(kRowsOffset + row * kRingRowBytes + (packet ^ row) * 16);
  }
  // What lies behind K or M becomes 0. They are fetched again for every two strips of each CTA, and stay in L2 while weights pass through.
  SLUICE_DEVICE void ask_for_rows(Place& at) const {
    if (!inside(at.strip)) return;
    constexpr std::uint32_t kThirdBitOfPacket = 4 * 16;  // which the swizzle of a row four further on changes
    const int k = at.k_tile * kRingElems, left = elems_left_ - k;
    const int count = left <= 0 ? 0 : left < kPacketElems ? left * 2 : 16;
    const arch::SharedAddress to = stage(at.stage) + rows_to_;
    const std::uint16_t* from = rows_ + k;
    SLUICE_UNROLL
    for (int i = 0; i < config.tile_m / kRowsAtOnce; ++i) {
      arch::copy_packet_async((i % 2 == 0 ? to : to ^ kThirdBitOfPacket) + bytes(i * kRowsAtOnce * kRingRowBytes), from,
                              i * kRowsAtOnce < rows_left_ ? count : 0, arch::CachePolicy::evict_last);
      from += rows_step_;
    }
    arch::barrier_arrive_when_copied(barriers_ + at.stage);
    advance(at);
  }

  // Takes the next stage, and asks for another in its place. Of K, mma's steps take what lies side by side in memory, 8 elements of a lane
  // for two of them: in which order is nobody's concern, as long as it is the same for both operands.
  SLUICE_DEVICE void multiply(Sums& sums, bool two, Place& ahead) {
    arch::barrier_wait(barriers_ + stage_, parity_);
    std::uint32_t x[kGroups][2][4], w[kRingStrips][2][2][4];  // ... of the two halves of K; of the two halves of a strip
    std::uint32_t loaded = 0;
    SLUICE_UNROLL
    for (int i = 0; i < kRingStrips; ++i) {
      if (i > 0 && !two) break;
      SLUICE_UNROLL
      for (int part = 0; part < 2; ++part) {
        load_halves(i * kStripBytes + part * kHalfBytes, w[i][part]);
        loaded ^= w[i][part][0][0] ^ w[i][part][1][0];  // a word of each load
      }
    }
    arch::sync_warp();  // all lanes have asked for the weights
    Place again = ahead;
    // First: each cycle until then is one without its bytes on their way. But loads take time, and the copy engine does not wait for them.
    ask_for_weights(again, arch::zero_after_loads(loaded, zero_));
    SLUICE_UNROLL
    for (int i = 0; i < kGroups; ++i) load_halves(kRowsOffset + i * kHalfBytes, x[i]);
    arch::sync_warp();  // all lanes have read the rows
    ask_for_rows(ahead);
    SLUICE_UNROLL
    for (int i = 0; i < kRingStrips; ++i) {
      if (i > 0 && !two) break;
      SLUICE_UNROLL
      for (int half = 0; half < 2; ++half) {
        SLUICE_UNROLL
        for (int step = 0; step < 4; step += 2) {
          const std::uint32_t columns[4] = {w[i][0][half][step], w[i][1][half][step], w[i][0][half][step + 1], w[i][1][half][step + 1]};
          SLUICE_UNROLL
          for (int group = 0; group < kGroups; ++group)
            arch::mma<kType>(sums[i][group], columns, x[group][half][step], x[group][half][step + 1]);
        }
      }
    }
    stage_ = stage_ + 1 == kStages ? 0 : stage_ + 1;
    if (stage_ == 0) parity_ ^= 1;
  }
  // Row r of mma is the row of eight in memory with which the 16 bytes that eight lanes read at a time lie in eight different banks.
  static SLUICE_DEVICE constexpr int memory_row(int row) { return row % 2 * 4 + row / 2; }
  SLUICE_DEVICE void load_halves(int offset, std::uint32_t (&words)[2][4]) const {
    const arch::SharedAddress at = stage(stage_) + bytes(offset);
    arch::load_shared(at + low_, words[0]);
    arch::load_shared(at + high_, words[1]);
  }

  static constexpr int kRowColumns = kRingStrips * kColumns, kSumBytes = ring_sum_bytes(config), kBuffers = ring_sum_buffers(config);
  // In rows of 32 columns, of which each fourth part is moved to other banks.
  static SLUICE_DEVICE std::uint32_t place_of_sum(int row, int column) { return bytes((row * kRowColumns + (column ^ row % 4 * 8)) * 4); }

  // The warps' sums, in their order.
  SLUICE_DEVICE void bring_together(const Sums& sums, int first_strip) {
    if (kBuffers == 1 && meetings_ > 0) arch::sync_cta();
    const arch::SharedAddress buffer = sums_ + bytes(static_cast<int>(meetings_ % kBuffers) * kRingWarps * kSumBytes);
    ++meetings_;
    SLUICE_UNROLL
    for (int i = 0; i < kRingStrips; ++i) {
      SLUICE_UNROLL
      for (int group = 0; group < kGroups; ++group) {
        SLUICE_UNROLL
        for (int e = 0; e < 4; ++e) {
          const int row = group * 8 + memory_row(lane_ % 4 * 2 + e % 2), column = i * kColumns + e / 2 * 8 + memory_row(lane_ / 4);
          arch::store_shared(buffer + bytes(warp_ * kSumBytes) + place_of_sum(row, column), sums[i][group][e]);
        }
      }
    }
    arch::sync_cta();
    const int pair = warp_ * 32 + lane_, row = pair / (kRowColumns / 2), column = pair % (kRowColumns / 2) * 2;
    const int strip = first_strip + column / kColumns * ctas_;
    if (row >= params_.epilogue.m || row >= config.tile_m || !inside(strip)) return;
    float total[2] = {0, 0};
    SLUICE_UNROLL
    for (int warp = 0; warp < kRingWarps; ++warp) {
      float part[2];
      arch::load_shared(buffer + bytes(warp * kSumBytes) + place_of_sum(row, column), part);
      total[0] += part[0];
      total[1] += part[1];
    }
    store(total, row, strip * kColumns + column % kColumns);
  }

  SLUICE_DEVICE void store(float (&total)[2], int row, int column) const {
    const EpilogueParams& params = params_.epilogue;
    const int count = params.n - column;
    if (count <= 0) return;
    total[0] *= params.alpha;
    total[1] *= params.alpha;
    if (params.path == StorePath::rounded)
      Neighbours<kType, 2>::store(total, params.d, row * params.ldd_elems + column, count < 2 ? count : 2, params.aligned_d);
    else
      finish_elements(params, row, column, 0, total);
  }

  SLUICE_DEVICE arch::SharedAddress stage(int number) const { return arch::shared_address(ring_) + bytes(number * kStageBytes); }
  static SLUICE_DEVICE constexpr std::uint32_t bytes(int count) { return static_cast<std::uint32_t>(count); }

  const GemmParams& params_;
  int warp_, lane_, ctas_;
  std::byte* ring_;  // this warp's
  arch::Barrier* barriers_;
  arch::SharedAddress sums_;
  std::uint32_t zero_;        // which the compiler does not know
  std::uint32_t low_, high_;  // what this lane reads of eight rows or columns: packets of both halves of K
  // What it copies of A.
  const std::uint16_t* rows_ = nullptr;
  std::int64_t rows_step_ = 0;
  int rows_left_ = 0, elems_left_ = 0;
  std::uint32_t rows_to_ = 0;
  // What is multiplied next.
  int stage_ = 0;
  std::uint32_t parity_ = 0;
  unsigned meetings_ = 0;
};

template <KernelConfig config>
SLUICE_DEVICE void run_ring_kernel(const GemmParams& params) {
  RingKernel<config>(params, arch::dynamic_shared_memory()).run();
}

}  // namespace sluice
