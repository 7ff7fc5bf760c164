// The calls, beside those of arch.cuh, of kernels that count: additions of integers to shared and global memory.
#pragma once

#include "arch/arch.cuh"
#include "arch/streaming.cuh"

#ifdef __CUDACC__
#include "arch/sm90/counting.cuh"
#else
#include "arch/emulated/counting.cuh"
#endif
