// run() of general groups (Grouping::general).
#pragma once

#include "sluice/run.hpp"

namespace sluice {

// Two kernels: one that prepares the groups, and their product. `workspace` and arguments are checked.
Status run_general(const Plan& plan, const GemmArguments& arguments, void* workspace, Stream stream);

}  // namespace sluice
