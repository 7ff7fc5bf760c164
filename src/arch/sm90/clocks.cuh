// Clocks, and values from other lanes: for traces, and kernels other than a GEMM.
#pragma once

#include "arch/sm90/device.cuh"

namespace sluice::arch {

// Time in nanoseconds that all SMs agree on, and this SM's own cycles.
SLUICE_DEVICE std::uint64_t global_time_ns() {
  std::uint64_t time;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time));
  return time;
}
SLUICE_DEVICE std::uint64_t clock_cycles() { return static_cast<std::uint64_t>(clock64()); }
SLUICE_DEVICE int sm_number() { return static_cast<int>(cuda::ptx::get_sreg_smid()); }

// The value that lane `lane ^ mask` of a converged warp passed.
SLUICE_DEVICE float shuffle_xor(float value, int mask) { return __shfl_xor_sync(~0u, value, mask); }

}  // namespace sluice::arch
