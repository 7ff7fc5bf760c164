// How many workers and CTAs a schedule takes on a device.
#pragma once

#include <algorithm>
#include <cstdint>

#include "sluice/device.hpp"
#include "sluice/kernel_config.hpp"
#include "sluice/schedule.hpp"

#include "core/kernel_layout.hpp"
#include "core/occupancy.hpp"
#include "scheduler/tile_order.hpp"

namespace sluice {

inline int worker_count(const SchedulerParams& s, const DeviceSpec& device, const KernelConfig& kernel) {
  const std::int32_t tiles = cluster_tiles(s);
  const int units = s.kind == SchedulerKind::one_tile_per_cta ? tiles : std::min(clusters_that_fit(device, kernel), tiles);
  return units * workers_per_cta(kernel);
}

inline int grid_ctas(int workers, const KernelConfig& kernel) { return workers / workers_per_cta(kernel) * cluster_size(kernel); }

}  // namespace sluice
