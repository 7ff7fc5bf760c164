// wgmma: a warpgroup multiplies 64 rows of P by `columns` of Q over 32 bytes of K, both in shared memory, into registers.
// PTX ISA 8.x, "Asynchronous Warpgroup Level Matrix Instructions"; descriptors as in its "Matrix Descriptor Format".
#pragma once

#include "sluice/types.hpp"

#include "arch/sm90/device.cuh"
#include "arch/sm90/shared_memory.cuh"
#include "arch/sm90/wgmma_registers.cuh"

namespace sluice::arch {

SLUICE_DEVICE std::uint64_t matrix_descriptor(const void* start, int leading_bytes, int stride_bytes) {
  return encode_matrix_descriptor(shared_address(start), leading_bytes, stride_bytes);
}

// Orders register accesses of this warpgroup with the wgmma that follow. Needed before the first of a group.
SLUICE_DEVICE void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
SLUICE_DEVICE void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
// Waits until at most `groups` committed groups are still running.
template <int groups>
SLUICE_DEVICE void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(groups) : "memory");
}

// One instruction for each width.
template <int columns>
struct WgmmaInstruction;

// clang-format off
// The first 1 says that D is added to, the others that neither operand is negated.
#define SLUICE_WGMMA_ASM(columns, types, p, q, tp, tq)                                                                             \
  asm volatile("wgmma.mma_async.sync.aligned.m64n" #columns "k16.f32." types " {" SLUICE_D_##columns "}, %" #p ", %" #q ", "       \
               "1, 1, 1, %" #tp ", %" #tq ";"                                                                                      \
               : SLUICE_C_##columns                                                                                                \
               : "l"(p_descriptor), "l"(q_descriptor), "n"(static_cast<int>(p_major)), "n"(static_cast<int>(q_major)))

#define SLUICE_WGMMA(columns, p, q, tp, tq, next)                                                                                  \
  template <>                                                                                                                      \
  struct WgmmaInstruction<columns> {                                                                                               \
    template <DataType type, Major p_major, Major q_major>                                                                         \
    static SLUICE_DEVICE void issue(float (&d)[columns / 2], std::uint64_t p_descriptor, std::uint64_t q_descriptor) {             \
      if constexpr (type == DataType::bf16)                                                                                        \
        SLUICE_WGMMA_ASM(columns, "bf16.bf16", p, q, tp, tq);                                                                      \
      else                                                                                                                         \
        SLUICE_WGMMA_ASM(columns, "f16.f16", p, q, tp, tq);                                                                        \
    }                                                                                                                              \
  };
SLUICE_FOR_EACH_WGMMA_WIDTH(SLUICE_WGMMA)
// clang-format on

// d += P Q, started now, finished when wgmma_wait says so. d must not be touched in between.
template <DataType type, Major p_major, Major q_major, int registers>
SLUICE_DEVICE void wgmma(float (&d)[registers], std::uint64_t p_descriptor, std::uint64_t q_descriptor) {
  static_assert(type == DataType::bf16 || type == DataType::fp16);
  WgmmaInstruction<registers * 2>::template issue<type, p_major, q_major>(d, p_descriptor, q_descriptor);
}

}  // namespace sluice::arch
