// wgmma whose P comes from registers: see arch/sm90/wgmma.cuh.
#pragma once

#include "sluice/types.hpp"

#include "arch/sm90/device.cuh"
#include "arch/sm90/wgmma_registers.cuh"

namespace sluice::arch {

// clang-format off
// K is contiguous in Q. add: 0 where D is overwritten; it is bound as read all the same, as in arch/sm90/wgmma_fp8.cuh.
template <int columns>
struct WgmmaFromRegisters;
#define SLUICE_WGMMA_RS_ASM(columns, types, add, p0, p1, p2, p3, q)                                                                \
  asm volatile("wgmma.mma_async.sync.aligned.m64n" #columns "k16.f32." types " {" SLUICE_D_##columns "}, "                         \
               "{%" #p0 ", %" #p1 ", %" #p2 ", %" #p3 "}, %" #q ", " #add ", 1, 1, 0;"                                             \
               : SLUICE_C_##columns                                                                                                \
               : "r"(p[0]), "r"(p[1]), "r"(p[2]), "r"(p[3]), "l"(q_descriptor))
#define SLUICE_WGMMA_RS_OF(columns, types, p0, p1, p2, p3, q)                                                                      \
  if constexpr (adds)                                                                                                              \
    SLUICE_WGMMA_RS_ASM(columns, types, 1, p0, p1, p2, p3, q);                                                                     \
  else                                                                                                                             \
    SLUICE_WGMMA_RS_ASM(columns, types, 0, p0, p1, p2, p3, q)
#define SLUICE_WGMMA_RS(columns, p0, p1, p2, p3, q)                                                                                \
  template <>                                                                                                                      \
  struct WgmmaFromRegisters<columns> {                                                                                             \
    template <DataType type, bool adds>                                                                                            \
    static SLUICE_DEVICE void issue(float (&d)[columns / 2], const std::uint32_t (&p)[4], std::uint64_t q_descriptor) {            \
      if constexpr (type == DataType::bf16) {                                                                                      \
        SLUICE_WGMMA_RS_OF(columns, "bf16.bf16", p0, p1, p2, p3, q);                                                               \
      } else {                                                                                                                     \
        SLUICE_WGMMA_RS_OF(columns, "f16.f16", p0, p1, p2, p3, q);                                                                 \
      }                                                                                                                            \
    }                                                                                                                              \
  };
SLUICE_FOR_EACH_WGMMA_WIDTH(SLUICE_WGMMA_RS)
// clang-format on

// d += P Q, with P's 64 rows by 16 of K in the warpgroup's registers (PTX ISA, "Register Fragments for wgmma.mma_async.m64nNk16", matrix
// A). They must not be written before wgmma_wait says that it has finished. Without `adds` d = P Q.
template <DataType type, bool adds, int registers>
SLUICE_DEVICE void wgmma(float (&d)[registers], const std::uint32_t (&p)[4], std::uint64_t q_descriptor) {
  static_assert(type == DataType::bf16 || type == DataType::fp16);
  WgmmaFromRegisters<registers * 2>::template issue<type, adds>(d, p, q_descriptor);
}

}  // namespace sluice::arch
