// From the times of all candidates to the plan that `sluice tune` keeps.
#pragma once

#include "bench/report.hpp"
#include "sluice/device.hpp"
#include "sluice/error.hpp"
#include "sluice/plan_cache.hpp"
#include "sluice/problem.hpp"

namespace sluice::bench {

// What makes the planner choose this very candidate.
PlanOptions only(const Candidate& candidate, PlanOptions options = {});

// Of a result in planner mode: the fastest candidate whose result is right. An error where there is none.
Result<TunedPlan> tuned_plan(const ShapeResult& result, const GemmProblem& problem, const DeviceSpec& device);

}  // namespace sluice::bench
