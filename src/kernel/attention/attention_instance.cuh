// What a generated instance file includes: SLUICE_ATTENTION_KERNELS(type, fp8, head size) compiles the kernels of 1, 2, 4 and 8 row tiles.
//
// The entry functions are no templates, for the reasons given in kernel/kernel_instance.cuh.
#pragma once

#include "kernel/attention/attention_entry.hpp"
#include "kernel/attention/attention_kernel.cuh"

// clang-format off
#define SLUICE_ATTENTION_CONFIG(type_, fp8_, size, tiles) \
  ::sluice::AttentionConfig{.type = ::sluice::DataType::type_, .fp8 = fp8_, .head_size = size, .row_tiles = tiles}

#ifdef __CUDACC__
#define SLUICE_ATTENTION_ENTRY(type, fp8, size, tiles)                                                              \
  extern "C" SLUICE_KERNEL_ENTRY(::sluice::attention_threads(SLUICE_ATTENTION_CONFIG(type, fp8, size, tiles)), tiles == 1 && size <= 128 ? 2 : 1)   \
      sluice_attention_##type##_##fp8##_##size##_##tiles(SLUICE_KERNEL_PARAMETER ::sluice::AttentionParams params) { \
    ::sluice::run_attention_kernel<SLUICE_ATTENTION_CONFIG(type, fp8, size, tiles)>(params);                        \
  }                                                                                                                 \
  template <>                                                                                                       \
  const void* ::sluice::attention_kernel_entry<SLUICE_ATTENTION_CONFIG(type, fp8, size, tiles)>() {                 \
    return reinterpret_cast<const void*>(&sluice_attention_##type##_##fp8##_##size##_##tiles);                      \
  }
#else
#define SLUICE_ATTENTION_ENTRY(type, fp8, size, tiles)                                                              \
  template <>                                                                                                       \
  ::sluice::EmulatedAttentionKernel ::sluice::emulated_attention_kernel<SLUICE_ATTENTION_CONFIG(type, fp8, size, tiles)>() { \
    return &::sluice::run_attention_kernel<SLUICE_ATTENTION_CONFIG(type, fp8, size, tiles)>;                        \
  }
#endif

#define SLUICE_ATTENTION_KERNELS(type, fp8, size) \
  SLUICE_ATTENTION_ENTRY(type, fp8, size, 1)      \
  SLUICE_ATTENTION_ENTRY(type, fp8, size, 2)      \
  SLUICE_ATTENTION_ENTRY(type, fp8, size, 4)      \
  SLUICE_ATTENTION_ENTRY(type, fp8, size, 8)
// clang-format on
