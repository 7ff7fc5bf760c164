// What a plan keeps in the workspace while it runs: flags, one for each tile in pieces and each consumer warpgroup that shares it, then the
// sums that pieces leave for the one that completes their tile.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/kernel_layout.hpp"
#include "scheduler/items.hpp"

namespace sluice {

// The same for all plans, so that any of them can use a workspace after any other: sums never lie where another plan has flags.
inline constexpr std::int64_t kFlagBytes = 65536;
inline constexpr std::int64_t kCounterFlag = kFlagBytes / 4 - 1;  // from which tickets are drawn
inline constexpr std::int64_t kMostFlags = kCounterFlag;

// Consumer warpgroups that hold parts of one tile.
constexpr int sharing_warpgroups(const KernelConfig& c) { return c.schedule == KernelSchedule::cooperative ? consumer_warpgroups(c) : 1; }
// The part of a tile that one warpgroup holds, in fp32.
constexpr int part_elems(const KernelConfig& c) { return accumulators_per_thread(c) * kWarpgroupThreads; }
constexpr int parts_per_cluster_tile(const KernelConfig& c) { return sharing_warpgroups(c) * cluster_size(c); }

// Pieces whose sums are fetched together: a round trip to L2 takes as long for 16 packets of 16 bytes a thread as for one.
constexpr int pieces_at_once(const KernelConfig& c) {
  constexpr int kElemsInFlight = 16 * 4;
  return kElemsInFlight / accumulators_per_thread(c) > 1 ? kElemsInFlight / accumulators_per_thread(c) : 1;
}

inline std::int64_t flag_count(const SchedulerParams& s, const KernelConfig& c) {
  return std::int64_t{split_tile_count(s)} * parts_per_cluster_tile(c);
}
inline std::size_t workspace_bytes(const SchedulerParams& s, const KernelConfig& c) {
  const std::int64_t parts = deposit_count(s) * parts_per_cluster_tile(c);
  return parts == 0 && s.claim == WorkClaim::fixed
             ? 0
             : static_cast<std::size_t>(kFlagBytes + parts * part_elems(c) * std::int64_t{sizeof(float)});
}

}  // namespace sluice
