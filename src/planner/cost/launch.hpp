// What of a launch lies beside the one before.
#pragma once

#include "sluice/plan.hpp"
#include "sluice/problem.hpp"
#include "sluice/schedule.hpp"

namespace sluice {

// What is gained where pieces, or whole tiles, leave SMs free for the next launch, and lost where it comes late.
double early_successor_us(const SchedulerParams& s, double busy_share);
double early_launch_us(const GemmProblem& p, const KernelConfig& kernel, const SchedulerParams& s, double rounds, double busy_share);
double late_launch_us(const GemmProblem& p, const KernelConfig& kernel, const SchedulerParams& s, double rounds, const PredictedTime& t);

}  // namespace sluice
