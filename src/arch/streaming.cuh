// The calls, beside those of arch.cuh, of kernels that pass over data once: fetching what nobody reads again, and rounding to FP8.
#pragma once

#include "arch/arch.cuh"

#ifdef __CUDACC__
#include "arch/sm90/streaming.cuh"
#else
#include "arch/emulated/streaming.cuh"
#endif
