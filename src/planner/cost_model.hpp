// Predicted time of one candidate, from the device's figures, the kernel's geometry and the measured constants.
#pragma once

#include "sluice/calibration.hpp"
#include "sluice/plan.hpp"

namespace sluice {

// `workers` as in Plan::worker_count; `kernel_factor` as the function of that name says. The problem must be validated. `of_groups`: the
// batch stands for groups of rows, whose tiles are fetched and multiplied no further than rows go (kernel/mainloop/short_tile.cuh).
PredictedTime predict(const GemmProblem& problem, const DeviceSpec& device, const KernelConfig& kernel, const SchedulerParams& scheduler,
                      int workers, const Calibration& calibration, double kernel_factor, bool of_groups = false);

}  // namespace sluice
