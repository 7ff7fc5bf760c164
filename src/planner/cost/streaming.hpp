// Streaming kernels, with rings and without: what weights and rows of A cost an SM.
#pragma once

#include "sluice/calibration.hpp"
#include "sluice/device.hpp"
#include "sluice/kernel_config.hpp"
#include "sluice/problem.hpp"
#include "sluice/schedule.hpp"

namespace sluice {

// Cycles of the busiest SM, without rings and with.
double streaming_clk(const GemmProblem& p, const KernelConfig& kernel, const SchedulerParams& s, double clusters);
double rings_clk(const Calibration& c, const GemmProblem& p, const KernelConfig& kernel, const SchedulerParams& s, double units);

// What the last strips of kernels with rings take longer than an even share of memory, all_us for all; and the loss beside slow memory.
double rings_tail_us(const GemmProblem& p, const KernelConfig& kernel, const SchedulerParams& s, double units, double all_us,
                     double clocks_per_us);
double rings_on_slow_memory(const Calibration& c, const DeviceSpec& device, const GemmProblem& p);

// How often rows of A are fetched.
double fetches_of_rows(const KernelConfig& kernel, const SchedulerParams& s, double units);

}  // namespace sluice
