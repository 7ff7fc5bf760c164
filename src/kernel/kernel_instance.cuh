// What a generated instance file includes: SLUICE_KERNEL with one line of core/kernel_list.def compiles that line's kernels.
//
// The entry functions are no templates: nvcc 13.0 cannot name a kernel whose template argument is of class type, and profilers show a
// readable name this way.
#pragma once

#include "core/kernel_instances.hpp"
#include "kernel/gemm_kernel.cuh"
#include "kernel/kernel_entry.hpp"

// clang-format off
#ifdef __CUDACC__
#define SLUICE_GEMM_ENTRY(name, type, letters, layout_index, ...)                                                                     \
  extern "C" SLUICE_KERNEL_ENTRY(::sluice::threads_per_cta(SLUICE_KERNEL_CONFIG(__VA_ARGS__)), SLUICE_KERNEL_CONFIG(__VA_ARGS__).ctas_per_sm)                                        \
      sluice_gemm_##type##_##letters##_##name(SLUICE_KERNEL_PARAMETER ::sluice::GemmParams params) {                                  \
    ::sluice::run_gemm_kernel<::sluice::with_type_and_layout(SLUICE_KERNEL_CONFIG(__VA_ARGS__), ::sluice::DataType::type, layout_index)>(params); \
  }                                                                                                                                   \
  template <>                                                                                                                         \
  const void* ::sluice::gemm_kernel_entry<::sluice::with_type_and_layout(SLUICE_KERNEL_CONFIG(__VA_ARGS__), ::sluice::DataType::type, layout_index)>() { \
    return reinterpret_cast<const void*>(&sluice_gemm_##type##_##letters##_##name);                                                   \
  }
#else
#define SLUICE_GEMM_ENTRY(name, type, letters, layout_index, ...)                                                                     \
  template <>                                                                                                                         \
  ::sluice::EmulatedKernel ::sluice::emulated_gemm_kernel<::sluice::with_type_and_layout(SLUICE_KERNEL_CONFIG(__VA_ARGS__), ::sluice::DataType::type, layout_index)>() { \
    return &::sluice::run_gemm_kernel<::sluice::with_type_and_layout(SLUICE_KERNEL_CONFIG(__VA_ARGS__), ::sluice::DataType::type, layout_index)>; \
  }
#endif

#define SLUICE_GEMM_LAYOUTS_rc(name, type, ...) SLUICE_GEMM_ENTRY(name, type, rc, 0, __VA_ARGS__)
#define SLUICE_GEMM_LAYOUTS_all(name, type, ...)      \
  SLUICE_GEMM_ENTRY(name, type, rc, 0, __VA_ARGS__)   \
  SLUICE_GEMM_ENTRY(name, type, rr, 1, __VA_ARGS__)   \
  SLUICE_GEMM_ENTRY(name, type, cc, 2, __VA_ARGS__)   \
  SLUICE_GEMM_ENTRY(name, type, cr, 3, __VA_ARGS__)

#define SLUICE_KERNEL(layouts, schedule, order, load, tile_m, tile_n, tile_k, cluster_m, cluster_n, ctas_per_sm)                                          \
  SLUICE_GEMM_LAYOUTS_##layouts(schedule##_##order##_##load##_##tile_m##x##tile_n##x##tile_k##_c##cluster_m##x##cluster_n##_x##ctas_per_sm, bf16, schedule, order, \
                                load, tile_m, tile_n, tile_k, cluster_m, cluster_n, ctas_per_sm)                                                          \
  SLUICE_GEMM_LAYOUTS_##layouts(schedule##_##order##_##load##_##tile_m##x##tile_n##x##tile_k##_c##cluster_m##x##cluster_n##_x##ctas_per_sm, fp16, schedule, order, \
                                load, tile_m, tile_n, tile_k, cluster_m, cluster_n, ctas_per_sm)
// clang-format on
