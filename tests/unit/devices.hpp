// Built-in devices that many tests plan for.
#pragma once

#include "sluice/device.hpp"

namespace sluice {

inline const DeviceSpec& h200() {
  static const DeviceSpec device = *find_device("h200");
  return device;
}

}  // namespace sluice
