// A plan is a value: which kernel, which schedule, and what was decided against. sluice/plan.hpp makes, prints and reads plans.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sluice/candidate.hpp"
#include "sluice/device.hpp"
#include "sluice/kernel_config.hpp"
#include "sluice/problem.hpp"
#include "sluice/schedule.hpp"

namespace sluice {

struct Plan {
  GemmProblem problem;  // validated: nothing is kPacked
  DeviceSpec device;
  KernelConfig kernel;
  SchedulerParams scheduler;
  int grid_ctas = 0;     // 0 when there is nothing to compute
  int worker_count = 0;  // clusters (cooperative) or clusters times consumer warpgroups (pingpong)
  int shared_memory_bytes = 0;
  std::size_t workspace_bytes = 0;
  PredictedTime predicted;
  std::vector<Candidate> candidates;  // the chosen one first, then the others in order of predicted time, then those that cannot run

  bool operator==(const Plan&) const = default;
};

}  // namespace sluice
