#include "launch/check_pieces.hpp"

#include <string>

#include "core/kernel_layout.hpp"
#include "core/tile_parts.hpp"
#include "scheduler/plan_workspace.hpp"

namespace sluice {

Status check_pieces(const Plan& plan) {
  if (split_tile_count(plan.scheduler) > 0 && !joins_pieces(plan.kernel))
    return Error{ErrorCode::unsupported, "the plan cuts tiles, which " + name(plan.kernel) + " cannot bring together; plan again"};
  if (plan.scheduler.reduction == Reduction::separate && !joins_in_slices(plan.kernel))
    return Error{ErrorCode::unsupported, "the plan has pieces meet in slices, which those of " + name(plan.kernel) + " cannot; plan again"};
  if (plan.scheduler.reduction == Reduction::cluster && !joins_in_cluster(plan.kernel))
    return Error{ErrorCode::unsupported,
                 "the plan has pieces meet in a cluster, which those of " + name(plan.kernel) + " cannot; plan again"};
  if (finds_scales(plan.problem) && (!can_find_scales(plan.kernel) || plan.scheduler.reduction != Reduction::workspace))
    return Error{ErrorCode::unsupported, "the plan has " + name(plan.kernel) +
                                             " find scales of 128 columns (scaling_d = 1x128), which it cannot" +
                                             (can_find_scales(plan.kernel) ? " where pieces share out a tile" : "") + "; plan again"};
  const std::size_t needed = workspace_bytes(plan.problem, plan.device, plan.kernel, plan.scheduler);
  if (plan.workspace_bytes < needed)
    return Error{ErrorCode::invalid_argument, "the plan asks for " + std::to_string(plan.workspace_bytes) +
                                                  " bytes of workspace, its schedule needs " + std::to_string(needed) + "; plan again"};
  return Nothing{};
}

}  // namespace sluice
