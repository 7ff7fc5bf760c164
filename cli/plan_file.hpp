// Plan files, as `sluice tune` writes them: --plans.
#pragma once

#include <string>

#include <CLI/CLI.hpp>

#include "sluice/device.hpp"
#include "sluice/plan.hpp"
#include "sluice/problem.hpp"

namespace sluice::cli {

// Those flags that restrict the planner contradict it: a plan from the file need not obey them.
CLI::Option* add_plans_flag(CLI::App& command, std::string& path);

struct PlanFromFile {
  Plan plan;
  bool tuned = false;  // else the planner's own: the file has none for this problem and device
  std::string why;     // in words
};
Result<PlanFromFile> plan_from_file(const std::string& path, const GemmProblem& problem, const DeviceSpec& device);

}  // namespace sluice::cli
