// From a kernel's configuration to its machine code.
#pragma once

#include "sluice/kernel_config.hpp"

namespace sluice {

// As cudaLaunchKernelExC takes it; null when this build has no such kernel.
const void* find_gemm_kernel(const KernelConfig& config);

}  // namespace sluice
