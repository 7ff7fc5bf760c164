#include "sluice/device.hpp"

namespace sluice {

// h200: measured on one H200 SXM, November 2026, CUDA 13.0, driver 580 (docs/h200.md says how). The others: sm_count, memory size
// and memory rate from NVIDIA's datasheets (H100 datasheet 2023; H20 by its published 148 TFLOP/s and 4.0 TB/s), clocks and the
// shares of the datasheet rates that can be had scaled from the h200's measurement. h10 is imaginary: four of the h200's SMs.
const std::vector<DeviceSpec>& builtin_devices() {
  static const std::vector<DeviceSpec> devices = {
      {.name = "h200", .sm_count = 132, .clusters_of_2 = 66, .l2_bytes = 60 << 20, .clock_ghz = 1.755, .hbm_gb_per_s = 4650,
       .l2_gb_per_s = 10200, .flops_per_clk_per_sm = 4096, .sustained_fraction = 0.83, .launch_us = 2.0},
      {.name = "h100-sxm", .sm_count = 132, .clusters_of_2 = 66, .l2_bytes = 50 << 20, .clock_ghz = 1.755, .hbm_gb_per_s = 3050,
       .l2_gb_per_s = 10200, .flops_per_clk_per_sm = 4096, .sustained_fraction = 0.83, .launch_us = 2.0},
      {.name = "h100-pcie", .sm_count = 114, .clusters_of_2 = 57, .l2_bytes = 50 << 20, .clock_ghz = 1.62, .hbm_gb_per_s = 1850,
       .l2_gb_per_s = 8100, .flops_per_clk_per_sm = 4096, .sustained_fraction = 0.55, .launch_us = 2.0},
      {.name = "h20", .sm_count = 78, .clusters_of_2 = 39, .l2_bytes = 60 << 20, .clock_ghz = 1.83, .hbm_gb_per_s = 3700,
       .l2_gb_per_s = 6300, .flops_per_clk_per_sm = 1024, .sustained_fraction = 1.0, .launch_us = 2.0},
      {.name = "h10", .sm_count = 4, .clusters_of_2 = 2, .l2_bytes = 2 << 20, .clock_ghz = 1.755, .hbm_gb_per_s = 140,
       .l2_gb_per_s = 310, .flops_per_clk_per_sm = 4096, .sustained_fraction = 1.0, .launch_us = 2.0},
  };
  return devices;
}

Result<DeviceSpec> find_device(std::string_view name) {
  std::string known;
  for (const DeviceSpec& device : builtin_devices()) {
    if (device.name == name) return device;
    known += (known.empty() ? "" : ", ") + device.name;
  }
  return Error{ErrorCode::not_found, "no device is called '" + std::string(name) + "'; known are " + known};
}

}  // namespace sluice
