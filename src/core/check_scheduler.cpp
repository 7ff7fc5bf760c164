#include "core/check_scheduler.hpp"

#include <algorithm>
#include <string>

namespace sluice {
namespace {

Error wrong(const std::string& what) { return {ErrorCode::invalid_argument, what}; }

std::string equation(const char* name, std::int64_t value) { return std::string(name) + " = " + std::to_string(value); }

std::int64_t work_tiles(const SchedulerParams& s) {
  return static_cast<std::int64_t>(s.tiles_m / s.cluster_m) * (s.tiles_n / s.cluster_n) * s.groups;
}

Status check_split_k(const SchedulerParams& s, std::int64_t units) {
  const std::int64_t most = std::max(1, s.k_tiles / s.min_k_tiles);
  if (s.splits < 1 || s.splits > most)
    return wrong(equation("splits", s.splits) + " must be from 1 to " + std::to_string(most) + ": the " + std::to_string(s.k_tiles) +
                 " k-tiles of a tile make no more pieces of " + std::to_string(s.min_k_tiles));
  const std::int64_t most_lead =
      s.reduction == Reduction::workspace && s.splits > 1 ? s.k_tiles - std::int64_t{s.splits} * s.min_k_tiles : 0;
  if (s.lead < 0 || s.lead > most_lead)
    return wrong(equation("lead", s.lead) + " must be from 0 to " + std::to_string(most_lead) + ": the " + std::to_string(s.splits) +
                 " pieces of a tile of " + std::to_string(s.k_tiles) + " k-tiles leave the last one no more than that beyond its share");
  if (work_tiles(s) * s.splits > kMostItems)
    return wrong(equation("splits", s.splits) + " makes " + std::to_string(work_tiles(s) * s.splits) + " pieces of " +
                 std::to_string(work_tiles(s)) + " tiles; the limit is 2^29, use fewer splits");
  if (s.reduction == Reduction::separate &&
      (s.splits > kMostPiecesInSlices || s.claim != WorkClaim::fixed || units != work_tiles(s) * s.splits))
    return wrong("pieces that meet in slices need fixed turn, at most " + std::to_string(kMostPiecesInSlices) +
                 " splits, and a CTA or cluster for each of the " + std::to_string(work_tiles(s) * s.splits) + " pieces");
  if (s.reduction == Reduction::cluster) {
    if (s.splits != 2 && s.splits != 4 && s.splits != 8)
      return wrong(equation("splits", s.splits) + " must be 2, 4 or 8 for pieces that meet in a cluster; others meet in the workspace");
    if (s.cluster_m * s.cluster_n != 1 || s.claim != WorkClaim::fixed || units != work_tiles(s) * s.splits)
      return wrong("pieces that meet in a cluster need a kernel without one, fixed turn, and a CTA for each of the " +
                   std::to_string(work_tiles(s) * s.splits) + " pieces");
  }
  if (s.claim == WorkClaim::fixed && fixed_claim_can_stall(s, units))
    return wrong(
        "the " + std::to_string(work_tiles(s) * s.splits) + " pieces dealt to " + std::to_string(units) +
        " clusters in fixed turn could wait for a cluster that has not started; claim by ticket, or take a cluster for each piece");
  return Nothing{};
}

Status check_stream_k(const SchedulerParams& s, std::int64_t units) {
  const std::int64_t tiles = work_tiles(s);
  if (s.stream_k_tiles < 0 || s.stream_k_tiles > tiles)
    return wrong(equation("stream_k_tiles", s.stream_k_tiles) + " must be from 0 to the " + std::to_string(tiles) + " tiles there are");
  if (s.k_tiles == 0 && s.stream_k_tiles > 0)
    return wrong(equation("stream_k_tiles", s.stream_k_tiles) + " must be 0: there are no k-tiles to be cut");
  if (s.kind == SchedulerKind::stream_k && s.k_tiles > 0 && s.stream_k_tiles != tiles)
    return wrong(equation("stream_k_tiles", s.stream_k_tiles) + " must be all " + std::to_string(tiles) +
                 " tiles under stream-k; hybrid leaves some whole");
  if (static_cast<std::int64_t>(s.stream_k_tiles) * s.k_tiles > kMostStreamKTiles)
    return wrong("stream-k over " + std::to_string(s.stream_k_tiles) + " tiles of " + std::to_string(s.k_tiles) +
                 " k-tiles has more than 2^30 places for a cut; use hybrid, which cuts fewer tiles");
  if (s.stream_k_ranges != units)
    return wrong(equation("stream_k_ranges", s.stream_k_ranges) + " must be the number of clusters, " + std::to_string(units));
  if (s.stream_k_regions < 1 || s.stream_k_ranges % s.stream_k_regions != 0 || s.stream_k_tiles % s.stream_k_regions != 0)
    return wrong(equation("stream_k_regions", s.stream_k_regions) + " must divide both the " + std::to_string(s.stream_k_tiles) +
                 " tiles that are cut and the " + std::to_string(s.stream_k_ranges) + " clusters that share them; 1 always does");
  return Nothing{};
}

}  // namespace

bool fixed_claim_can_stall(const SchedulerParams& s, std::int64_t units) {
  if (s.kind != SchedulerKind::split_k || s.splits <= 1) return false;
  if (s.reduction == Reduction::separate) return false;  // nobody waits for ever
  return work_tiles(s) * s.splits > units && work_tiles(s) % units != 0;
}

Status check_scheduler(const SchedulerParams& s, std::int64_t units) {
  if (s.min_k_tiles < 1) return wrong(equation("min_k_tiles", s.min_k_tiles) + " must be at least 1");
  if (s.kind != SchedulerKind::split_k && s.reduction != Reduction::workspace)
    return wrong(std::string("reduction = ") + to_string(s.reduction) + " goes with split-k only, not with " + to_string(s.kind));
  if (s.kind != SchedulerKind::split_k && s.splits != 1)
    return wrong(equation("splits", s.splits) + " must be 1 under " + to_string(s.kind) + "; only split-k has another number");
  if (s.kind != SchedulerKind::split_k && s.lead != 0)
    return wrong(equation("lead", s.lead) + " must be 0 under " + to_string(s.kind) + "; only split-k has a last piece that is longer");
  if (!is_stream_k(s) && (s.stream_k_tiles != 0 || s.stream_k_ranges != 0 || s.stream_k_regions != 1))
    return wrong(std::string("stream_k_tiles and stream_k_ranges must be 0 and stream_k_regions 1 under ") + to_string(s.kind) +
                 "; only stream-k and hybrid have other numbers");
  if (s.kind == SchedulerKind::split_k) return check_split_k(s, units);
  return is_stream_k(s) ? check_stream_k(s, units) : Nothing{};
}

}  // namespace sluice
