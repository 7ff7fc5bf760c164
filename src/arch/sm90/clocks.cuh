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
// Between a barrier of threads and a clock. BAR.SYNC.DEFER_BLOCKING lets a warp run on until it needs what others may have written, and a
// clock is nothing of the kind (H200, 22 November 2026: turns of pingpong seemed to come 25 us early). Here it needs a word.
SLUICE_DEVICE void settle_barrier(SharedAddress any_word) {
  std::uint32_t word;
  asm volatile("ld.volatile.shared.u32 %0, [%1];" : "=r"(word) : "r"(any_word) : "memory");
  asm volatile(
      "{\n\t.reg .pred p;\n\t"
      "setp.eq.u32 p, %0, 0x7fc5a5a5;\n\t"
      "@p nanosleep.u32 0;\n\t}" ::"r"(word)
      : "memory");
}

SLUICE_DEVICE int sm_number() { return static_cast<int>(cuda::ptx::get_sreg_smid()); }

// The value that lane `lane ^ mask` of a converged warp passed.
SLUICE_DEVICE float shuffle_xor(float value, int mask) { return __shfl_xor_sync(~0u, value, mask); }

}  // namespace sluice::arch
