// What the generated instance file includes: SLUICE_W4_KERNELS compiles the kernels that pack weights of 4 bits and permute columns.
//
// Source, order and types are decided when a kernel runs, alike for all its threads: what they cost hides behind memory, and one kernel
// serves them all.
#pragma once

#include "kernel/w4/pack_w4_kernel.cuh"
#include "kernel/w4/permute_columns_kernel.cuh"
#include "kernel/w4/w4_entry.hpp"

// clang-format off
#ifdef __CUDACC__
#define SLUICE_W4_KERNELS                                                                                                                  \
  extern "C" SLUICE_KERNEL_ENTRY(::sluice::kPackW4Threads, ::sluice::kPackW4CtasPerSm)                                                     \
      sluice_pack_w4_kernel(SLUICE_KERNEL_PARAMETER ::sluice::PackW4Params params) {                                                       \
    ::sluice::run_pack_w4_kernel(params);                                                                                                  \
  }                                                                                                                                        \
  extern "C" SLUICE_KERNEL_ENTRY(::sluice::kPermuteThreads, ::sluice::kPermuteCtasPerSm)                                                   \
      sluice_permute_columns_kernel(SLUICE_KERNEL_PARAMETER ::sluice::PermuteColumnsParams params) {                                       \
    ::sluice::run_permute_columns_kernel(params);                                                                                          \
  }                                                                                                                                        \
  const void* ::sluice::pack_w4_kernel_entry() { return reinterpret_cast<const void*>(&sluice_pack_w4_kernel); }                           \
  const void* ::sluice::permute_columns_kernel_entry() { return reinterpret_cast<const void*>(&sluice_permute_columns_kernel); }
#else
#define SLUICE_W4_KERNELS                                                                                                                  \
  ::sluice::EmulatedPackW4Kernel sluice::emulated_pack_w4_kernel() { return &::sluice::run_pack_w4_kernel; }                               \
  ::sluice::EmulatedPermuteColumnsKernel sluice::emulated_permute_columns_kernel() { return &::sluice::run_permute_columns_kernel; }
#endif
// clang-format on
