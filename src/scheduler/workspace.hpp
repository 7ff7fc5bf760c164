// What a plan keeps in the workspace while it runs: flags, one for each tile in pieces and each consumer warpgroup that shares it, then the
// sums that pieces leave for the one that completes their tile.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/gpc_places.hpp"
#include "core/kernel_layout.hpp"
#include "scheduler/single_items.hpp"

namespace sluice {

// How many places of the workspace WorkTile::split_tile can name.
SLUICE_HOST_DEVICE constexpr std::int32_t split_tile_count(const SchedulerParams& p) {
  if (p.reduction == Reduction::cluster) return 0;
  if (p.kind == SchedulerKind::split_k) return p.splits > 1 ? cluster_tiles(p) : 0;
  return p.stream_k_tiles > 0 ? p.stream_k_ranges : 0;
}

// The place in the workspace where a piece that does not complete its tile leaves its sums, below deposit_count(): so many places behind
// that of the piece before it. Under stream-K every range leaves one piece at most, so that its own number serves.
SLUICE_HOST_DEVICE constexpr std::int32_t deposit_step(const SchedulerParams& p) {
  return p.kind == SchedulerKind::split_k ? cluster_tiles(p) : 1;
}
SLUICE_HOST_DEVICE constexpr std::int32_t deposit_place(const WorkTile& tile, std::int32_t peer, std::int32_t step) {
  return tile.split_tile + peer * step;
}
SLUICE_HOST_DEVICE constexpr std::int64_t deposit_count(const SchedulerParams& p) {
  if (p.reduction == Reduction::cluster) return 0;
  if (p.kind == SchedulerKind::split_k) return std::int64_t{p.splits - (p.reduction == Reduction::workspace ? 1 : 0)} * cluster_tiles(p);
  return p.stream_k_tiles > 0 ? p.stream_k_ranges : 0;
}

// The same for all plans, so that any of them can use a workspace after any other: sums never lie where another plan has flags.
inline constexpr std::int64_t kFlagBytes = 65536;
inline constexpr std::int64_t kCounterFlag = kFlagBytes / 4 - 1;  // from which tickets are drawn
inline constexpr std::int64_t kPlaceFlags = kPlaceWords + 1;      // of tiles dealt by place: bits, and how many are set
inline constexpr std::int64_t kFirstPlaceFlag = kCounterFlag - kPlaceFlags;
inline constexpr std::int64_t kMostFlags = kFirstPlaceFlag;

// The part of a tile that one warpgroup holds, in fp32.
constexpr int part_elems(const KernelConfig& c) { return accumulators_per_thread(c) * kWarpgroupThreads; }
constexpr int parts_per_cluster_tile(const KernelConfig& c) { return sharing_warpgroups(c) * cluster_size(c); }

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
