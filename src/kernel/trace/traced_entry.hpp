// The compiled kernels with a recorder, one by one, defined in the generated instance files. As kernel_entry.hpp; both take
// TracedGemmParams.
#pragma once

#include "kernel/kernel_entry.hpp"

namespace sluice {

template <KernelConfig config>
const void* traced_gemm_kernel_entry();

template <KernelConfig config>
EmulatedKernel emulated_traced_gemm_kernel();

}  // namespace sluice
