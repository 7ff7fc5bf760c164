// wgmma whose P comes from registers: see arch/sm90/wgmma.cuh.
#pragma once

#include "sluice/types.hpp"

#include "arch/sm90/device.cuh"
#include "arch/sm90/wgmma_registers.cuh"

namespace sluice::arch {

// clang-format off
// K is contiguous in Q. add: 0 where D is overwritten; it is bound as read all the same, as in arch/sm90/wgmma_fp8.cuh. last: neither
// operand is negated and, of 16 bits, Q is not transposed.
template <int columns>
struct WgmmaFromRegisters;
#define SLUICE_WGMMA_RS_ASM(columns, types, add, last, p0, p1, p2, p3, q)                                                          \
  asm volatile("wgmma.mma_async.sync.aligned.m64n" #columns types " {" SLUICE_D_##columns "}, "                                    \
               "{%" #p0 ", %" #p1 ", %" #p2 ", %" #p3 "}, %" #q ", " #add last ";"                                                 \
               : SLUICE_C_##columns                                                                                                \
               : "r"(p[0]), "r"(p[1]), "r"(p[2]), "r"(p[3]), "l"(q_descriptor))
#define SLUICE_WGMMA_RS_OF(columns, types, last, p0, p1, p2, p3, q)                                                                \
  if constexpr (adds)                                                                                                              \
    SLUICE_WGMMA_RS_ASM(columns, types, 1, last, p0, p1, p2, p3, q);                                                               \
  else                                                                                                                             \
    SLUICE_WGMMA_RS_ASM(columns, types, 0, last, p0, p1, p2, p3, q)
#define SLUICE_WGMMA_RS(columns, p0, p1, p2, p3, q)                                                                                \
  template <>                                                                                                                      \
  struct WgmmaFromRegisters<columns> {                                                                                             \
    template <DataType type, bool adds>                                                                                            \
    static SLUICE_DEVICE void issue(float (&d)[columns / 2], const std::uint32_t (&p)[4], std::uint64_t q_descriptor) {            \
      if constexpr (type == DataType::bf16) {                                                                                      \
        SLUICE_WGMMA_RS_OF(columns, "k16.f32.bf16.bf16", ", 1, 1, 0", p0, p1, p2, p3, q);                                          \
      } else if constexpr (type == DataType::fp16) {                                                                               \
        SLUICE_WGMMA_RS_OF(columns, "k16.f32.f16.f16", ", 1, 1, 0", p0, p1, p2, p3, q);                                            \
      } else {                                                                                                                     \
        SLUICE_WGMMA_RS_OF(columns, "k32.f32.e4m3.e4m3", ", 1, 1", p0, p1, p2, p3, q);                                             \
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
// The same of 32 of K ("Register Fragments for wgmma.mma_async.m64nNk32").
template <DataType type, bool adds, int registers>
SLUICE_DEVICE void wgmma_8_bit(float (&d)[registers], const std::uint32_t (&p)[4], std::uint64_t q_descriptor) {
  static_assert(type == DataType::e4m3);
  WgmmaFromRegisters<registers * 2>::template issue<type, adds>(d, p, q_descriptor);
}

}  // namespace sluice::arch
