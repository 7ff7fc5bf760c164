// What a generated instance file includes: SLUICE_GENERAL_KERNEL with one line of core/kernel_list.def compiles that line's kernels for
// general groups.
#pragma once

#include "kernel/general/general_entry.hpp"
#include "kernel/general/general_kernel.cuh"
#include "kernel/second_instance.cuh"

#define SLUICE_GENERAL_ENTRY(name, type, ...)                                                                                   \
  SLUICE_SECOND_ENTRY(sluice_general_gemm_##type##_rc_##name, GeneralGemmParams, general_kernel_entry, emulated_general_kernel, \
                      run_general_kernel, SLUICE_OF_ONE_TYPE(type, __VA_ARGS__))

#define SLUICE_GENERAL_rc(name, ...)            \
  SLUICE_GENERAL_ENTRY(name, bf16, __VA_ARGS__) \
  SLUICE_GENERAL_ENTRY(name, fp16, __VA_ARGS__)
#define SLUICE_GENERAL_fp8(name, ...) SLUICE_GENERAL_ENTRY(name, e4m3, __VA_ARGS__)

#define SLUICE_GENERAL_KERNEL(...) SLUICE_SECOND_LINE(SLUICE_GENERAL, __VA_ARGS__)
