// Times that `sluice bench --planner --out` wrote down, as a calibration takes them.
#pragma once

#include <string>

#include "bench/calibration_cases.hpp"
#include "sluice/error.hpp"

namespace sluice::bench {

// Adds those of a file's text to `measured`: each belongs to the candidate of the same kernel and the same cut in K that the planner has
// for the product today. Estimates, wrong results and candidates that are no more take no part.
Status add_recorded(const std::string& text, const DeviceSpec& device, CalibrationTimings& measured);

// What choices take of the fastest candidate's time where their products were not learnt from: learns `folds` times from the others.
struct LeftOut {
  double before = 1, after = 1;  // geometric means
  std::size_t products = 0;
};
LeftOut judge_left_out(const CalibrationTimings& measured, const DeviceSpec& device, const Calibration& start, int folds);

}  // namespace sluice::bench
