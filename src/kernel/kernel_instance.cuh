// What a generated instance file includes: SLUICE_KERNEL with one line of core/kernel_list.def compiles that line's kernels.
//
// The entry functions are no templates: nvcc 13.0 cannot name a kernel whose template argument is of class type, and profilers show a
// readable name this way.
#pragma once

#include "core/kernel_line.hpp"
#include "kernel/gemm_kernel.cuh"
#include "kernel/kernel_entry.hpp"

// clang-format off
#define SLUICE_INSTANCE(type_a, type_b, layout_index, ...) \
  ::sluice::with_types_and_layout(SLUICE_KERNEL_CONFIG(__VA_ARGS__), ::sluice::DataType::type_a, ::sluice::DataType::type_b, layout_index)

#ifdef __CUDACC__
#define SLUICE_GEMM_ENTRY(name, types, type_a, type_b, letters, layout_index, ...)                                                    \
  extern "C" SLUICE_KERNEL_ENTRY(::sluice::threads_per_cta(SLUICE_KERNEL_CONFIG(__VA_ARGS__)), SLUICE_KERNEL_CONFIG(__VA_ARGS__).ctas_per_sm) \
      sluice_gemm_##types##_##letters##_##name(SLUICE_KERNEL_PARAMETER ::sluice::GemmParams params) {                                 \
    ::sluice::run_gemm_kernel<SLUICE_INSTANCE(type_a, type_b, layout_index, __VA_ARGS__)>(params);                                    \
  }                                                                                                                                   \
  template <>                                                                                                                         \
  const void* ::sluice::gemm_kernel_entry<SLUICE_INSTANCE(type_a, type_b, layout_index, __VA_ARGS__)>() {                             \
    return reinterpret_cast<const void*>(&sluice_gemm_##types##_##letters##_##name);                                                  \
  }
#else
#define SLUICE_GEMM_ENTRY(name, types, type_a, type_b, letters, layout_index, ...)                                                    \
  template <>                                                                                                                         \
  ::sluice::EmulatedKernel ::sluice::emulated_gemm_kernel<SLUICE_INSTANCE(type_a, type_b, layout_index, __VA_ARGS__)>() {             \
    return &::sluice::run_gemm_kernel<SLUICE_INSTANCE(type_a, type_b, layout_index, __VA_ARGS__)>;                                    \
  }
#endif

#define SLUICE_GEMM_LAYOUT(name, letters, layout_index, ...)                    \
  SLUICE_GEMM_ENTRY(name, bf16, bf16, bf16, letters, layout_index, __VA_ARGS__) \
  SLUICE_GEMM_ENTRY(name, fp16, fp16, fp16, letters, layout_index, __VA_ARGS__)
#define SLUICE_GEMM_rc(name, ...) SLUICE_GEMM_LAYOUT(name, rc, 0, __VA_ARGS__)
#define SLUICE_GEMM_all(name, ...)             \
  SLUICE_GEMM_LAYOUT(name, rc, 0, __VA_ARGS__) \
  SLUICE_GEMM_LAYOUT(name, rr, 1, __VA_ARGS__) \
  SLUICE_GEMM_LAYOUT(name, cc, 2, __VA_ARGS__) \
  SLUICE_GEMM_LAYOUT(name, cr, 3, __VA_ARGS__)
#define SLUICE_GEMM_fp8(name, ...) SLUICE_GEMM_ENTRY(name, e4m3, e4m3, e4m3, rc, 0, __VA_ARGS__)
#define SLUICE_GEMM_fp8_mixed(name, ...)                               \
  SLUICE_GEMM_fp8(name, __VA_ARGS__)                                   \
  SLUICE_GEMM_ENTRY(name, e4m3xe5m2, e4m3, e5m2, rc, 0, __VA_ARGS__) \
  SLUICE_GEMM_ENTRY(name, e5m2xe4m3, e5m2, e4m3, rc, 0, __VA_ARGS__) \
  SLUICE_GEMM_ENTRY(name, e5m2, e5m2, e5m2, rc, 0, __VA_ARGS__)
#define SLUICE_GEMM_w4(name, ...)                                      \
  SLUICE_GEMM_ENTRY(name, bf16xint4, bf16, int4, rc, 0, __VA_ARGS__) \
  SLUICE_GEMM_ENTRY(name, fp16xint4, fp16, int4, rc, 0, __VA_ARGS__)
#define SLUICE_GEMM_w4a8(name, ...) SLUICE_GEMM_ENTRY(name, e4m3xint4, e4m3, int4, rc, 0, __VA_ARGS__)

#define SLUICE_KERNEL(instances, schedule, order, load, tile_m, tile_n, tile_k, cluster_m, cluster_n, ctas_per_sm)                             \
  SLUICE_GEMM_##instances(schedule##_##order##_##load##_##tile_m##x##tile_n##x##tile_k##_c##cluster_m##x##cluster_n##_x##ctas_per_sm, schedule, \
                          order, load, tile_m, tile_n, tile_k, cluster_m, cluster_n, ctas_per_sm)
// clang-format on
