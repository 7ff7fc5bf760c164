// What the tensor cores of a device can do.
#pragma once

#include "sluice/device.hpp"
#include "sluice/types.hpp"

namespace sluice {

// A wgmma takes 32 bytes of K in the same time, whatever they hold: of FP8 twice as many elements.
inline double peak_tflop_per_s(const DeviceSpec& device, DataType type) {
  return device.sm_count * device.flops_per_clk_per_sm * (2.0 / size_bytes(type)) * device.clock_ghz * 1e-3;
}

}  // namespace sluice
