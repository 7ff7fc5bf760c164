// How large the clusters of a launch are.
#pragma once

#include "sluice/device.hpp"
#include "sluice/kernel_config.hpp"
#include "sluice/plan_value.hpp"
#include "sluice/problem.hpp"
#include "sluice/schedule.hpp"

namespace sluice {

// Neighbours: tiles side by side read the same lines of A and B. So the CTAs of a launch whose items are all there at once are put together
// as clusters of 8 (or 4, or 2), be the kernel's own clusters smaller: a cluster lies on one GPC, whose requests for a line count as one on
// their way to L2 if they come together. The CTAs know nothing of it. So many are together; 1: as the kernel has it, where operands are not
// shared both ways, or a place for each cluster is not sure.
int neighbours(const GemmProblem& p, const DeviceSpec& device, const KernelConfig& kernel, const SchedulerParams& s);

// With the kernel's own, and those in which pieces of a tile meet.
int launched_cluster_size(const Plan& plan);
// The CTAs that a launch is made of: where `grid_ctas` with items make no whole number of clusters, the last ones find none.
int launched_ctas(const Plan& plan);

}  // namespace sluice
