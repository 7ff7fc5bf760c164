// What memory and L2 are asked for, and how fast they answer.
#pragma once

#include "sluice/calibration.hpp"
#include "sluice/device.hpp"
#include "sluice/kernel_config.hpp"
#include "sluice/plan.hpp"
#include "sluice/problem.hpp"
#include "sluice/schedule.hpp"

namespace sluice {

// The device's memory, beside that which factors were measured with: 1, or less if it is slower.
double share_of_measured_memory(const Calibration& c, const DeviceSpec& device);
// How long it takes for so many bytes, and for a stream that has too few SMs.
double hbm_us(const Calibration& c, const DeviceSpec& device, double bytes, double factor);
double missing_sms_us(const KernelConfig& kernel, const PredictedTime& t);

// Bytes on top: of D (a share of its own) where rows of tiles are no whole lines of L2, of operands where ranges begin anywhere.
double share_of_broken_lines(const GemmProblem& p, const KernelConfig& kernel);
double bytes_fetched_again(const DeviceSpec& device, const SchedulerParams& s, double bytes_a, double bytes_b);

// Few pairs of pingpong in the last round ask for too little.
double lone_row_factor(const KernelConfig& kernel, const SchedulerParams& s, double waves);

// Of what CTAs fetch, the share that L2 is asked for: CTAs that begin together, and neighbours.
double share_of_requests(const GemmProblem& p, const KernelConfig& kernel, const SchedulerParams& s, double rounds);
double requests_of_neighbours(const KernelConfig& kernel, const SchedulerParams& s, int ctas);

}  // namespace sluice
