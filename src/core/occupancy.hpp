// How many clusters of a kernel a device holds at once.
#pragma once

#include "sluice/device.hpp"
#include "sluice/kernel_config.hpp"

namespace sluice {

// Disjoint sets of SMs, as large as a cluster.
inline int cluster_places(const DeviceSpec& device, const KernelConfig& kernel) {
  return cluster_size(kernel) == 1 ? device.sm_count : device.clusters_of_2;
}

inline int clusters_that_fit(const DeviceSpec& device, const KernelConfig& kernel) {
  return cluster_places(device, kernel) * kernel.ctas_per_sm;
}

}  // namespace sluice
