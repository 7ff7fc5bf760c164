// What a generated instance file includes: SLUICE_PLAIN_KERNEL with one line of core/kernel_list.def compiles that line's kernels without
// what plain products (launch/plain.hpp) do not ask for. As kernel_instance.cuh, but for one type and K-contiguous operands alone.
#pragma once

#include "core/kernel_line.hpp"
#include "kernel/gemm_kernel.cuh"
#include "kernel/kernel_entry.hpp"

// clang-format off
#define SLUICE_PLAIN_INSTANCE(type, ...) \
  ::sluice::plain(::sluice::with_types_and_layout(SLUICE_KERNEL_CONFIG(__VA_ARGS__), ::sluice::DataType::type, ::sluice::DataType::type, 0))

#ifdef __CUDACC__
#define SLUICE_PLAIN_ENTRY(name, type, ...)                                                                                                 \
  extern "C" SLUICE_KERNEL_ENTRY(::sluice::threads_per_cta(SLUICE_KERNEL_CONFIG(__VA_ARGS__)), SLUICE_KERNEL_CONFIG(__VA_ARGS__).ctas_per_sm) \
      sluice_plain_gemm_##type##_rc_##name(SLUICE_KERNEL_PARAMETER ::sluice::GemmParams params) {                                         \
    ::sluice::run_gemm_kernel<SLUICE_PLAIN_INSTANCE(type, __VA_ARGS__)>(params);                                                            \
  }                                                                                                                                   \
  template <>                                                                                                                         \
  const void* ::sluice::gemm_kernel_entry<SLUICE_PLAIN_INSTANCE(type, __VA_ARGS__)>() {                                                     \
    return reinterpret_cast<const void*>(&sluice_plain_gemm_##type##_rc_##name);                                                          \
  }
#else
#define SLUICE_PLAIN_ENTRY(name, type, ...)                                                                                                 \
  template <>                                                                                                                         \
  ::sluice::EmulatedKernel ::sluice::emulated_gemm_kernel<SLUICE_PLAIN_INSTANCE(type, __VA_ARGS__)>() {                                     \
    return &::sluice::run_gemm_kernel<SLUICE_PLAIN_INSTANCE(type, __VA_ARGS__)>;                                                            \
  }
#endif

#define SLUICE_PLAIN_bf16(name, ...) SLUICE_PLAIN_ENTRY(name, bf16, __VA_ARGS__)
#define SLUICE_PLAIN_fp8(name, ...) SLUICE_PLAIN_ENTRY(name, e4m3, __VA_ARGS__)

#define SLUICE_PLAIN_KERNEL(instances, schedule, order, load, tile_m, tile_n, tile_k, cluster_m, cluster_n, ctas_per_sm)                       \
  SLUICE_PLAIN_##instances(schedule##_##order##_##load##_##tile_m##x##tile_n##x##tile_k##_c##cluster_m##x##cluster_n##_x##ctas_per_sm, schedule, \
                           order, load, tile_m, tile_n, tile_k, cluster_m, cluster_n, ctas_per_sm)
// clang-format on
