// For kernels that count.
#pragma once

#include "arch/sm90/device.cuh"
#include "arch/sm90/shared_memory.cuh"
#include "arch/sm90/streaming.cuh"

namespace sluice::arch {

// 16 bytes, as load_streaming() brings them, kept in L2 as the policy says. Not inside: nothing is read, and the words are 0.
SLUICE_DEVICE void load_vector(const void* source, bool inside, CachePolicy policy, std::uint32_t (&words)[4]) {
  asm volatile(
      "{\n\t.reg .pred inside;\n\t"
      "setp.ne.s32 inside, %5, 0;\n\t"
      "mov.b32 %0, 0;\n\tmov.b32 %1, 0;\n\tmov.b32 %2, 0;\n\tmov.b32 %3, 0;\n\t"
      "@inside ld.global.L1::no_allocate.L2::cache_hint.v4.b32 {%0, %1, %2, %3}, [%4], %6;\n\t}"
      : "=&r"(words[0]), "=&r"(words[1]), "=&r"(words[2]), "=&r"(words[3])
      : "l"(source), "r"(inside ? 1 : 0), "l"(policy)
      : "memory");
}

// Adds one to a word of shared memory. ATOMS.POPC.INC: lanes that meet at one word are added up on their way and cost as
// much as one lane, which holds for no other addition to shared memory.
SLUICE_DEVICE void increment_shared(SharedAddress address) {
  asm volatile("red.relaxed.cta.shared::cta.add.u32 [%0], 1;" ::"r"(address) : "memory");
}

// Adds, and returns what was there before.
SLUICE_DEVICE std::uint32_t atomic_add_shared(SharedAddress address, std::uint32_t value) {
  std::uint32_t before;
  asm volatile("atom.relaxed.cta.shared::cta.add.u32 %0, [%1], %2;" : "=r"(before) : "r"(address), "r"(value) : "memory");
  return before;
}

// One word.
SLUICE_DEVICE std::uint32_t load_shared_word(SharedAddress address) {
  std::uint32_t word;
  asm volatile("ld.shared.u32 %0, [%1];" : "=r"(word) : "r"(address) : "memory");
  return word;
}

// Adds to global memory without an answer, at L2.
SLUICE_DEVICE void add_global(std::uint32_t* sum, std::uint32_t value) {
  asm volatile("red.relaxed.gpu.global.add.u32 [%0], %1;" ::"l"(sum), "r"(value) : "memory");
}
SLUICE_DEVICE void add_global(std::uint64_t* sum, std::uint64_t value) {
  asm volatile("red.relaxed.gpu.global.add.u64 [%0], %1;" ::"l"(sum), "l"(value) : "memory");
}

// Bits that leave below come in above.
SLUICE_DEVICE std::uint32_t rotate_right(std::uint32_t word, std::uint32_t by) { return __funnelshift_r(word, word, by); }

// Towards zero; beyond the range of int the nearest end of it, and 0 for NaN.
SLUICE_DEVICE int truncate(float x) { return __float2int_rz(x); }

// Products and differences that are rounded one by one: never fused.
SLUICE_DEVICE float subtract(float a, float b) { return __fsub_rn(a, b); }
SLUICE_DEVICE float multiply(float a, float b) { return __fmul_rn(a, b); }

}  // namespace sluice::arch
