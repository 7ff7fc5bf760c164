// What the generated instance file includes: SLUICE_PREPARE_GROUPS_KERNEL compiles the kernel that prepares general groups.
#pragma once

#include "kernel/general/general_entry.hpp"
#include "kernel/general/prepare_groups_kernel.cuh"

// clang-format off
#ifdef __CUDACC__
#define SLUICE_PREPARE_GROUPS_KERNEL                                                                                                  \
  extern "C" SLUICE_KERNEL_ENTRY(::sluice::kPrepareThreads, 1)                                                                        \
      sluice_prepare_groups_kernel(SLUICE_KERNEL_PARAMETER ::sluice::GeneralGemmParams params) {                                      \
    ::sluice::run_prepare_groups_kernel(params);                                                                                      \
  }                                                                                                                                   \
  const void* ::sluice::prepare_groups_kernel_entry() { return reinterpret_cast<const void*>(&sluice_prepare_groups_kernel); }
#else
#define SLUICE_PREPARE_GROUPS_KERNEL \
  ::sluice::EmulatedGeneralKernel sluice::emulated_prepare_groups_kernel() { return &::sluice::run_prepare_groups_kernel; }
#endif
// clang-format on
