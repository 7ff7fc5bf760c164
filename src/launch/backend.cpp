// Which machine carries a plan out when nobody has said.
#include "sluice/device.hpp"
#include "sluice/emulator.hpp"

#include "core/kernel_layout.hpp"
#include "scheduler/tile_order.hpp"

namespace sluice {

double emulated_seconds(const Plan& plan) {
  // Measured over the kernel list on one core of a server, November 2026: a thread's start, a tile's multiplications, and what each k-tile
  // costs beside them (turns of threads, checks of accesses).
  constexpr double kPerCta = 2e-3, kPerMultiplyAdd = 0.08e-9, kPerKTile = 0.15e-3, kPerOutput = 20e-9;
  const KernelConfig& k = plan.kernel;
  const double tiles = static_cast<double>(cluster_tiles(plan.scheduler)) * cluster_size(k),
               elements = static_cast<double>(k.tile_m) * k.tile_n;
  return plan.grid_ctas * kPerCta +
         tiles * (elements * kPerOutput + plan.scheduler.k_tiles * (kPerKTile + elements * k.tile_k * kPerMultiplyAdd));
}

Backend automatic_backend(const Plan& plan) {
  constexpr double kPatienceSeconds = 5;
  if (built_with_cuda() && current_device().ok()) return Backend::cuda;
  return built_with_emulator() && emulated_seconds(plan) <= kPatienceSeconds ? Backend::emulator : Backend::reference;
}

}  // namespace sluice
