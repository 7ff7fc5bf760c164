// What a generated instance file includes for a line of core/kernel_list.def with the schedule `streaming`: as kernel_instance.cuh, for
// weights of 4 bits and of 16.
#pragma once

#include "core/kernel_line.hpp"
#include "kernel/kernel_entry.hpp"
#include "kernel/streaming/ring_kernel.cuh"
#include "kernel/streaming/streaming_kernel.cuh"

namespace sluice {

template <KernelConfig config>
SLUICE_DEVICE void run_kernel_without_roles(const GemmParams& params) {
  if constexpr (has_rings(config))
    run_ring_kernel<config>(params);
  else
    run_streaming_kernel<config>(params);
}
// Of those that leave half an SM to the next launch, registers do too.
constexpr int ctas_with_registers(const KernelConfig& c) { return has_rings(c) ? 2 : c.ctas_per_sm; }

}  // namespace sluice

// clang-format off
#define SLUICE_STREAMING_INSTANCE(type_a, type_b, ...) \
  ::sluice::with_types_and_layout(SLUICE_KERNEL_CONFIG(__VA_ARGS__), ::sluice::DataType::type_a, ::sluice::DataType::type_b, 0)

#ifdef __CUDACC__
#define SLUICE_STREAMING_ENTRY(name, types, type_a, type_b, ...)                                                                      \
  extern "C" SLUICE_KERNEL_ENTRY(::sluice::streaming_threads(SLUICE_STREAMING_INSTANCE(type_a, type_b, __VA_ARGS__)),               \
                                 ::sluice::ctas_with_registers(SLUICE_STREAMING_INSTANCE(type_a, type_b, __VA_ARGS__)))               \
      sluice_gemm_##types##_rc_##name(SLUICE_KERNEL_PARAMETER ::sluice::GemmParams params) {                                          \
    ::sluice::run_kernel_without_roles<SLUICE_STREAMING_INSTANCE(type_a, type_b, __VA_ARGS__)>(params);                               \
  }                                                                                                                                   \
  template <>                                                                                                                         \
  const void* ::sluice::gemm_kernel_entry<SLUICE_STREAMING_INSTANCE(type_a, type_b, __VA_ARGS__)>() {                                 \
    return reinterpret_cast<const void*>(&sluice_gemm_##types##_rc_##name);                                                           \
  }
#else
#define SLUICE_STREAMING_ENTRY(name, types, type_a, type_b, ...)                                                                      \
  template <>                                                                                                                         \
  ::sluice::EmulatedKernel ::sluice::emulated_gemm_kernel<SLUICE_STREAMING_INSTANCE(type_a, type_b, __VA_ARGS__)>() {                 \
    return &::sluice::run_kernel_without_roles<SLUICE_STREAMING_INSTANCE(type_a, type_b, __VA_ARGS__)>;                               \
  }
#endif

#define SLUICE_STREAMING_w4(name, ...)                             \
  SLUICE_STREAMING_ENTRY(name, bf16xint4, bf16, int4, __VA_ARGS__) \
  SLUICE_STREAMING_ENTRY(name, fp16xint4, fp16, int4, __VA_ARGS__)
#define SLUICE_STREAMING_rc(name, ...)                        \
  SLUICE_STREAMING_ENTRY(name, bf16, bf16, bf16, __VA_ARGS__) \
  SLUICE_STREAMING_ENTRY(name, fp16, fp16, fp16, __VA_ARGS__)

#define SLUICE_KERNEL(instances, schedule, order, load, tile_m, tile_n, tile_k, cluster_m, cluster_n, ctas_per_sm)                                \
  SLUICE_STREAMING_##instances(schedule##_##order##_##load##_##tile_m##x##tile_n##x##tile_k##_c##cluster_m##x##cluster_n##_x##ctas_per_sm, schedule, \
                               order, load, tile_m, tile_n, tile_k, cluster_m, cluster_n, ctas_per_sm)
// clang-format on
