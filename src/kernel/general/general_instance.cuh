// What a generated instance file includes: SLUICE_GENERAL_KERNEL with one line of core/kernel_list.def compiles that line's kernels for
// general groups. As kernel_instance.cuh, but for K-contiguous operands of one type alone.
#pragma once

#include "core/kernel_line.hpp"
#include "kernel/general/general_entry.hpp"
#include "kernel/general/general_kernel.cuh"

// clang-format off
#define SLUICE_GENERAL_INSTANCE(type, ...) \
  ::sluice::with_types_and_layout(SLUICE_KERNEL_CONFIG(__VA_ARGS__), ::sluice::DataType::type, ::sluice::DataType::type, 0)

#ifdef __CUDACC__
#define SLUICE_GENERAL_ENTRY(name, type, ...)                                                                                         \
  extern "C" SLUICE_KERNEL_ENTRY(::sluice::threads_per_cta(SLUICE_KERNEL_CONFIG(__VA_ARGS__)), SLUICE_KERNEL_CONFIG(__VA_ARGS__).ctas_per_sm) \
      sluice_general_gemm_##type##_rc_##name(SLUICE_KERNEL_PARAMETER ::sluice::GeneralGemmParams params) {                            \
    ::sluice::run_general_kernel<SLUICE_GENERAL_INSTANCE(type, __VA_ARGS__)>(params);                                                 \
  }                                                                                                                                   \
  template <>                                                                                                                         \
  const void* ::sluice::general_kernel_entry<SLUICE_GENERAL_INSTANCE(type, __VA_ARGS__)>() {                                          \
    return reinterpret_cast<const void*>(&sluice_general_gemm_##type##_rc_##name);                                                    \
  }
#else
#define SLUICE_GENERAL_ENTRY(name, type, ...)                                                                                         \
  template <>                                                                                                                         \
  ::sluice::EmulatedGeneralKernel ::sluice::emulated_general_kernel<SLUICE_GENERAL_INSTANCE(type, __VA_ARGS__)>() {                   \
    return &::sluice::run_general_kernel<SLUICE_GENERAL_INSTANCE(type, __VA_ARGS__)>;                                                 \
  }
#endif

#define SLUICE_GENERAL_rc(name, ...)             \
  SLUICE_GENERAL_ENTRY(name, bf16, __VA_ARGS__) \
  SLUICE_GENERAL_ENTRY(name, fp16, __VA_ARGS__)
#define SLUICE_GENERAL_fp8(name, ...) SLUICE_GENERAL_ENTRY(name, e4m3, __VA_ARGS__)

#define SLUICE_GENERAL_KERNEL(instances, schedule, order, load, tile_m, tile_n, tile_k, cluster_m, cluster_n, ctas_per_sm)                       \
  SLUICE_GENERAL_##instances(schedule##_##order##_##load##_##tile_m##x##tile_n##x##tile_k##_c##cluster_m##x##cluster_n##_x##ctas_per_sm, schedule, \
                             order, load, tile_m, tile_n, tile_k, cluster_m, cluster_n, ctas_per_sm)
// clang-format on
