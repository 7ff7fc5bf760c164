// What a generated instance file includes: SLUICE_TRACED_KERNEL with one line of core/kernel_list.def compiles that line's kernels with a
// recorder.
#pragma once

#include "kernel/gemm_kernel.cuh"
#include "kernel/second_instance.cuh"
#include "kernel/trace/recorder.cuh"
#include "kernel/trace/traced_entry.hpp"

namespace sluice {

template <KernelConfig config>
SLUICE_DEVICE void run_traced_gemm_kernel(const GemmParams& params) {
  run_gemm_kernel<config, Recorder>(params);
}

}  // namespace sluice

#define SLUICE_TRACED_ENTRY(name, type, ...)                                                                                          \
  SLUICE_SECOND_ENTRY(sluice_traced_gemm_##type##_rc_##name, TracedGemmParams, traced_gemm_kernel_entry, emulated_traced_gemm_kernel, \
                      run_traced_gemm_kernel, SLUICE_OF_ONE_TYPE(type, __VA_ARGS__))

#define SLUICE_TRACED_bf16(name, ...) SLUICE_TRACED_ENTRY(name, bf16, __VA_ARGS__)
#define SLUICE_TRACED_fp8(name, ...) SLUICE_TRACED_ENTRY(name, e4m3, __VA_ARGS__)

#define SLUICE_TRACED_KERNEL(...) SLUICE_SECOND_LINE(SLUICE_TRACED, __VA_ARGS__)
