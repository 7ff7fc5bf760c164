// What a generated instance file includes: SLUICE_TRACED_KERNEL with one line of core/kernel_list.def compiles that line's kernels with a
// recorder. As kernel_instance.cuh, but for K-contiguous operands alone.
#pragma once

#include "core/kernel_line.hpp"
#include "kernel/gemm_kernel.cuh"
#include "kernel/trace/recorder.cuh"
#include "kernel/trace/traced_entry.hpp"

// clang-format off
#define SLUICE_TRACED_INSTANCE(type, ...) \
  ::sluice::with_types_and_layout(SLUICE_KERNEL_CONFIG(__VA_ARGS__), ::sluice::DataType::type, ::sluice::DataType::type, 0)

#ifdef __CUDACC__
#define SLUICE_TRACED_ENTRY(name, type, ...)                                                                                          \
  extern "C" SLUICE_KERNEL_ENTRY(::sluice::threads_per_cta(SLUICE_KERNEL_CONFIG(__VA_ARGS__)), SLUICE_KERNEL_CONFIG(__VA_ARGS__).ctas_per_sm) \
      sluice_traced_gemm_##type##_rc_##name(SLUICE_KERNEL_PARAMETER ::sluice::TracedGemmParams params) {                              \
    ::sluice::run_gemm_kernel<SLUICE_TRACED_INSTANCE(type, __VA_ARGS__), ::sluice::Recorder>(params);                                 \
  }                                                                                                                                   \
  template <>                                                                                                                         \
  const void* ::sluice::traced_gemm_kernel_entry<SLUICE_TRACED_INSTANCE(type, __VA_ARGS__)>() {                                       \
    return reinterpret_cast<const void*>(&sluice_traced_gemm_##type##_rc_##name);                                                     \
  }
#else
#define SLUICE_TRACED_ENTRY(name, type, ...)                                                                                          \
  template <>                                                                                                                         \
  ::sluice::EmulatedKernel ::sluice::emulated_traced_gemm_kernel<SLUICE_TRACED_INSTANCE(type, __VA_ARGS__)>() {                       \
    return &::sluice::run_gemm_kernel<SLUICE_TRACED_INSTANCE(type, __VA_ARGS__), ::sluice::Recorder>;                                 \
  }
#endif

#define SLUICE_TRACED_bf16(name, ...) SLUICE_TRACED_ENTRY(name, bf16, __VA_ARGS__)
#define SLUICE_TRACED_fp8(name, ...) SLUICE_TRACED_ENTRY(name, e4m3, __VA_ARGS__)

#define SLUICE_TRACED_KERNEL(instances, schedule, order, load, tile_m, tile_n, tile_k, cluster_m, cluster_n, ctas_per_sm)                       \
  SLUICE_TRACED_##instances(schedule##_##order##_##load##_##tile_m##x##tile_n##x##tile_k##_c##cluster_m##x##cluster_n##_x##ctas_per_sm, schedule, \
                            order, load, tile_m, tile_n, tile_k, cluster_m, cluster_n, ctas_per_sm)
// clang-format on
