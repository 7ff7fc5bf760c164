// Global memory that CTAs of different clusters share while they run: flags and counters, and what they announce.
#pragma once

#include "arch/sm90/device.cuh"

namespace sluice::arch {

// What another CTA has written during this launch: past this SM's L1.
SLUICE_DEVICE Floats4 load_global_from_l2(const Floats4* source) {
  Floats4 x;
  asm volatile("ld.relaxed.gpu.global.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(x.values[0]), "=f"(x.values[1]), "=f"(x.values[2]), "=f"(x.values[3])
               : "l"(source)
               : "memory");
  return x;
}

// Everything this thread wrote or saw before a release is visible to whoever acquires the value it left.
SLUICE_DEVICE void store_release(std::uint32_t* flag, std::uint32_t value) {
  asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(flag), "r"(value) : "memory");
}
SLUICE_DEVICE std::uint32_t load_acquire(const std::uint32_t* flag) {
  std::uint32_t value;
  asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(flag) : "memory");
  return value;
}
SLUICE_DEVICE void store_relaxed(std::uint32_t* flag, std::uint32_t value) {
  asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(flag), "r"(value) : "memory");
}

// They return what was there before.
SLUICE_DEVICE std::uint32_t atomic_add_relaxed(std::uint32_t* counter, std::uint32_t value) {
  std::uint32_t before;
  asm volatile("atom.relaxed.gpu.global.add.u32 %0, [%1], %2;" : "=r"(before) : "l"(counter), "r"(value) : "memory");
  return before;
}
SLUICE_DEVICE std::uint32_t atomic_or_relaxed(std::uint32_t* flags, std::uint32_t bits) {
  std::uint32_t before;
  asm volatile("atom.relaxed.gpu.global.or.b32 %0, [%1], %2;" : "=r"(before) : "l"(flags), "r"(bits) : "memory");
  return before;
}
SLUICE_DEVICE std::uint32_t atomic_add_acq_rel(std::uint32_t* counter, std::uint32_t value) {
  std::uint32_t before;
  asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], %2;" : "=r"(before) : "l"(counter), "r"(value) : "memory");
  return before;
}
SLUICE_DEVICE void atomic_add_float(float* sum, float value) {
  asm volatile("red.relaxed.gpu.global.add.f32 [%0], %1;" ::"l"(sum), "f"(value) : "memory");
}

// Returns once the flag has this value, and acquires what was released with it.
SLUICE_DEVICE void wait_for_flag(const std::uint32_t* flag, std::uint32_t value) {
  while (load_acquire(flag) != value) {}
}

// Turns the relaxed accesses around it into release or acquire.
SLUICE_DEVICE void fence_global() { asm volatile("fence.acq_rel.gpu;" ::: "memory"); }

// Orders ordinary accesses to global memory with those of the copy engine.
SLUICE_DEVICE void fence_global_for_async() { asm volatile("fence.proxy.async.global;" ::: "memory"); }

}  // namespace sluice::arch
