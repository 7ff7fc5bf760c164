// `sluice calibrate`: times candidates on this GPU and fits the cost model's constants to them. See docs/calibration.md.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "sluice/calibration.hpp"

namespace sluice {

struct CalibrationOptions {
  std::string suites;      // as BenchOptions::suite; empty: about seventy shapes of all kinds
  std::uint64_t seed = 1;  // of the suite random
  double minutes = 2;      // no shape is begun later
  std::string out;         // a JSON file for the calibration; empty: none
  bool json = false;       // the calibration on stdout instead of the report

  std::shared_ptr<const Calibration> start;  // null: the built-in one
};

// Prints the report (or the calibration) to stdout and its progress to stderr. Returns 0; 1 if a result was wrong, which is said loudly;
// 2 if there is no calibration, with the reason on stderr.
int run_calibration(const CalibrationOptions& options);

}  // namespace sluice
