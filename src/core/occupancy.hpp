// How many clusters of a kernel a device holds at once.
#pragma once

#include "sluice/device.hpp"
#include "sluice/kernel_config.hpp"

namespace sluice {

// One CTA on an SM: the pipeline fills its shared memory.
inline int clusters_that_fit(const DeviceSpec& device, const KernelConfig& kernel) {
  return cluster_size(kernel) == 1 ? device.sm_count : device.clusters_of_2;
}

}  // namespace sluice
