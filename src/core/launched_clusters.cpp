#include "core/launched_clusters.hpp"

#include <algorithm>
#include <cstdint>

#include "core/kernel_layout.hpp"
#include "core/occupancy.hpp"
#include "core/tile_parts.hpp"

namespace sluice {
namespace {

// Of 16-bit operands; with FP8 and weights of 4 bits nothing was gained, nor with larger tiles, which ask L2 for less.
bool shares_lines(const KernelConfig& c, const SchedulerParams& s) {
  constexpr int kMostElems = 128 * 128;
  const bool plain = c.load == LoadPath::tma && !streams(c) && !promotes(c) && !dequantises(c);
  const bool alone = cluster_size(c) == 1 && c.ctas_per_sm == 1 && c.tile_m * c.tile_n <= kMostElems;
  return plain && alone && (s.splits == 1 || takes_neighbours(c));
}

}  // namespace

// One H100, 25 November 2026: candidates of 54 products. With both operands shared whole tiles take 0.92 of the time if they are 61 to 120,
// 0.97 if less or in pairs; tiles in pieces 0.97. Where K is short, starting together costs more than is gained; so few CTAs as a third of
// the SMs do not wait for L2; and where operands are shared one way alone, memory binds, which wants to be asked by all GPCs alike.
int neighbours(const GemmProblem& p, const DeviceSpec& device, const KernelConfig& kernel, const SchedulerParams& s) {
  constexpr std::int64_t kShortestK = 1536;
  constexpr double kLeastBusyShare = 0.3;
  const bool at_once = p.grouping == Grouping::none && s.groups == 1 && s.claim == WorkClaim::fixed && s.stream_k_tiles == 0;
  if (!at_once || s.reduction == Reduction::cluster || !shares_lines(kernel, s)) return 1;
  const std::int64_t tiles = std::int64_t{s.tiles_m} * s.tiles_n, ctas = tiles * s.splits;
  const double busy = static_cast<double>(ctas) / device.sm_count;
  if (std::min(s.tiles_m, s.tiles_n) < 2 || p.k < kShortestK || busy < kLeastBusyShare) return 1;
  const auto fit = [&](int together) { return ctas <= std::int64_t{cluster_places(device, together)} * together; };
  const auto in_blocks = [&](int together) { return s.splits == 1 || tiles % together == 0; };
  if (fit(8)) return in_blocks(8) ? 8 : in_blocks(4) ? 4 : 1;
  return fit(2) && in_blocks(2) ? 2 : 1;
}

int launched_cluster_size(const Plan& plan) {
  if (plan.scheduler.reduction == Reduction::cluster) return plan.scheduler.splits;
  const int together = neighbours(plan.problem, plan.device, plan.kernel, plan.scheduler);
  return together > 1 ? together : cluster_size(plan.kernel);
}

int launched_ctas(const Plan& plan) {
  const int cluster = launched_cluster_size(plan);
  return (plan.grid_ctas + cluster - 1) / cluster * cluster;
}

}  // namespace sluice
