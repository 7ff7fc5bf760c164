// What a candidate costs beside others where the power limit sets the clock.
#pragma once

#include <span>

#include "sluice/candidate.hpp"
#include "sluice/device.hpp"
#include "sluice/problem.hpp"

namespace sluice {

// PredictedTime::power_us of products of 16-bit operands, but groups, behind everything else that a prediction says.
void count_power(const GemmProblem& p, const DeviceSpec& device, std::span<Candidate> candidates);

}  // namespace sluice
