// The calls kernels are written in, with two implementations. arch/sm90 maps each to an instruction of Hopper; arch/emulated carries it
// out on a CPU. Nothing outside this folder holds asm or a CUDA built-in.
#pragma once

#ifdef __CUDACC__
#include "arch/sm90/bulk_copies.cuh"
#include "arch/sm90/clocks.cuh"
#include "arch/sm90/cluster_memory.cuh"
#include "arch/sm90/diagnosis.cuh"
#include "arch/sm90/flags.cuh"
#include "arch/sm90/global_memory.cuh"
#include "arch/sm90/int4.cuh"
#include "arch/sm90/launch.cuh"
#include "arch/sm90/mbarrier.cuh"
#include "arch/sm90/numbers.cuh"
#include "arch/sm90/shared_memory.cuh"
#include "arch/sm90/tensor_maps.cuh"
#include "arch/sm90/threads.cuh"
#include "arch/sm90/tma.cuh"
#include "arch/sm90/warp_collectives.cuh"
#include "arch/sm90/wgmma.cuh"
#include "arch/sm90/wgmma_fp8.cuh"
#include "arch/sm90/wgmma_from_registers.cuh"
#include "arch/sm90/word_copies.cuh"
#else
#include "arch/emulated/arch.cuh"
#endif
