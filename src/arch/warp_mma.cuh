// The calls, beside those of arch.cuh, of kernels in which each warp multiplies on its own: ldmatrix, mma.sync, what softmax takes, and
// words of global memory that say themselves whether they are there.
#pragma once

#include "arch/arch.cuh"
#include "arch/streaming.cuh"

#ifdef __CUDACC__
#include "arch/sm90/warp_mma.cuh"
#else
#include "arch/emulated/warp_mma.cuh"
#endif
