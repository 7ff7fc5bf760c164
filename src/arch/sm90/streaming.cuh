// For kernels that pass over data once.
#pragma once

#include <cmath>

#include "arch/sm90/device.cuh"

namespace sluice::arch {

// 16 bytes, which are not kept: they pass by L1 and are the first to leave L2, so that what the kernel writes is still there for the next.
// Not inside: nothing is read, and the words are 0. Not ld.global.nc, whose cache may be older than the kernel before this one.
SLUICE_DEVICE void load_streaming(const void* source, bool inside, std::uint32_t (&words)[4]) {
  asm volatile(
      "{\n\t.reg .pred inside;\n\t"
      "setp.ne.s32 inside, %5, 0;\n\t"
      "mov.b32 %0, 0;\n\tmov.b32 %1, 0;\n\tmov.b32 %2, 0;\n\tmov.b32 %3, 0;\n\t"
      "@inside ld.global.L1::no_allocate.L2::cache_hint.v4.b32 {%0, %1, %2, %3}, [%4], %6;\n\t}"
      : "=&r"(words[0]), "=&r"(words[1]), "=&r"(words[2]), "=&r"(words[3])
      : "l"(source), "r"(inside ? 1 : 0), "l"(CachePolicy::evict_first)
      : "memory");
}

// The same, of what is inside.
SLUICE_DEVICE void load_streaming(const void* source, std::uint32_t (&words)[4]) {
  asm volatile("ld.global.L1::no_allocate.L2::cache_hint.v4.b32 {%0, %1, %2, %3}, [%4], %5;"
               : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
               : "l"(source), "l"(CachePolicy::evict_first)
               : "memory");
}

// Lets about so much time pass.
SLUICE_DEVICE void pause_ns(int ns) { asm volatile("nanosleep.u32 %0;" ::"r"(ns)); }

// The same bits.
SLUICE_DEVICE std::uint32_t as_bits(float x) { return __float_as_uint(x); }

// What that lane of a converged warp passed.
SLUICE_DEVICE float from_lane(float value, int lane) { return __shfl_sync(~0u, value, lane); }

// Of two, that which is no NaN.
SLUICE_DEVICE float maximum(float a, float b) { return fmaxf(a, b); }

// x / (1 + exp(-x)), within 2^-17 of it: x log2(e) is rounded to fp32, which moves 2 to its power by up to 88 2^-24; the instructions' own
// errors are smaller. What they flush to zero would not change the sum, or is below 2^-126.
SLUICE_DEVICE float silu(float x) {
  constexpr float kLog2E = 1.44269504f;
  float exponential, inverse;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(exponential) : "f"(-kLog2E * x));
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(1.0f + exponential));
  return x * inverse;
}

// Four numbers, the first in the lowest byte, to nearest even; what is too large, infinite included, becomes the largest finite number.
SLUICE_DEVICE std::uint32_t pack_e4m3(const float (&x)[4]) {
  std::uint32_t packed;
  asm("{\n\t.reg .b16 low, high;\n\t"
      "cvt.rn.satfinite.e4m3x2.f32 low, %2, %1;\n\t"
      "cvt.rn.satfinite.e4m3x2.f32 high, %4, %3;\n\t"
      "mov.b32 %0, {low, high};\n\t}"
      : "=r"(packed)
      : "f"(x[0]), "f"(x[1]), "f"(x[2]), "f"(x[3]));
  return packed;
}
SLUICE_DEVICE std::uint32_t pack_e5m2(const float (&x)[4]) {
  std::uint32_t packed;
  asm("{\n\t.reg .b16 low, high;\n\t"
      "cvt.rn.satfinite.e5m2x2.f32 low, %2, %1;\n\t"
      "cvt.rn.satfinite.e5m2x2.f32 high, %4, %3;\n\t"
      "mov.b32 %0, {low, high};\n\t}"
      : "=r"(packed)
      : "f"(x[0]), "f"(x[1]), "f"(x[2]), "f"(x[3]));
  return packed;
}

}  // namespace sluice::arch
