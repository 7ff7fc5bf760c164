// How large the clusters of a launch are.
#pragma once

#include "sluice/device.hpp"
#include "sluice/kernel_config.hpp"
#include "sluice/schedule.hpp"

namespace sluice {

// Neighbours: pieces of several tiles over the same k-tiles read the same lines of A and B. Where a kernel has no cluster of its own to
// fetch them once, its CTAs are launched as clusters of 8 or 4 such pieces all the same: a cluster lies on one GPC, whose requests for a
// line count as one on their way to L2 if they come together. The CTAs know nothing of it. 1: launched one by one, where tiles are too many
// for it to matter or do not come out even, or pieces too many for all clusters to be there at once.
int neighbours(const DeviceSpec& device, const KernelConfig& kernel, const SchedulerParams& s);

// With the kernel's own, and those in which pieces of a tile meet.
int launched_cluster_size(const DeviceSpec& device, const KernelConfig& kernel, const SchedulerParams& s);

}  // namespace sluice
