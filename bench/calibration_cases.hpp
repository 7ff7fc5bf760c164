// What a calibration is measured on, and how good its choices are.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "bench/report.hpp"
#include "sluice/calibration.hpp"

namespace sluice::bench {

struct CalibrationCase {
  Shape shape;
  bool constant_b = false;

  bool operator==(const CalibrationCase&) const = default;
};

std::string to_string(const CalibrationCase& one);  // "16x4096x4096, B constant"
GemmProblem problem_of(const CalibrationCase& one);

// The shapes of these suites and files, or, without any, about seventy of all kinds; those with few rows also with B declared constant.
// In such an order that wherever the list is cut off, what comes before is of all kinds.
Result<std::vector<CalibrationCase>> calibration_cases(const std::string& suites = "", std::uint64_t seed = 1);

// The timings found so far, and what each belongs to. A product that is measured again, on another GPU or another day, is brought to the
// scale of the times before by the candidates that both have; of these the geometric mean of all runs stands.
struct CalibrationTimings {
  std::vector<CalibrationCase> cases;
  std::vector<CandidateTiming> timings;
  std::vector<std::size_t> case_of;  // of each timing
  std::vector<int> times;            // that it was measured
  std::vector<std::string> wrong;    // what gave wrong results: neither timed nor fitted

  void add(const CalibrationCase& one, const ShapeResult& result);
};

// What the planner's choice takes of the fastest candidate's time, with the constants before and after, by suite; then the worst choices.
std::string calibration_report(const CalibrationTimings& measured, const DeviceSpec& device, const Calibration& before,
                               const Calibration& after);

}  // namespace sluice::bench
