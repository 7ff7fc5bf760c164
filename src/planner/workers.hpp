// How many workers and CTAs a schedule takes on a device.
#pragma once

#include <algorithm>
#include <cstdint>

#include "sluice/device.hpp"
#include "sluice/kernel_config.hpp"
#include "sluice/schedule.hpp"

#include "core/kernel_layout.hpp"
#include "core/occupancy.hpp"
#include "scheduler/single_items.hpp"

namespace sluice {

// CTAs or clusters in the grid.
inline int unit_count(const SchedulerParams& s, const DeviceSpec& device, const KernelConfig& kernel) {
  const int items = item_count(s), persistent = std::min(clusters_that_fit(device, kernel), items);
  switch (s.kind) {
    case SchedulerKind::one_tile_per_cta:
      return items;
    case SchedulerKind::data_parallel:
      break;
    case SchedulerKind::split_k:  // dealt to fewer in fixed turn they might stall: see fixed_claim_can_stall()
      return s.claim == WorkClaim::fixed ? items : persistent;  // Reduction::cluster, too: a CTA for each piece
    case SchedulerKind::stream_k:
    case SchedulerKind::hybrid:
      return s.stream_k_ranges;
  }
  return persistent;
}

inline int worker_count(const SchedulerParams& s, const DeviceSpec& device, const KernelConfig& kernel) {
  return unit_count(s, device, kernel) * workers_per_cta(kernel);
}

inline int grid_ctas(int workers, const KernelConfig& kernel) { return workers / workers_per_cta(kernel) * cluster_size(kernel); }

}  // namespace sluice
