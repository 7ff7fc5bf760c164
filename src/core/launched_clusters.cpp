#include "core/launched_clusters.hpp"

#include "core/occupancy.hpp"
#include "core/tile_parts.hpp"

namespace sluice {

int neighbours(const DeviceSpec& device, const KernelConfig& kernel, const SchedulerParams& s) {
  constexpr int kMostTiles = 32;
  const std::int64_t tiles = std::int64_t{s.tiles_m} * s.tiles_n;
  if (!takes_neighbours(kernel) || s.splits == 1 || s.reduction == Reduction::cluster || s.claim != WorkClaim::fixed || s.groups != 1 ||
      tiles > kMostTiles)
    return 1;
  const int ctas = tiles % 8 == 0 ? 8 : tiles == 4 ? 4 : 1;
  return tiles * s.splits <= cluster_places(device, ctas) * ctas ? ctas : 1;
}

int launched_cluster_size(const DeviceSpec& device, const KernelConfig& kernel, const SchedulerParams& s) {
  if (s.reduction == Reduction::cluster) return s.splits;
  const int together = neighbours(device, kernel, s);
  return together > 1 ? together : cluster_size(kernel);
}

}  // namespace sluice
