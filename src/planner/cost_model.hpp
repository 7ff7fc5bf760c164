// Predicted time of one candidate, from the device's figures and the kernel's geometry.
#pragma once

#include "sluice/plan.hpp"

#include "planner/calibration/calibration.hpp"

namespace sluice {

// `workers` as in Plan::worker_count. The problem must be validated.
PredictedTime predict(const GemmProblem& problem, const DeviceSpec& device, const KernelConfig& kernel, const SchedulerParams& scheduler,
                      int workers);

// The same with other constants than those of this build.
PredictedTime predict(const GemmProblem& problem, const DeviceSpec& device, const KernelConfig& kernel, const SchedulerParams& scheduler,
                      int workers, const Calibration& calibration, double kernel_factor);

}  // namespace sluice
