// Predicted time of one candidate, from the device's figures, the kernel's geometry and the measured constants.
#pragma once

#include "sluice/calibration.hpp"
#include "sluice/plan.hpp"

namespace sluice {

// `workers` as in Plan::worker_count; `kernel_factor` as the function of that name says. The problem must be validated.
PredictedTime predict(const GemmProblem& problem, const DeviceSpec& device, const KernelConfig& kernel, const SchedulerParams& scheduler,
                      int workers, const Calibration& calibration, double kernel_factor);

}  // namespace sluice
