// wgmma of 8-bit operands, K contiguous in both, and what keeps the compiler from mixing it up with promotion.
#pragma once

#include "sluice/types.hpp"

#include "arch/sm90/device.cuh"
#include "arch/sm90/wgmma_registers.cuh"

namespace sluice::arch {

template <int columns>
struct Wgmma8BitInstruction;

// clang-format off
// add: 0 where D is overwritten. D is bound as read all the same: bound as written only, ptxas began a unit in other registers while the
// last one's were still being read, and spilled. The 1s behind it say that neither operand is negated. There are no majors.
#define SLUICE_WGMMA8_ASM(columns, types, add, p, q)                                                                               \
  asm volatile("wgmma.mma_async.sync.aligned.m64n" #columns "k32.f32." types " {" SLUICE_D_##columns "}, %" #p ", %" #q ", "       \
               #add ", 1, 1;"                                                                                                      \
               : SLUICE_C_##columns                                                                                                \
               : "l"(p_descriptor), "l"(q_descriptor))
#define SLUICE_WGMMA8_OF(columns, types, p, q)                                                                                     \
  if constexpr (adds)                                                                                                              \
    SLUICE_WGMMA8_ASM(columns, types, 1, p, q);                                                                                    \
  else                                                                                                                             \
    SLUICE_WGMMA8_ASM(columns, types, 0, p, q)
#define SLUICE_WGMMA8(columns, p, q, tp, tq, next)                                                                                 \
  template <>                                                                                                                      \
  struct Wgmma8BitInstruction<columns> {                                                                                           \
    template <DataType type_p, DataType type_q, bool adds>                                                                         \
    static SLUICE_DEVICE void issue(float (&d)[columns / 2], std::uint64_t p_descriptor, std::uint64_t q_descriptor) {             \
      if constexpr (type_p == DataType::e4m3 && type_q == DataType::e4m3) {                                                        \
        SLUICE_WGMMA8_OF(columns, "e4m3.e4m3", p, q);                                                                              \
      } else if constexpr (type_p == DataType::e4m3) {                                                                             \
        SLUICE_WGMMA8_OF(columns, "e4m3.e5m2", p, q);                                                                              \
      } else if constexpr (type_q == DataType::e4m3) {                                                                             \
        SLUICE_WGMMA8_OF(columns, "e5m2.e4m3", p, q);                                                                              \
      } else {                                                                                                                     \
        SLUICE_WGMMA8_OF(columns, "e5m2.e5m2", p, q);                                                                              \
      }                                                                                                                            \
    }                                                                                                                              \
  };
SLUICE_FOR_EACH_WGMMA_WIDTH(SLUICE_WGMMA8)
// clang-format on

// As wgmma(): d += P Q, or with adds == false d = P Q.
template <DataType type_p, DataType type_q, bool adds, int registers>
SLUICE_DEVICE void wgmma_8_bit(float (&d)[registers], std::uint64_t p_descriptor, std::uint64_t q_descriptor) {
  static_assert(is_fp8(type_p) && is_fp8(type_q));
  Wgmma8BitInstruction<registers * 2>::template issue<type_p, type_q, adds>(d, p_descriptor, q_descriptor);
}

// A line that registers do not cross: what is computed into d before is computed here, what reads d reads it behind. To the compiler they
// have nothing to do with wgmma_wait and with each other.
template <int registers>
SLUICE_DEVICE void pin_registers(float (&d)[registers]) {
#pragma unroll
  for (int i = 0; i < registers; ++i) asm volatile("" : "+f"(d[i])::"memory");
}

// What follows and uses `value` is not computed before `result` has been: bounds what the compiler holds in registers at once.
SLUICE_DEVICE void compute_first(float& result, int& value) { asm volatile("" : "+f"(result), "+r"(value)); }

SLUICE_DEVICE float fused_multiply_add(float a, float b, float c) { return __fmaf_rn(a, b, c); }

}  // namespace sluice::arch
