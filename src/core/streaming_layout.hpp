// What follows from a KernelConfig whose schedule is streaming: of weights of 4 bits, which go straight into registers
// (kernel/streaming/streaming_kernel.cuh), how the warps of a CTA share out their columns and K, how shared memory is laid out, and which
// problems fit. Of weights of 16 bits see core/ring_layout.hpp.
#pragma once

#include <cstdint>

#include "sluice/kernel_config.hpp"

#include "core/host_device.hpp"
#include "core/ring_layout.hpp"
#include "core/w4_layout.hpp"

namespace sluice {

constexpr bool streams(const KernelConfig& c) { return c.schedule == KernelSchedule::streaming; }
constexpr bool has_rings(const KernelConfig& c) { return streams(c) && c.type_b != DataType::int4; }

inline constexpr int kStreamingWarps = 16;
inline constexpr int kStreamThreads = 32 * kStreamingWarps;
inline constexpr int kMostStreamingTeams = 4;
constexpr int streaming_threads(const KernelConfig& c) { return has_rings(c) ? kRingThreads : kStreamThreads; }

// Shared memory: what the warps of a team have added up of a strip, twice, so that one can be brought together while the next is filled;
// a barrier for each part of K in which A arrives; the rows of A, along K, each followed by 16 bytes so that eight of them meet in no bank.
inline constexpr int kStreamingSharedBytes = 232448;
constexpr int most_streaming_shared_bytes(const KernelConfig& c) { return has_rings(c) ? ring_shared_bytes(c) : kStreamingSharedBytes; }
inline constexpr int kStreamingPartBytes = 32 * 16;  // of a warp: a fragment of 16 columns by 8 rows
inline constexpr int kStreamingBuffers = 2;
inline constexpr int kMostStreamingArrivals = 8;
inline constexpr int kStreamingBarrierOffset = kStreamingBuffers * kStreamingWarps * kStreamingPartBytes;
inline constexpr int kStreamingRowsOffset = kStreamingBarrierOffset + kMostStreamingArrivals * 16;
SLUICE_HOST_DEVICE constexpr std::int64_t streaming_row_bytes(std::int64_t k_tiles) { return k_tiles * kW4SlabElems * 2 + 16; }

// The CTAs of a cluster share out K, so that each needs a part of A alone, and multiply all strips of the cluster. What they have added up
// of a strip goes to the one that finishes it, the strip's number modulo their count.
constexpr int streaming_shares(const KernelConfig& c) { return c.cluster_n; }
SLUICE_HOST_DEVICE constexpr std::int32_t first_slab_of_share(std::int32_t k_tiles, int shares, int share) {
  const std::int32_t length = k_tiles / shares, longer = k_tiles - length * shares;
  return share * length + (share < longer ? share : longer);
}
SLUICE_HOST_DEVICE constexpr std::int64_t longest_share(std::int64_t k_tiles, int shares) { return (k_tiles + shares - 1) / shares; }
// Strips that a CTA finishes, of `tiles_n` in all.
constexpr std::int64_t strips_finished(std::int64_t tiles_n, std::int64_t ctas) { return (tiles_n + ctas - 1) / ctas; }

// What a launch asks for, and no more: the rest of an SM's memory is its L1, through which all that is on its way to registers comes (with
// all of it taken, 4096 x 4096 at M = 1 takes 5.7 instead of 4.9 us; one H200, 22 November 2026).
constexpr std::int64_t streaming_shared_bytes(const KernelConfig& c, std::int64_t m, std::int64_t k_tiles, std::int64_t strips) {
  if (has_rings(c)) return ring_shared_bytes(c);
  const int shares = streaming_shares(c);
  const std::int64_t received = shares > 1 ? strips * shares * kStreamingPartBytes : 0;
  return kStreamingRowsOffset + m * streaming_row_bytes(longest_share(k_tiles, shares)) + received;
}
constexpr bool fits_streaming(const KernelConfig& c, std::int64_t m, std::int64_t k, std::int64_t strips) {
  return m <= c.tile_m && streaming_shared_bytes(c, m, (k + c.tile_k - 1) / c.tile_k, strips) <= kStreamingSharedBytes;
}

// The warps that share the K of a strip of 16 columns, as a power of two. A CTA with `strips` of them has teams that take them in turn: the
// smallest ones that are not busy longer than larger ones would be.
constexpr int log2_streaming_team(std::int64_t strips) {
  int best = 4;  // all warps
  for (int log2 = 3; kStreamingWarps >> log2 <= kMostStreamingTeams; --log2) {
    const auto busy = [strips](int shift) {  // in warps' time, for one strip alone
      const std::int64_t teams = kStreamingWarps >> shift;
      return (strips + teams - 1) / teams * teams;
    };
    if (busy(log2) <= busy(best)) best = log2;
  }
  return best;
}
static_assert(log2_streaming_team(1) == 4 && log2_streaming_team(2) == 3 && log2_streaming_team(4) == 2 && log2_streaming_team(5) == 4 &&
              log2_streaming_team(14) == 3 && log2_streaming_team(28) == 2);

// What one warp has to do, if its CTA has `strips`: so many times a strip, and so many slabs of each.
struct StreamingShare {
  std::int64_t rounds, slabs;
};
constexpr StreamingShare share_of_streaming_warp(std::int64_t strips, std::int64_t k_tiles) {
  const int log2 = log2_streaming_team(strips), teams = kStreamingWarps >> log2, team = 1 << log2;
  return {(strips + teams - 1) / teams, (k_tiles + team - 1) / team};
}

// How many slabs a warp has asked for beyond the one it multiplies: more, if it has many of them. With few, the code for another takes
// longer to fetch than it saves (one H200, 23 November 2026: 3 or 4 for 4096 x 4096 at M = 1 4.9 or 5.3 us, for 57344 x 8192 64.7 or 62.1).
inline constexpr int kSlabsAhead = 3, kSlabsFarAhead = 4;
constexpr bool asks_far_ahead(std::int64_t strips, std::int64_t k_tiles) {
  constexpr std::int64_t kManySlabs = 18;
  const StreamingShare share = share_of_streaming_warp(strips, k_tiles);
  return share.rounds * share.slabs >= kManySlabs;
}

// A arrives in parts of K of so many slabs, as a power of two.
constexpr int log2_slabs_of_arrival(std::int64_t k_tiles) {
  int log2 = 0;
  while ((kMostStreamingArrivals << log2) < k_tiles) ++log2;
  return log2;
}

}  // namespace sluice
