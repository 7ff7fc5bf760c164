// Whether a scheduler's parameters make sense, for the planner and for those who are given a plan.
#pragma once

#include <cstdint>

#include "sluice/error.hpp"
#include "sluice/schedule.hpp"

namespace sluice {

// An item list steps past its end by up to as many items as there are clusters: both must fit in 32 bits.
inline constexpr std::int64_t kMostItems = std::int64_t{1} << 29;
// Of the tiles that stream-K cuts, so that the offset of any k-tile and of any cut fits.
inline constexpr std::int64_t kMostStreamKTiles = std::int64_t{1} << 30;

// Whether tiles lie end to end in ranges, which end anywhere within them.
inline bool is_stream_k(const SchedulerParams& s) { return s.kind == SchedulerKind::stream_k || s.kind == SchedulerKind::hybrid; }

// How the tiles are cut in k and dealt to `units` clusters. That the tiles cover the problem is check_plan()'s business.
Status check_scheduler(const SchedulerParams& params, std::int64_t units);

// Whether clusters that take their items in fixed turn can wait for one another for ever when only some are resident. Clusters start in
// the order of their numbers, so one may wait for itself and for lower numbers only. The last piece of a tile of split-K waits for every
// `tiles`-th item before it: those are other clusters' lower numbers if each has one item, its own if `tiles` is a multiple of the
// clusters, and may be anybody's otherwise. Stream-K waits for the cluster one below.
bool fixed_claim_can_stall(const SchedulerParams& params, std::int64_t units);

}  // namespace sluice
