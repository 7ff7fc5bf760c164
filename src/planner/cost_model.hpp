// Predicted time of one candidate, from the device's figures and the kernel's geometry.
#pragma once

#include "sluice/plan.hpp"

namespace sluice {

// `workers` as in Plan::worker_count. The problem must be validated.
PredictedTime predict(const GemmProblem& problem, const DeviceSpec& device, const KernelConfig& kernel, const SchedulerParams& scheduler,
                      int workers);

}  // namespace sluice
