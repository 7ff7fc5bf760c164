// What a generated instance file includes: SLUICE_QUANTIZE_KERNELS(type of x) compiles the kernels that read it.
//
// The entry functions are no templates, for the reasons given in kernel/kernel_instance.cuh.
#pragma once

#include "kernel/quantize/quantize_entry.hpp"
#include "kernel/quantize/quantize_kernel.cuh"

// clang-format off
#define SLUICE_QUANTIZE_CONFIG(x, q, scales, from) \
  ::sluice::QuantizeConfig{::sluice::DataType::x, ::sluice::DataType::q, ::sluice::Scaling::scales, ::sluice::QuantizeInput::from}

#ifdef __CUDACC__
#define SLUICE_QUANTIZE_ENTRY(x, q, scales, from)                                                                                          \
  extern "C" SLUICE_KERNEL_ENTRY(::sluice::threads_per_cta(SLUICE_QUANTIZE_CONFIG(x, q, scales, from)),                                    \
                                 ::sluice::kThreadsPerSm / ::sluice::threads_per_cta(SLUICE_QUANTIZE_CONFIG(x, q, scales, from)))          \
      sluice_quantize_##x##_##q##_##scales##_##from(SLUICE_KERNEL_PARAMETER ::sluice::QuantizeParams params) {                             \
    ::sluice::run_quantize_kernel<SLUICE_QUANTIZE_CONFIG(x, q, scales, from)>(params);                                                     \
  }                                                                                                                                        \
  template <>                                                                                                                              \
  const void* ::sluice::quantize_kernel_entry<SLUICE_QUANTIZE_CONFIG(x, q, scales, from)>() {                                              \
    return reinterpret_cast<const void*>(&sluice_quantize_##x##_##q##_##scales##_##from);                                                  \
  }
#else
#define SLUICE_QUANTIZE_ENTRY(x, q, scales, from)                                                                                          \
  template <>                                                                                                                              \
  ::sluice::EmulatedQuantizeKernel ::sluice::emulated_quantize_kernel<SLUICE_QUANTIZE_CONFIG(x, q, scales, from)>() {                      \
    return &::sluice::run_quantize_kernel<SLUICE_QUANTIZE_CONFIG(x, q, scales, from)>;                                                     \
  }
#endif

#define SLUICE_QUANTIZE_TO(x, q)                           \
  SLUICE_QUANTIZE_ENTRY(x, q, per_vector, plain)           \
  SLUICE_QUANTIZE_ENTRY(x, q, per_vector, silu_times)      \
  SLUICE_QUANTIZE_ENTRY(x, q, per_vector_128, plain)       \
  SLUICE_QUANTIZE_ENTRY(x, q, per_vector_128, silu_times)  \
  SLUICE_QUANTIZE_ENTRY(x, q, per_block_128, plain)        \
  SLUICE_QUANTIZE_ENTRY(x, q, per_block_128, silu_times)
#define SLUICE_QUANTIZE_KERNELS(x) \
  SLUICE_QUANTIZE_TO(x, e4m3)      \
  SLUICE_QUANTIZE_TO(x, e5m2)
// clang-format on
