// What a generated instance file includes: SLUICE_SHORT_KERNEL with one line of core/kernel_list.def compiles that line's kernels for a
// scope (launch/scope.hpp), without what it does not ask for.
#pragma once

#include "kernel/gemm_kernel.cuh"
#include "kernel/kernel_entry.hpp"
#include "kernel/second_instance.cuh"

#define SLUICE_SHORT_ENTRY(scope, name, type, ...)                                                                                    \
  SLUICE_SECOND_ENTRY(sluice_##scope##_gemm_##type##_rc_##name, GemmParams, gemm_kernel_entry, emulated_gemm_kernel, run_gemm_kernel, \
                      ::sluice::with_scope(SLUICE_OF_ONE_TYPE(type, __VA_ARGS__), ::sluice::KernelScope::scope))

#define SLUICE_plain_bf16(name, ...) SLUICE_SHORT_ENTRY(plain, name, bf16, __VA_ARGS__)
#define SLUICE_plain_fp8(name, ...) SLUICE_SHORT_ENTRY(plain, name, e4m3, __VA_ARGS__)
#define SLUICE_groups_fp8(name, ...) SLUICE_SHORT_ENTRY(groups, name, e4m3, __VA_ARGS__)

#define SLUICE_SHORT_KERNEL(scope, ...) SLUICE_SECOND_LINE(SLUICE_##scope, __VA_ARGS__)
