// What a generated instance file includes: SLUICE_HISTOGRAM_KERNELS(type of samples) compiles the kernels that count them.
//
// The entry functions are no templates, for the reasons given in kernel/kernel_instance.cuh.
#pragma once

#include "kernel/histogram/histogram_entry.hpp"
#include "kernel/histogram/histogram_kernel.cuh"

// clang-format off
#define SLUICE_HISTOGRAM_CONFIG(type, where, bits, ranges_)                                                        \
  ::sluice::histogram_config(::sluice::HistogramSample::type,                                                      \
                             {.counters = ::sluice::HistogramCounters::where, .field_bits = bits, .ranges = ranges_})

#ifdef __CUDACC__
#define SLUICE_HISTOGRAM_ENTRY(type, where, bits, ranges)                                                          \
  extern "C" SLUICE_KERNEL_ENTRY(::sluice::kHistogramThreads, 1)                                                   \
      sluice_histogram_##type##_##where##_##bits##_##ranges(SLUICE_KERNEL_PARAMETER ::sluice::HistogramParams params) { \
    ::sluice::run_histogram_kernel<SLUICE_HISTOGRAM_CONFIG(type, where, bits, ranges)>(params);                    \
  }                                                                                                                \
  template <>                                                                                                      \
  const void* ::sluice::histogram_kernel_entry<SLUICE_HISTOGRAM_CONFIG(type, where, bits, ranges)>() {             \
    return reinterpret_cast<const void*>(&sluice_histogram_##type##_##where##_##bits##_##ranges);                  \
  }
#define SLUICE_HISTOGRAM_CLEAR()                                                                                   \
  extern "C" SLUICE_KERNEL_ENTRY(::sluice::kClearThreads, 1)                                                       \
      sluice_histogram_clear(SLUICE_KERNEL_PARAMETER ::sluice::HistogramParams params) {                           \
    ::sluice::run_clear_counts(params);                                                                            \
  }                                                                                                                \
  const void* ::sluice::clear_counts_entry() { return reinterpret_cast<const void*>(&sluice_histogram_clear); }
#else
#define SLUICE_HISTOGRAM_ENTRY(type, where, bits, ranges)                                                          \
  template <>                                                                                                      \
  ::sluice::EmulatedHistogramKernel ::sluice::emulated_histogram_kernel<SLUICE_HISTOGRAM_CONFIG(type, where, bits, ranges)>() { \
    return &::sluice::run_histogram_kernel<SLUICE_HISTOGRAM_CONFIG(type, where, bits, ranges)>;                    \
  }
#define SLUICE_HISTOGRAM_CLEAR() \
  ::sluice::EmulatedHistogramKernel (::sluice::emulated_clear_counts)() { return &::sluice::run_clear_counts; }
#endif

#define SLUICE_HISTOGRAM_OF_WORDS(type)                                                                            \
  SLUICE_HISTOGRAM_ENTRY(type, words, 32, 1)                                                                       \
  SLUICE_HISTOGRAM_ENTRY(type, words, 32, 2)                                                                       \
  SLUICE_HISTOGRAM_ENTRY(type, fields, 8, 1)                                                                       \
  SLUICE_HISTOGRAM_ENTRY(type, global, 32, 1)
#define SLUICE_HISTOGRAM_KERNELS_int32 SLUICE_HISTOGRAM_OF_WORDS(int32)
#define SLUICE_HISTOGRAM_KERNELS_float32 SLUICE_HISTOGRAM_OF_WORDS(float32)
#define SLUICE_HISTOGRAM_KERNELS_uint8 \
  SLUICE_HISTOGRAM_ENTRY(uint8, words, 32, 1)                                                                      \
  SLUICE_HISTOGRAM_CLEAR()
#define SLUICE_HISTOGRAM_KERNELS(type) SLUICE_HISTOGRAM_KERNELS_##type
// clang-format on
