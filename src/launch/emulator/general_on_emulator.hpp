// run_on_emulator() of general groups (Grouping::general).
#pragma once

#include "sluice/emulator.hpp"

namespace sluice {

// Its two kernels, one after the other.
Status run_general_on_emulator(const Plan& plan, const GemmArguments& arguments, const EmulatorOptions& options, const Progress& progress);

// That a kernel has left no flag in the workspace for the next run to stumble over.
Status check_flags_cleared(const KernelConfig& kernel, const float* workspace, std::size_t elems);

}  // namespace sluice
