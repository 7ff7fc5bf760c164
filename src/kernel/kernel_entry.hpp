// The address of a compiled kernel, as cudaLaunchKernelExC takes it. Defined, one by one, in the generated instance files.
#pragma once

#include "sluice/kernel_config.hpp"

namespace sluice {

template <KernelConfig config>
const void* gemm_kernel_entry();

}  // namespace sluice
