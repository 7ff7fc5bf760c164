// Plans kept: those made before, found again, and those that measurement chose, read from a file.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "sluice/device.hpp"
#include "sluice/error.hpp"
#include "sluice/plan.hpp"
#include "sluice/problem.hpp"

namespace sluice {

// What `sluice tune` found for one problem: the fastest plan it measured, and what plan() would have chosen.
struct TunedPlan {
  Plan plan;  // without candidates
  double measured_us = 0;
  std::string planner_kernel;
  SchedulerKind planner_scheduler = SchedulerKind::data_parallel;
  int planner_splits = 1;
  double planner_us = 0;  // measured, not predicted

  bool operator==(const TunedPlan&) const = default;
};

// A plan file: a list of tuned plans, for any problems and devices. Reading refuses a file any of whose plans does not belong to its
// problem and device or needs a kernel that this build has not, and names the plan.
std::string to_json(const std::vector<TunedPlan>& plans);
Result<std::vector<TunedPlan>> tuned_plans_from_json(const std::string& text);

// Plans made before, found again. Thread-safe; the oldest leave when it is full. Plans that were loaded never leave.
class PlanCache {
 public:
  explicit PlanCache(std::size_t capacity = 4096);
  ~PlanCache();
  PlanCache(PlanCache&&) noexcept;
  PlanCache& operator=(PlanCache&&) noexcept;

  // Plans in the cache do not keep their candidates.
  Result<std::shared_ptr<const Plan>> get(const GemmProblem& problem, const DeviceSpec& device);

  // From now on get() gives the plans of this plan file for exactly their problems (as validate() returns them: strides, alignments,
  // constant operands and epilogue count) on exactly their devices, and makes plans for all others as before. Returns how many plans the
  // file holds. A later file's plan takes the place of an earlier one's for the same question. Errors: those of tuned_plans_from_json();
  // then nothing is loaded.
  Result<std::size_t> load(const std::string& json);
  std::size_t size() const;  // made and loaded

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sluice
