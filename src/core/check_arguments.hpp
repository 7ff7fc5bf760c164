// What run(), run_on_cpu() and verify() ask of the caller's pointers.
#pragma once

#include "sluice/error.hpp"
#include "sluice/plan_value.hpp"
#include "sluice/run.hpp"

namespace sluice {

// Whether the product is formed at all, so that A and B are read.
constexpr bool reads_a_and_b(const GemmProblem& problem) { return problem.k > 0 && problem.epilogue.alpha != 0.0f; }
constexpr bool reads_c(const GemmProblem& problem) { return problem.epilogue.beta != 0.0f; }

// Null pointers that would be read or written, pointers aligned worse than the problem promises, and C in the place of D with other
// strides. The problem must be validated. An empty problem asks for nothing.
Status check_arguments(const GemmProblem& problem, const GemmArguments& arguments);
Status check_arguments(const Plan& plan, const GemmArguments& arguments);

}  // namespace sluice
