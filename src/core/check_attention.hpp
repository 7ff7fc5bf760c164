// What attention() and its brothers ask of their pointers and plans.
#pragma once

#include "sluice/attention.hpp"

namespace sluice {

// `problem` is validated.
Status check_arguments(const AttentionProblem& problem, const AttentionArguments& arguments);

// A plan that the caller may have changed: its problem, validated, and whether it has a kernel, and shared memory and workspace suffice.
Result<AttentionProblem> check_plan(const AttentionPlan& plan, const void* workspace, std::size_t workspace_bytes);

}  // namespace sluice
