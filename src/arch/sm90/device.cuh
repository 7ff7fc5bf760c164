// How device functions and kernels are declared.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cuda/ptx>

#include "arch/types.hpp"

#define SLUICE_DEVICE __device__ __forceinline__
#define SLUICE_KERNEL_ENTRY(threads, ctas_per_sm) __global__ void __launch_bounds__(threads, ctas_per_sm)
#define SLUICE_KERNEL_PARAMETER const __grid_constant__
#define SLUICE_UNROLL _Pragma("unroll")
#define SLUICE_NO_UNROLL _Pragma("unroll 1")
