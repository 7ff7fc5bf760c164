// How a plan is launched: in clusters of how many CTAs, and what the launch behind it may do meanwhile.
#pragma once

#include "sluice/device.hpp"
#include "sluice/kernel_config.hpp"
#include "sluice/plan_value.hpp"
#include "sluice/problem.hpp"
#include "sluice/schedule.hpp"

namespace sluice {

// Neighbours: tiles side by side, whole or in pieces over the same k-tiles, read the same lines of A and B. Where a kernel has no cluster
// of its own to fetch them once, and all CTAs of the launch run at once, they are launched as clusters of 8 (pieces also of 4 or 2): a
// cluster lies on one GPC, whose requests for a line count as one on their way to L2 if they come together. The CTAs know nothing of it.
// Returns how many are together; 1: launched as the kernel is.
int neighbours(const GemmProblem& p, const DeviceSpec& device, const KernelConfig& kernel, const SchedulerParams& s);

// Whole tiles that would be neighbours but are too many for clusters of 8 are dealt by place: a CTA for each SM, and which tile it has
// depends on where it runs, so that tiles side by side are on one GPC (kernel/places.cuh). The workspace holds what is taken.
//
// Groups of rows: where A is a good part of what there is to read, each CTA's first tile, behind which it takes every so many-th.
bool dealt_by_place(const GemmProblem& p, const DeviceSpec& device, const KernelConfig& kernel, const SchedulerParams& s);
inline bool dealt_by_place(const Plan& plan) { return dealt_by_place(plan.problem, plan.device, plan.kernel, plan.scheduler); }

// Whether groups gain by being dealt so, if CTAs come by whole tiles in fixed turn.
bool places_suit_groups(const GemmProblem& p, const DeviceSpec& device, const KernelConfig& kernel, const SchedulerParams& s);

// With the kernel's own, and those in which pieces of a tile meet.
int launched_cluster_size(const Plan& plan);
// The CTAs that a launch is made of: where `grid_ctas` with items make no whole number of clusters, or are dealt by place, some find none.
int launched_ctas(const Plan& plan);

// Whether the next launch's CTAs may start as soon as there is room for them, and fetch what is constant.
bool successor_may_move_in(const Plan& plan);

}  // namespace sluice
