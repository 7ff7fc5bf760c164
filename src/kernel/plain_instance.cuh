// What a generated instance file includes: SLUICE_PLAIN_KERNEL with one line of core/kernel_list.def compiles that line's kernels without
// what plain products (launch/plain.hpp) do not ask for.
#pragma once

#include "kernel/gemm_kernel.cuh"
#include "kernel/kernel_entry.hpp"
#include "kernel/second_instance.cuh"

#define SLUICE_PLAIN_ENTRY(name, type, ...)                                                                                       \
  SLUICE_SECOND_ENTRY(sluice_plain_gemm_##type##_rc_##name, GemmParams, gemm_kernel_entry, emulated_gemm_kernel, run_gemm_kernel, \
                      ::sluice::plain(SLUICE_OF_ONE_TYPE(type, __VA_ARGS__)))

#define SLUICE_PLAIN_bf16(name, ...) SLUICE_PLAIN_ENTRY(name, bf16, __VA_ARGS__)
#define SLUICE_PLAIN_fp8(name, ...) SLUICE_PLAIN_ENTRY(name, e4m3, __VA_ARGS__)

#define SLUICE_PLAIN_KERNEL(...) SLUICE_SECOND_LINE(SLUICE_PLAIN, __VA_ARGS__)
