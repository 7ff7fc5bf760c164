// What run_on_cpu(), run_on_emulator() and verify() ask of general groups, which they have in host memory.
#pragma once

#include "sluice/error.hpp"
#include "sluice/group_arguments.hpp"
#include "sluice/problem.hpp"

namespace sluice {

// Groups that break a promise of GroupArguments. On the device nobody can tell the caller.
Status check_general_groups(const GemmProblem& problem, const GroupArguments* host_groups);

}  // namespace sluice
