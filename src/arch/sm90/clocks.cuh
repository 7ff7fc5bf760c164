// Clocks, for those who want to know when.
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

}  // namespace sluice::arch
