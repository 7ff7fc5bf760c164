// How many clusters of a kernel a device holds at once.
#pragma once

#include "sluice/device.hpp"
#include "sluice/kernel_config.hpp"
#include "sluice/schedule.hpp"

namespace sluice {

// Disjoint sets of SMs, as large as a cluster. On an H200 clusters of 4 and 8 take 120 of 132 SMs at once (measured, November 2026):
// processor clusters are not multiples of them.
inline int cluster_places(const DeviceSpec& device, int ctas) {
  if (ctas == 1) return device.sm_count;
  if (ctas == 2 || device.clusters_of_2 == 0) return device.clusters_of_2;
  const int places = device.sm_count * 10 / 11 / ctas;
  return places == 0 && device.sm_count >= ctas ? 1 : places;
}
inline int cluster_places(const DeviceSpec& device, const KernelConfig& kernel) { return cluster_places(device, cluster_size(kernel)); }

inline int clusters_that_fit(const DeviceSpec& device, const KernelConfig& kernel) {
  return cluster_places(device, kernel) * kernel.ctas_per_sm;
}

// Clusters of the launch, with those in which pieces of a tile meet.
inline int launched_clusters_that_fit(const DeviceSpec& device, const KernelConfig& kernel, const SchedulerParams& s) {
  if (s.reduction != Reduction::cluster) return clusters_that_fit(device, kernel);
  return cluster_places(device, s.splits) * kernel.ctas_per_sm;
}

}  // namespace sluice
