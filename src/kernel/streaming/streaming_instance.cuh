// What a generated instance file includes for a line of core/kernel_list.def with the schedule `streaming`: as kernel_instance.cuh, for
// weights of 4 bits alone.
#pragma once

#include "core/kernel_instances.hpp"
#include "kernel/kernel_entry.hpp"
#include "kernel/streaming/streaming_kernel.cuh"

// clang-format off
#define SLUICE_STREAMING_INSTANCE(type, ...) \
  ::sluice::with_types_and_layout(SLUICE_KERNEL_CONFIG(__VA_ARGS__), ::sluice::DataType::type, ::sluice::DataType::int4, 0)

#ifdef __CUDACC__
#define SLUICE_STREAMING_ENTRY(name, type, ...)                                                                                       \
  extern "C" SLUICE_KERNEL_ENTRY(::sluice::kStreamThreads, SLUICE_KERNEL_CONFIG(__VA_ARGS__).ctas_per_sm)                          \
      sluice_gemm_##type##xint4_rc_##name(SLUICE_KERNEL_PARAMETER ::sluice::GemmParams params) {                                      \
    ::sluice::run_streaming_kernel<SLUICE_STREAMING_INSTANCE(type, __VA_ARGS__)>(params);                                             \
  }                                                                                                                                   \
  template <>                                                                                                                         \
  const void* ::sluice::gemm_kernel_entry<SLUICE_STREAMING_INSTANCE(type, __VA_ARGS__)>() {                                           \
    return reinterpret_cast<const void*>(&sluice_gemm_##type##xint4_rc_##name);                                                       \
  }
#else
#define SLUICE_STREAMING_ENTRY(name, type, ...)                                                                                       \
  template <>                                                                                                                         \
  ::sluice::EmulatedKernel ::sluice::emulated_gemm_kernel<SLUICE_STREAMING_INSTANCE(type, __VA_ARGS__)>() {                           \
    return &::sluice::run_streaming_kernel<SLUICE_STREAMING_INSTANCE(type, __VA_ARGS__)>;                                             \
  }
#endif

#define SLUICE_STREAMING_w4(name, ...)            \
  SLUICE_STREAMING_ENTRY(name, bf16, __VA_ARGS__) \
  SLUICE_STREAMING_ENTRY(name, fp16, __VA_ARGS__)

#define SLUICE_KERNEL(instances, schedule, order, load, tile_m, tile_n, tile_k, cluster_m, cluster_n, ctas_per_sm)                                \
  SLUICE_STREAMING_##instances(schedule##_##order##_##load##_##tile_m##x##tile_n##x##tile_k##_c##cluster_m##x##cluster_n##_x##ctas_per_sm, schedule, \
                               order, load, tile_m, tile_n, tile_k, cluster_m, cluster_n, ctas_per_sm)
// clang-format on
