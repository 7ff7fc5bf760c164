// What a calibration says of one kernel.
#pragma once

#include "sluice/calibration.hpp"

namespace sluice {

double kernel_factor(const Calibration& calibration, const KernelConfig& kernel);

}  // namespace sluice
