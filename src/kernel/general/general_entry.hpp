// The compiled kernels of general groups, one by one, and the one that prepares them, defined in the generated instance files. As
// kernel_entry.hpp; all take GeneralGemmParams.
#pragma once

#include "sluice/kernel_config.hpp"

namespace sluice {

struct GeneralGemmParams;

// For the GPU, as cudaLaunchKernelExC takes them.
template <KernelConfig config>
const void* general_kernel_entry();
const void* prepare_groups_kernel_entry();

// For the emulator: what each thread runs.
using EmulatedGeneralKernel = void (*)(const GeneralGemmParams& params);
template <KernelConfig config>
EmulatedGeneralKernel emulated_general_kernel();
EmulatedGeneralKernel emulated_prepare_groups_kernel();

}  // namespace sluice
