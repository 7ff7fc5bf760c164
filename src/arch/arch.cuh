// The calls kernels are written in. arch/sm90 maps each to an instruction of Hopper; nothing outside this folder holds asm or a CUDA
// built-in, so that another implementation can stand in for the GPU.
#pragma once

#include "arch/sm90/launch.cuh"
#include "arch/sm90/mbarrier.cuh"
#include "arch/sm90/shared_memory.cuh"
#include "arch/sm90/threads.cuh"
#include "arch/sm90/tma.cuh"
#include "arch/sm90/wgmma.cuh"
