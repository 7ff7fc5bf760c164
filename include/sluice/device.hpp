// A GPU as data: plans for it can be made, looked at and simulated on any machine.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/error.hpp"

namespace sluice {

struct DeviceSpec {
  std::string name;
  int compute_capability = 90;  // major * 10 + minor; the kernels need 90
  int sm_count = 0;
  int clusters_of_2 = 0;  // clusters of two CTAs that fit at once, one CTA per SM
  int shared_memory_per_cta_bytes = 232448;
  std::int64_t l2_bytes = 0;

  double clock_ghz = 0;             // SM clock under a matrix load
  double hbm_gb_per_s = 0;          // streaming read
  double l2_gb_per_s = 0;           // all SMs reading
  double flops_per_clk_per_sm = 0;  // dense 16-bit wgmma; of 8-bit it is twice that
  double sustained_fraction = 1;    // of the matrix rate, that power allows on long runs
  double launch_us = 0;             // one launch behind another in a graph, with ramp up and drain

  bool operator==(const DeviceSpec&) const = default;
};

// Built in: h200, h100-sxm, h100-pcie, h20, and h10, a GPU of four SMs for teaching.
const std::vector<DeviceSpec>& builtin_devices();
Result<DeviceSpec> find_device(std::string_view name);

// Whether plans can be made for the device: Hopper, with positive and finite figures. Says which figure is wrong.
Status validate(const DeviceSpec& device);

// Every field by its name, so that a device of one's own can be planned for. Reading checks what validate() checks.
std::string to_json(const DeviceSpec& device);
Result<DeviceSpec> device_from_json(const std::string& text);

// The GPU that is current in the CUDA runtime: its SM count, clusters and memory as the driver reports them, its rates from
// the built-in device that resembles it most. Fails without a GPU, and for one that is not Hopper.
Result<DeviceSpec> current_device();

}  // namespace sluice
