// Predicted time of one candidate, from the device's figures, the kernel's geometry and the measured constants.
#pragma once

#include "sluice/calibration.hpp"
#include "sluice/plan.hpp"

namespace sluice {

// `workers` as in Plan::worker_count; `kernel_factor` as the function of that name says. The problem must be validated. `of_groups`: the
// batch stands for groups of rows, whose tiles are fetched and multiplied no further than rows go (kernel/mainloop/short_tile.cuh).
PredictedTime predict(const GemmProblem& problem, const DeviceSpec& device, const KernelConfig& kernel, const SchedulerParams& scheduler,
                      int workers, const Calibration& calibration, double kernel_factor, bool of_groups = false);

// SchedulerParams::lead for pieces that all run at once: from what is predicted of equal ones. 0 where the last piece waits for nobody.
std::int32_t lead_of_last_piece(const PredictedTime& equal, const Calibration& calibration, const KernelConfig& kernel,
                                const SchedulerParams& scheduler);

}  // namespace sluice
