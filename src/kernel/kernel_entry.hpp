// The compiled kernels, one by one, defined in the generated instance files.
#pragma once

#include "sluice/kernel_config.hpp"

namespace sluice {

struct GemmParams;

// For the GPU, as cudaLaunchKernelExC takes it.
template <KernelConfig config>
const void* gemm_kernel_entry();

// For the emulator: what each thread runs.
using EmulatedKernel = void (*)(const GemmParams& params);
template <KernelConfig config>
EmulatedKernel emulated_gemm_kernel();

}  // namespace sluice
