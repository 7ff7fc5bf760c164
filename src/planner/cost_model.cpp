#include "planner/cost_model.hpp"

#include <algorithm>
#include <cmath>

#include "core/kernel_layout.hpp"
#include "core/occupancy.hpp"
#include "scheduler/tile_order.hpp"

namespace sluice {
namespace {

double ceil_div(double a, double b) { return std::ceil(a / b); }

// Cycles the tensor cores of an SM need for one k-tile of a work tile. Below 32 columns of Q the issue of a wgmma and the read of P
// from shared memory (64 rows x 32 bytes at 128 bytes a cycle) cost more than the multiplication.
double cycles_per_k_tile(const DeviceSpec& device, const KernelConfig& kernel) {
  const double q = std::max(tile_q(kernel), 32);
  return 2.0 * tile_p(kernel) * q * kernel.tile_k / device.flops_per_clk_per_sm;
}

}  // namespace

PredictedTime predict(const GemmProblem& p, const DeviceSpec& device, const KernelConfig& kernel, const SchedulerParams& s, int workers) {
  PredictedTime t;
  const double clocks_per_us = device.clock_ghz * 1e3;
  const double ctas = cluster_size(kernel);
  const double tiles = cluster_tiles(s);
  // Clusters computing at once. Further ones, resident on the same SMs or waiting for one to leave, share the tensor cores with them.
  const double units = std::min(static_cast<double>(workers) / workers_per_cta(kernel), static_cast<double>(cluster_places(device, kernel)));
  const double k_tiles = s.k_tiles;

  // Pingpong's two workers share one set of tensor cores: a CTA's rounds are counted in single tiles.
  const double rounds = ceil_div(tiles, units);
  t.waves = tiles / units;
  t.busy_share = tiles * ctas / (rounds * device.sm_count);
  t.useful_share = static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.batch) /
                   (static_cast<double>(s.tiles_m) * kernel.tile_m * s.tiles_n * kernel.tile_n * s.groups);
  const double tile_us = k_tiles * cycles_per_k_tile(device, kernel) / clocks_per_us;
  t.matrix_us = rounds * tile_us;

  const double ab = size_bytes(p.type_ab), d = size_bytes(p.type_d);
  const double m = static_cast<double>(p.m), n = static_cast<double>(p.n), k = k_tiles > 0 ? static_cast<double>(p.k) : 0.0;
  const double batch = static_cast<double>(p.batch);
  const double reads_c = p.epilogue.beta != 0.0f ? 1 : 0;
  const double output_bytes = m * n * batch * d;
  t.hbm_us = ((m * k + k * n) * batch * ab + output_bytes * (1 + reads_c)) / (device.hbm_gb_per_s * 1e3);
  const double fetched_per_cluster_k_tile = kernel.tile_k * ab * (kernel.tile_m * kernel.cluster_m + kernel.tile_n * kernel.cluster_n);
  t.l2_us = (tiles * k_tiles * fetched_per_cluster_k_tile + output_bytes) / (device.l2_gb_per_s * 1e3);

  t.launch_us = device.launch_us;
  t.ramp_us = 0.6;
  const double epilogue_us = kernel.tile_m * kernel.tile_n * d / 16.0 / clocks_per_us;
  const bool hidden = kernel.schedule == KernelSchedule::pingpong && epilogue_us < tile_us;
  t.exposed_epilogue_us = hidden ? epilogue_us : rounds * epilogue_us * 0.5;
  t.total_us = t.launch_us + std::max({t.matrix_us, t.hbm_us, t.l2_us}) + t.ramp_us + t.exposed_epilogue_us;
  return t;
}

}  // namespace sluice
