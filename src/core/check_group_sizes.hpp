// What run_on_cpu(), run_on_emulator() and verify() ask of groups' sizes, which they have in host memory.
#pragma once

#include <cstdint>

#include "sluice/error.hpp"
#include "sluice/problem.hpp"

namespace sluice {

// Groups along K of FP8 operands that begin or end within a block of scales. On the device nobody can tell the caller, and such a number
// counts as the multiple of 128 below it. Sizes that are not there are another check's to refuse.
Status check_group_sizes(const GemmProblem& problem, const std::int32_t* host_sizes);

}  // namespace sluice
