// The workspace of a whole plan: of its schedule, and what is taken of tiles dealt by place.
#pragma once

#include "core/launched_clusters.hpp"
#include "scheduler/workspace.hpp"

namespace sluice {

inline std::size_t workspace_bytes(const GemmProblem& p, const DeviceSpec& device, const KernelConfig& kernel, const SchedulerParams& s) {
  const std::size_t of_pieces = workspace_bytes(s, kernel);
  return of_pieces == 0 && dealt_by_place(p, device, kernel, s) ? static_cast<std::size_t>(kFlagBytes) : of_pieces;
}

}  // namespace sluice
