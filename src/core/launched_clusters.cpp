#include "core/launched_clusters.hpp"

#include <algorithm>
#include <cstdint>

#include "core/expected_rows.hpp"
#include "core/gpc_places.hpp"
#include "core/groups.hpp"
#include "core/kernel_layout.hpp"
#include "core/kernel_line.hpp"
#include "core/occupancy.hpp"
#include "core/tile_parts.hpp"

namespace sluice {
namespace {

// Whether all CTAs of the launch run at once, and several of them read the same lines of A and of B.
// One H100, 25 November 2026: candidates of 54 products. With both operands shared whole tiles take 0.92 of the time if they are 61 to 120,
// 0.97 if less; tiles in pieces 0.97. Where K is short, starting together costs more than is gained; so few CTAs as a third of the SMs do
// not wait for L2; and where operands are shared one way alone, memory binds, which wants to be asked by all GPCs alike.
bool requests_could_meet(const GemmProblem& p, const DeviceSpec& device, const KernelConfig& kernel, const SchedulerParams& s) {
  constexpr std::int64_t kShortestK = 1536;
  constexpr double kLeastBusyShare = 0.3;
  const bool at_once = p.grouping == Grouping::none && s.groups == 1 && s.claim == WorkClaim::fixed && s.stream_k_tiles == 0;
  if (!at_once || s.reduction == Reduction::cluster || !shares_lines(kernel) || (s.splits > 1 && !takes_neighbours(kernel))) return false;
  const std::int64_t ctas = std::int64_t{s.tiles_m} * s.tiles_n * s.splits;
  const double busy = static_cast<double>(ctas) / device.sm_count;
  return std::min(s.tiles_m, s.tiles_n) >= 2 && p.k >= kShortestK && busy >= kLeastBusyShare && ctas <= device.sm_count;
}

bool fit(const DeviceSpec& device, const SchedulerParams& s, int together) {
  return std::int64_t{s.tiles_m} * s.tiles_n * s.splits <= std::int64_t{cluster_places(device, together)} * together;
}

}  // namespace

// One H200, 29 November 2026: 256 groups of 128 x 512 x 7168 in FP8, each row of which four CTAs read, take 292 us by place, 297 launched
// in pairs, 313 without either and 316 by ticket. With wide weights (N of 4096 and more) places gain 1% or lose 2%, and tickets gain 1 to
// 2%.
bool places_suit_groups(const GemmProblem& p, const DeviceSpec& device, const KernelConfig& kernel, const SchedulerParams& s) {
  constexpr int kMostTimesA = 8;  // as many bytes of B as of A
  if (!is_grouped(p) || device.sm_count > kMostPlaces || !claims_places(with_scope(kernel, KernelScope::groups))) return false;
  const bool side_by_side = s.raster == Rasterization::along_n && s.tiles_n > 1;
  if (!side_by_side || std::int64_t{s.tiles_m} * s.tiles_n * s.groups < device.sm_count) return false;
  const std::int64_t rows = expected_rows(p);
  return rows <= kernel.tile_m && p.n <= kMostTimesA * rows;
}

int neighbours(const GemmProblem& p, const DeviceSpec& device, const KernelConfig& kernel, const SchedulerParams& s) {
  if (!requests_could_meet(p, device, kernel, s)) return 1;
  const auto in_blocks = [&](int together) { return s.splits == 1 || std::int64_t{s.tiles_m} * s.tiles_n % together == 0; };
  if (fit(device, s, 8)) return in_blocks(8) ? 8 : in_blocks(4) ? 4 : 1;
  return s.splits > 1 && fit(device, s, 2) && in_blocks(2) ? 2 : 1;
}

bool dealt_by_place(const GemmProblem& p, const DeviceSpec& device, const KernelConfig& kernel, const SchedulerParams& s) {
  if (is_grouped(p))
    return s.splits == 1 && s.stream_k_tiles == 0 && s.claim == WorkClaim::fixed && places_suit_groups(p, device, kernel, s);
  return s.splits == 1 && claims_places(kernel) && device.sm_count <= kMostPlaces && requests_could_meet(p, device, kernel, s) &&
         !fit(device, s, 8);
}

int launched_cluster_size(const Plan& plan) {
  if (plan.scheduler.reduction == Reduction::cluster) return plan.scheduler.splits;
  const int together = neighbours(plan.problem, plan.device, plan.kernel, plan.scheduler);
  return together > 1 ? together : cluster_size(plan.kernel);
}

int launched_ctas(const Plan& plan) {
  if (dealt_by_place(plan)) return plan.device.sm_count;
  const int cluster = launched_cluster_size(plan);
  return (plan.grid_ctas + cluster - 1) / cluster * cluster;
}

// (One H200, 21 November 2026.)
// Not beside CTAs that fill half of an SM: the two would compete while one is late (14.8 instead of 13.6 us for 50 MB).
// Not beside a long run on part of the SMs: the next one's CTAs would crowd where there was room, and run so (5120 x 25600 on 80 CTAs).
bool successor_may_move_in(const Plan& plan) {
  constexpr double kLongRunUs = 30;
  const bool fills_device = plan.grid_ctas * 10 >= plan.device.sm_count * 9;
  return plan.kernel.ctas_per_sm == 1 && (fills_device || plan.predicted.total_us < kLongRunUs);
}

}  // namespace sluice
