// The compiled kernels that pack weights of 4 bits and permute columns, defined in the generated instance files.
#pragma once

namespace sluice {

struct PackW4Params;
struct PermuteColumnsParams;

// For the GPU, as cudaLaunchKernelExC takes them.
const void* pack_w4_kernel_entry();
const void* permute_columns_kernel_entry();

// For the emulator: what each thread runs.
using EmulatedPackW4Kernel = void (*)(const PackW4Params& params);
using EmulatedPermuteColumnsKernel = void (*)(const PermuteColumnsParams& params);
EmulatedPackW4Kernel emulated_pack_w4_kernel();
EmulatedPermuteColumnsKernel emulated_permute_columns_kernel();

}  // namespace sluice
