// What follows from a KernelConfig: who computes which rows, how shared memory is laid out, how many stages fit. One set of
// functions, used by the planner, by the launch and by the kernel itself.
//
// Inside a kernel the operands are called P and Q. P stands on wgmma's 64-row side, Q on its N side: rows of A and columns of B,
// or the other way round (OperandOrder). Both are tiles of "vectors" (rows of A, columns of B) by elements of K.
#pragma once

#include "sluice/kernel_config.hpp"

#include "core/dequantisation.hpp"
#include "core/promotion.hpp"
#include "core/slices.hpp"
#include "core/streaming_layout.hpp"

namespace sluice {

inline constexpr int kWarpgroupThreads = 128, kWgmmaRows = 64;
inline constexpr int kSharedMemoryPerSmBytes = 233472;  // compute capability 9.0
inline constexpr int kSharedMemoryPerCtaReservedBytes = 1024;
inline constexpr int kSwizzleBytes = 128, kBarrierBytes = 8;
inline constexpr int kMostStages = 24;
inline constexpr int kWorkSlots = 4;          // work tiles that the dispatcher may be ahead of those who take them
inline constexpr int kWorkSlotBytes = 48;     // one WorkTile, in packets of 16
inline constexpr int kTicketBytes = 16;       // an item's number on its way through a cluster
inline constexpr int kReductionBarriers = 4;  // 3, rounded up to 16 bytes
inline constexpr int kVerdictBytes = 2 * 16;  // what one thread of each consumer warpgroup tells the others
inline constexpr int kWorkRingBytes =
    kWorkSlots * (kWorkSlotBytes + kTicketBytes + 4 * kBarrierBytes) + kReductionBarriers * kBarrierBytes + kVerdictBytes;

constexpr bool swapped(const KernelConfig& c) { return c.order == OperandOrder::columns_of_b; }
constexpr int tile_p(const KernelConfig& c) { return swapped(c) ? c.tile_n : c.tile_m; }
constexpr int tile_q(const KernelConfig& c) { return swapped(c) ? c.tile_m : c.tile_n; }

// CTAs of the cluster that hold the same tile of P or Q and load a slice of it each, for all.
constexpr int sharers_p(const KernelConfig& c) { return swapped(c) ? c.cluster_m : c.cluster_n; }
constexpr int sharers_q(const KernelConfig& c) { return swapped(c) ? c.cluster_n : c.cluster_m; }

// Whether K is the contiguous direction of the operand.
constexpr bool k_major_a(const KernelConfig& c) { return c.layout_a == Layout::row_major; }
constexpr bool k_major_b(const KernelConfig& c) { return c.layout_b == Layout::column_major; }
constexpr bool k_major_p(const KernelConfig& c) { return swapped(c) ? k_major_b(c) : k_major_a(c); }
constexpr bool k_major_q(const KernelConfig& c) { return swapped(c) ? k_major_a(c) : k_major_b(c); }

constexpr int consumer_warpgroups(const KernelConfig& c) {
  if (c.schedule == KernelSchedule::pingpong) return 2;
  if (tile_p(c) == 3 * kWgmmaRows || k_slices(c) == 3) return 3;
  return tile_p(c) > kWgmmaRows ? 2 : 1;
}
// Warpgroup 0 loads, and its last warp works out the tiles. The tensor memory accelerator needs one thread for each operand; ordinary loads
// are shared by all the other warps. (FP8: the third fetches scales.)
inline constexpr int kWarpsPerWarpgroup = 4;
inline constexpr int kDispatcherWarp = 3;
constexpr int producing_warps(const KernelConfig& c) { return c.load == LoadPath::tma && !promotes(c) ? 2 : kDispatcherWarp; }

// Workers of one CTA: who takes work tiles from the scheduler.
constexpr int workers_per_cta(const KernelConfig& c) { return c.schedule == KernelSchedule::pingpong ? 2 : 1; }
constexpr int threads_per_cta(const KernelConfig& c) {
  return streams(c) ? streaming_threads(c) : (1 + consumer_warpgroups(c)) * kWarpgroupThreads;
}

// Consumer warpgroups that hold parts of one tile.
constexpr int sharing_warpgroups(const KernelConfig& c) { return c.schedule == KernelSchedule::cooperative ? consumer_warpgroups(c) : 1; }
// Blocks of 64 rows of P that one warpgroup multiplies.
constexpr int blocks_per_warpgroup(const KernelConfig& c) { return tile_p(c) / kWgmmaRows / sharing_warpgroups(c); }
constexpr int first_block(const KernelConfig& c, int warpgroup) { return warpgroup % sharing_warpgroups(c) * blocks_per_warpgroup(c); }
constexpr int accumulators_per_thread(const KernelConfig& c) { return blocks_per_warpgroup(c) * tile_q(c) / 2; }

constexpr int largest_power_of_two_divisor(int value, int limit) {
  int width = limit;
  while (value % width != 0) width /= 2;
  return width;
}
// How the epilogue hands out 64 rows of P: in chunks of `width` columns of Q (wgmma N), `count` of them, and a last chunk of `rest` columns
// made of boxes of `rest_box`. A box's rows in shared memory are swizzled, so their length is a power of two, at most 128 bytes.
struct StoreChunks {
  int width = 0;
  int count = 0;
  int rest = 0;
  int rest_box = 0;
  constexpr int all() const { return count + (rest > 0 ? 1 : 0); }
};
constexpr StoreChunks store_chunks(const KernelConfig& c, int output_bytes) {
  const int widest = kSwizzleBytes / output_bytes;
  StoreChunks chunks{.width = swapped(c) && tile_q(c) < widest ? tile_q(c) : widest};
  chunks.count = tile_q(c) / chunks.width;
  chunks.rest = tile_q(c) % chunks.width;
  if (chunks.rest > 0) chunks.rest_box = largest_power_of_two_divisor(chunks.rest, widest);
  return chunks;
}
constexpr int staging_buffer_bytes(const KernelConfig& c) {
  const int columns = tile_q(c) < kSwizzleBytes / 2 ? tile_q(c) : kSwizzleBytes / 2;
  const int fp32_columns = columns < kSwizzleBytes / 4 ? columns : kSwizzleBytes / 4;
  return kWgmmaRows * (columns * 2 > fp32_columns * 4 ? columns * 2 : fp32_columns * 4);
}
// The boxes of D in which the copy engine stores a chunk of `width` columns of Q (swapped fp32 chunks are two boxes side by side).
constexpr int store_box_rows(const KernelConfig& c, int width) { return swapped(c) ? width : kWgmmaRows; }
constexpr int store_box_columns(const KernelConfig& c, int width, int output_bytes) {
  return swapped(c) ? kSwizzleBytes / output_bytes : width;
}

// What a CTA may have when ctas_per_sm of them share an SM.
constexpr int shared_memory_limit_bytes(const KernelConfig& c) {
  return kSharedMemoryPerSmBytes / c.ctas_per_sm - kSharedMemoryPerCtaReservedBytes;
}

constexpr int operand_bytes_p(const KernelConfig& c) {
  return dequantises(c) ? packed_tile_bytes(c.tile_n, c.tile_k) : tile_p(c) * c.tile_k * size_bytes(c.type_a);
}
constexpr int operand_bytes_q(const KernelConfig& c) { return tile_q(c) * c.tile_k * size_bytes(c.type_a); }
constexpr int stage_bytes(const KernelConfig& c) { return operand_bytes_p(c) + operand_bytes_q(c); }

struct SharedMemoryLayout {
  int stages = 0, stage_bytes = 0;
  int staging_buffers = 0;                   // for each consumer warpgroup
  int staging_offset = 0, scale_offset = 0;  // of all buffers, and of the scales of all stages
  int work_offset = 0;  // the ring of work tiles and that of tickets, then their barriers, a full and an empty one for each slot
  int ticket_offset = 0, work_barrier_offset = 0, ticket_barrier_offset = 0;
  int reduction_barrier_offset = 0;  // Reduction::cluster
  int verdict_offset = 0;            // Reduction::separate
  int barrier_offset = 0;            // of the stages
  int total_bytes = 0;

  bool operator==(const SharedMemoryLayout&) const = default;
};

// Room for a whole tile lets the epilogue end without waiting for the copy engine, but a ring of under four stages does not cover
// memory's latency: staging gives way to a longer ring. Slices of K need a buffer each: the first alone stores, the others leave sums.
constexpr SharedMemoryLayout shared_memory_layout(const KernelConfig& c) {
  constexpr int kMostStagingBuffers = 4, kFewestToOverlap = 2;
  if (streams(c)) return {.total_bytes = most_streaming_shared_bytes(c)};
  const int chunks = blocks_per_warpgroup(c) * store_chunks(c, 2).all(), fewest = k_slices(c) > 1 ? 1 : kFewestToOverlap;
  const int wanted = chunks < fewest ? fewest : chunks < kMostStagingBuffers ? chunks : kMostStagingBuffers;
  SharedMemoryLayout best;
  for (int buffers = wanted; buffers >= 1 && best.stages < enough_stages(c); buffers /= 2) {
    const int staging = buffers * consumer_warpgroups(c) * staging_buffer_bytes(c);
    const int ring = shared_memory_limit_bytes(c) - staging - kWorkRingBytes - 2 * kMostStages * kBarrierBytes;
    const int bytes = stage_bytes(c) + scale_bytes(c), fit = bytes > 0 ? in_whole_slices(c, ring / bytes) : 0,
              stages = fit < kMostStages ? fit : kMostStages;
    if (stages <= best.stages) continue;
    best = {.stages = stages, .stage_bytes = stage_bytes(c), .staging_buffers = buffers, .staging_offset = stages * stage_bytes(c)};
    best.scale_offset = best.staging_offset + staging;
    best.work_offset = best.scale_offset + stages * scale_bytes(c);
    best.ticket_offset = best.work_offset + kWorkSlots * kWorkSlotBytes;
    best.work_barrier_offset = best.ticket_offset + kWorkSlots * kTicketBytes;
    best.ticket_barrier_offset = best.work_barrier_offset + 2 * kWorkSlots * kBarrierBytes;
    best.reduction_barrier_offset = best.ticket_barrier_offset + 2 * kWorkSlots * kBarrierBytes;
    best.verdict_offset = best.reduction_barrier_offset + kReductionBarriers * kBarrierBytes;
    best.barrier_offset = best.work_offset + kWorkRingBytes;
    best.total_bytes = best.barrier_offset + 2 * stages * kBarrierBytes;
  }
  return best;
}

}  // namespace sluice
