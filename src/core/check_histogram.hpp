// What histogram() and its brothers ask of their pointers and plans.
#pragma once

#include "sluice/histogram.hpp"

namespace sluice {

// `problem` is validated.
Status check_arguments(const HistogramProblem& problem, const HistogramArguments& arguments);

// A plan that the caller may have made: its problem, validated, and whether its way exists and its shared memory suffices.
Result<HistogramProblem> check_plan(const HistogramPlan& plan, int shared_memory_per_cta_bytes);

}  // namespace sluice
