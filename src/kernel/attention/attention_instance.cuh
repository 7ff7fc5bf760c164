// What a generated instance file includes: SLUICE_ATTENTION_KERNELS(type, fp8, head size) compiles the kernels of 8 to 128 rows.
//
// The entry functions are no templates, for the reasons given in kernel/kernel_instance.cuh.
#pragma once

#include "kernel/attention/attention_entry.hpp"
#include "kernel/attention/attention_kernel.cuh"

// clang-format off
#define SLUICE_ATTENTION_CONFIG(type_, fp8_, size, rows_) \
  ::sluice::AttentionConfig{.type = ::sluice::DataType::type_, .fp8 = fp8_, .head_size = size, .rows = rows_}

#ifdef __CUDACC__
#define SLUICE_ATTENTION_ENTRY(type, fp8, size, rows)                                                               \
  extern "C" SLUICE_KERNEL_ENTRY(::sluice::attention_threads(SLUICE_ATTENTION_CONFIG(type, fp8, size, rows)), 1)    \
      sluice_attention_##type##_##fp8##_##size##_##rows(SLUICE_KERNEL_PARAMETER ::sluice::AttentionParams params) { \
    ::sluice::run_attention_kernel<SLUICE_ATTENTION_CONFIG(type, fp8, size, rows)>(params);                         \
  }                                                                                                                 \
  template <>                                                                                                       \
  const void* ::sluice::attention_kernel_entry<SLUICE_ATTENTION_CONFIG(type, fp8, size, rows)>() {                  \
    return reinterpret_cast<const void*>(&sluice_attention_##type##_##fp8##_##size##_##rows);                       \
  }
#else
#define SLUICE_ATTENTION_ENTRY(type, fp8, size, rows)                                                              \
  template <>                                                                                                       \
  ::sluice::EmulatedAttentionKernel ::sluice::emulated_attention_kernel<SLUICE_ATTENTION_CONFIG(type, fp8, size, rows)>() { \
    return &::sluice::run_attention_kernel<SLUICE_ATTENTION_CONFIG(type, fp8, size, rows)>;                        \
  }
#endif

#define SLUICE_ATTENTION_KERNELS(type, fp8, size) \
  SLUICE_ATTENTION_ENTRY(type, fp8, size, 8)      \
  SLUICE_ATTENTION_ENTRY(type, fp8, size, 16)     \
  SLUICE_ATTENTION_ENTRY(type, fp8, size, 32)     \
  SLUICE_ATTENTION_ENTRY(type, fp8, size, 64)     \
  SLUICE_ATTENTION_128_ROWS_##size(type, fp8)
#define SLUICE_ATTENTION_128_ROWS_64(type, fp8) SLUICE_ATTENTION_ENTRY(type, fp8, 64, 128)
#define SLUICE_ATTENTION_128_ROWS_128(type, fp8) SLUICE_ATTENTION_ENTRY(type, fp8, 128, 128)
#define SLUICE_ATTENTION_128_ROWS_256(type, fp8)
// clang-format on
