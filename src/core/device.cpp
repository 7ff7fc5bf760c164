#include "sluice/device.hpp"

#include <cstdlib>
#include <limits>
#include <utility>

namespace sluice {

// h200: measured on one H200 SXM, November 2026, CUDA 13.0, driver 580 (docs/h200.md says how). The others: sm_count, memory size
// and memory rate from NVIDIA's datasheets (H100 datasheet 2023; H20 by its published 148 TFLOP/s and 4.0 TB/s), clocks and the
// shares of the datasheet rates that can be had scaled from the h200's measurement. h10 is imaginary: four of the h200's SMs.
const std::vector<DeviceSpec>& builtin_devices() {
  static const std::vector<DeviceSpec> devices = {
      {.name = "h200",
       .sm_count = 132,
       .clusters_of_2 = 66,
       .l2_bytes = 60 << 20,
       .clock_ghz = 1.755,
       .hbm_gb_per_s = 4650,
       .l2_gb_per_s = 10200,
       .flops_per_clk_per_sm = 4096,
       .sustained_fraction = 0.83,
       .launch_us = 2.0},
      {.name = "h100-sxm",
       .sm_count = 132,
       .clusters_of_2 = 66,
       .l2_bytes = 50 << 20,
       .clock_ghz = 1.755,
       .hbm_gb_per_s = 3050,
       .l2_gb_per_s = 10200,
       .flops_per_clk_per_sm = 4096,
       .sustained_fraction = 0.83,
       .launch_us = 2.0},
      {.name = "h100-pcie",
       .sm_count = 114,
       .clusters_of_2 = 57,
       .l2_bytes = 50 << 20,
       .clock_ghz = 1.62,
       .hbm_gb_per_s = 1850,
       .l2_gb_per_s = 8100,
       .flops_per_clk_per_sm = 4096,
       .sustained_fraction = 0.55,
       .launch_us = 2.0},
      {.name = "h20",
       .sm_count = 78,
       .clusters_of_2 = 39,
       .l2_bytes = 60 << 20,
       .clock_ghz = 1.83,
       .hbm_gb_per_s = 3700,
       .l2_gb_per_s = 6300,
       .flops_per_clk_per_sm = 1024,
       .sustained_fraction = 1.0,
       .launch_us = 2.0},
      {.name = "h10",
       .sm_count = 4,
       .clusters_of_2 = 2,
       .l2_bytes = 2 << 20,
       .clock_ghz = 1.755,
       .hbm_gb_per_s = 140,
       .l2_gb_per_s = 310,
       .flops_per_clk_per_sm = 4096,
       .sustained_fraction = 1.0,
       .launch_us = 2.0},
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

Status validate(const DeviceSpec& device) {
  const std::string who = "device '" + device.name + "'";
  if (device.compute_capability != 90)
    return Error{ErrorCode::wrong_device, who + " has compute capability " + std::to_string(device.compute_capability / 10) + "." +
                                              std::to_string(std::abs(device.compute_capability % 10)) +
                                              "; the kernels need 9.0 (Hopper: H100, H200, H20)"};
  const auto bad = [&](const char* field, auto value, const std::string& must) {
    return Error{ErrorCode::invalid_argument, who + ": " + field + " = " + std::to_string(value) + " must be " + must};
  };
  // Twice as many workers as SMs are counted in 32 bits.
  constexpr int kMostSms = 1 << 20;
  if (device.sm_count < 1 || device.sm_count > kMostSms) return bad("sm_count", device.sm_count, "from 1 to " + std::to_string(kMostSms));
  if (device.clusters_of_2 < 0 || device.clusters_of_2 > device.sm_count / 2)
    return bad("clusters_of_2", device.clusters_of_2, "from 0 to half of sm_count, " + std::to_string(device.sm_count / 2));
  if (device.shared_memory_per_cta_bytes < 0) return bad("shared_memory_per_cta_bytes", device.shared_memory_per_cta_bytes, "0 or more");
  if (device.l2_bytes < 0) return bad("l2_bytes", device.l2_bytes, "0 or more");
  // Written so that a NaN fails.
  const auto positive = [](double value) { return value > 0 && value <= std::numeric_limits<double>::max(); };
  for (const auto& [field, value] : {std::pair{"clock_ghz", device.clock_ghz},
                                     {"hbm_gb_per_s", device.hbm_gb_per_s},
                                     {"l2_gb_per_s", device.l2_gb_per_s},
                                     {"flops_per_clk_per_sm", device.flops_per_clk_per_sm}})
    if (!positive(value)) return bad(field, value, "positive and finite");
  if (!positive(device.sustained_fraction) || device.sustained_fraction > 1)
    return bad("sustained_fraction", device.sustained_fraction, "above 0 and at most 1");
  if (device.launch_us != 0 && !positive(device.launch_us)) return bad("launch_us", device.launch_us, "0 or more, and finite");
  return Nothing{};
}

}  // namespace sluice
