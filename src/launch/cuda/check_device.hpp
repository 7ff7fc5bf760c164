// Whether a plan can run on the current device.
#pragma once

#include "sluice/device.hpp"
#include "sluice/error.hpp"

namespace sluice {

// A plan for more SMs than there are would leave its clusters waiting for each other.
Status check_device(const DeviceSpec& planned);

}  // namespace sluice
