// wgmma: a warpgroup multiplies 64 rows of P by `columns` of Q over 32 bytes of K, both in shared memory, into registers.
// PTX ISA 8.x, "Asynchronous Warpgroup Level Matrix Instructions"; descriptors as in its "Matrix Descriptor Format".
#pragma once

#include "sluice/types.hpp"

#include "arch/sm90/device.cuh"
#include "arch/sm90/shared_memory.cuh"

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

template <int columns>
struct WgmmaInstruction;

// One instruction for each width. An asm statement lists its registers in its text, and the preprocessor is the only thing that can write
// such a list: SLUICE_D_n names the accumulators of n columns, SLUICE_C_n binds them as added to, SLUICE_N_n as overwritten.

// clang-format off
#define SLUICE_D_8 "%0, %1, %2, %3"
#define SLUICE_D_16 SLUICE_D_8 ", %4, %5, %6, %7"
#define SLUICE_D_24 SLUICE_D_16 ", %8, %9, %10, %11"
#define SLUICE_D_32 SLUICE_D_24 ", %12, %13, %14, %15"
#define SLUICE_D_40 SLUICE_D_32 ", %16, %17, %18, %19"
#define SLUICE_D_48 SLUICE_D_40 ", %20, %21, %22, %23"
#define SLUICE_D_56 SLUICE_D_48 ", %24, %25, %26, %27"
#define SLUICE_D_64 SLUICE_D_56 ", %28, %29, %30, %31"
#define SLUICE_D_72 SLUICE_D_64 ", %32, %33, %34, %35"
#define SLUICE_D_80 SLUICE_D_72 ", %36, %37, %38, %39"
#define SLUICE_D_88 SLUICE_D_80 ", %40, %41, %42, %43"
#define SLUICE_D_96 SLUICE_D_88 ", %44, %45, %46, %47"
#define SLUICE_D_104 SLUICE_D_96 ", %48, %49, %50, %51"
#define SLUICE_D_112 SLUICE_D_104 ", %52, %53, %54, %55"
#define SLUICE_D_120 SLUICE_D_112 ", %56, %57, %58, %59"
#define SLUICE_D_128 SLUICE_D_120 ", %60, %61, %62, %63"
#define SLUICE_D_136 SLUICE_D_128 ", %64, %65, %66, %67"
#define SLUICE_D_144 SLUICE_D_136 ", %68, %69, %70, %71"
#define SLUICE_D_152 SLUICE_D_144 ", %72, %73, %74, %75"
#define SLUICE_D_160 SLUICE_D_152 ", %76, %77, %78, %79"
#define SLUICE_D_168 SLUICE_D_160 ", %80, %81, %82, %83"
#define SLUICE_D_176 SLUICE_D_168 ", %84, %85, %86, %87"
#define SLUICE_D_184 SLUICE_D_176 ", %88, %89, %90, %91"
#define SLUICE_D_192 SLUICE_D_184 ", %92, %93, %94, %95"
#define SLUICE_D_200 SLUICE_D_192 ", %96, %97, %98, %99"
#define SLUICE_D_208 SLUICE_D_200 ", %100, %101, %102, %103"
#define SLUICE_D_216 SLUICE_D_208 ", %104, %105, %106, %107"
#define SLUICE_D_224 SLUICE_D_216 ", %108, %109, %110, %111"
#define SLUICE_D_232 SLUICE_D_224 ", %112, %113, %114, %115"
#define SLUICE_D_240 SLUICE_D_232 ", %116, %117, %118, %119"
#define SLUICE_D_248 SLUICE_D_240 ", %120, %121, %122, %123"
#define SLUICE_D_256 SLUICE_D_248 ", %124, %125, %126, %127"
#define SLUICE_C4(i) "+f"(d[4 * i]), "+f"(d[4 * i + 1]), "+f"(d[4 * i + 2]), "+f"(d[4 * i + 3])
#define SLUICE_C_8 SLUICE_C4(0)
#define SLUICE_C_16 SLUICE_C_8, SLUICE_C4(1)
#define SLUICE_C_24 SLUICE_C_16, SLUICE_C4(2)
#define SLUICE_C_32 SLUICE_C_24, SLUICE_C4(3)
#define SLUICE_C_40 SLUICE_C_32, SLUICE_C4(4)
#define SLUICE_C_48 SLUICE_C_40, SLUICE_C4(5)
#define SLUICE_C_56 SLUICE_C_48, SLUICE_C4(6)
#define SLUICE_C_64 SLUICE_C_56, SLUICE_C4(7)
#define SLUICE_C_72 SLUICE_C_64, SLUICE_C4(8)
#define SLUICE_C_80 SLUICE_C_72, SLUICE_C4(9)
#define SLUICE_C_88 SLUICE_C_80, SLUICE_C4(10)
#define SLUICE_C_96 SLUICE_C_88, SLUICE_C4(11)
#define SLUICE_C_104 SLUICE_C_96, SLUICE_C4(12)
#define SLUICE_C_112 SLUICE_C_104, SLUICE_C4(13)
#define SLUICE_C_120 SLUICE_C_112, SLUICE_C4(14)
#define SLUICE_C_128 SLUICE_C_120, SLUICE_C4(15)
#define SLUICE_C_136 SLUICE_C_128, SLUICE_C4(16)
#define SLUICE_C_144 SLUICE_C_136, SLUICE_C4(17)
#define SLUICE_C_152 SLUICE_C_144, SLUICE_C4(18)
#define SLUICE_C_160 SLUICE_C_152, SLUICE_C4(19)
#define SLUICE_C_168 SLUICE_C_160, SLUICE_C4(20)
#define SLUICE_C_176 SLUICE_C_168, SLUICE_C4(21)
#define SLUICE_C_184 SLUICE_C_176, SLUICE_C4(22)
#define SLUICE_C_192 SLUICE_C_184, SLUICE_C4(23)
#define SLUICE_C_200 SLUICE_C_192, SLUICE_C4(24)
#define SLUICE_C_208 SLUICE_C_200, SLUICE_C4(25)
#define SLUICE_C_216 SLUICE_C_208, SLUICE_C4(26)
#define SLUICE_C_224 SLUICE_C_216, SLUICE_C4(27)
#define SLUICE_C_232 SLUICE_C_224, SLUICE_C4(28)
#define SLUICE_C_240 SLUICE_C_232, SLUICE_C4(29)
#define SLUICE_C_248 SLUICE_C_240, SLUICE_C4(30)
#define SLUICE_C_256 SLUICE_C_248, SLUICE_C4(31)

#define SLUICE_N4(i) "=f"(d[4 * i]), "=f"(d[4 * i + 1]), "=f"(d[4 * i + 2]), "=f"(d[4 * i + 3])
#define SLUICE_N_8 SLUICE_N4(0)
#define SLUICE_N_16 SLUICE_N_8, SLUICE_N4(1)
#define SLUICE_N_24 SLUICE_N_16, SLUICE_N4(2)
#define SLUICE_N_32 SLUICE_N_24, SLUICE_N4(3)
#define SLUICE_N_40 SLUICE_N_32, SLUICE_N4(4)
#define SLUICE_N_48 SLUICE_N_40, SLUICE_N4(5)
#define SLUICE_N_56 SLUICE_N_48, SLUICE_N4(6)
#define SLUICE_N_64 SLUICE_N_56, SLUICE_N4(7)
#define SLUICE_N_72 SLUICE_N_64, SLUICE_N4(8)
#define SLUICE_N_80 SLUICE_N_72, SLUICE_N4(9)
#define SLUICE_N_88 SLUICE_N_80, SLUICE_N4(10)
#define SLUICE_N_96 SLUICE_N_88, SLUICE_N4(11)
#define SLUICE_N_104 SLUICE_N_96, SLUICE_N4(12)
#define SLUICE_N_112 SLUICE_N_104, SLUICE_N4(13)
#define SLUICE_N_120 SLUICE_N_112, SLUICE_N4(14)
#define SLUICE_N_128 SLUICE_N_120, SLUICE_N4(15)
#define SLUICE_N_136 SLUICE_N_128, SLUICE_N4(16)
#define SLUICE_N_144 SLUICE_N_136, SLUICE_N4(17)
#define SLUICE_N_152 SLUICE_N_144, SLUICE_N4(18)
#define SLUICE_N_160 SLUICE_N_152, SLUICE_N4(19)
#define SLUICE_N_168 SLUICE_N_160, SLUICE_N4(20)
#define SLUICE_N_176 SLUICE_N_168, SLUICE_N4(21)
#define SLUICE_N_184 SLUICE_N_176, SLUICE_N4(22)
#define SLUICE_N_192 SLUICE_N_184, SLUICE_N4(23)
#define SLUICE_N_200 SLUICE_N_192, SLUICE_N4(24)
#define SLUICE_N_208 SLUICE_N_200, SLUICE_N4(25)
#define SLUICE_N_216 SLUICE_N_208, SLUICE_N4(26)
#define SLUICE_N_224 SLUICE_N_216, SLUICE_N4(27)
#define SLUICE_N_232 SLUICE_N_224, SLUICE_N4(28)
#define SLUICE_N_240 SLUICE_N_232, SLUICE_N4(29)
#define SLUICE_N_248 SLUICE_N_240, SLUICE_N4(30)
#define SLUICE_N_256 SLUICE_N_248, SLUICE_N4(31)

// p, q, tp, tq: the numbers of the operands after the accumulators, descriptors and majors. The first 1 says that D is added to (0: that it
// is overwritten), the others that neither operand is negated. 8-bit operands have no majors: K is contiguous in both.
#define SLUICE_WGMMA_ASM(columns, types, p, q, tp, tq)                                                                             \
  asm volatile("wgmma.mma_async.sync.aligned.m64n" #columns "k16.f32." types " {" SLUICE_D_##columns "}, %" #p ", %" #q ", "       \
               "1, 1, 1, %" #tp ", %" #tq ";"                                                                                      \
               : SLUICE_C_##columns                                                                                                \
               : "l"(p_descriptor), "l"(q_descriptor), "n"(static_cast<int>(p_major)), "n"(static_cast<int>(q_major)))

#define SLUICE_WGMMA8_ASM(columns, types, add, d_registers, p, q)                                                                               \
  asm volatile("wgmma.mma_async.sync.aligned.m64n" #columns "k32.f32." types " {" SLUICE_D_##columns "}, %" #p ", %" #q ", "       \
               #add ", 1, 1;"                                                                                                      \
               : d_registers##columns                                                                                                \
               : "l"(p_descriptor), "l"(q_descriptor))
#define SLUICE_WGMMA8_OF(columns, types, p, q)                                                                                     \
  if constexpr (adds)                                                                                                              \
    SLUICE_WGMMA8_ASM(columns, types, 1, SLUICE_C_, p, q);                                                                                    \
  else                                                                                                                             \
    SLUICE_WGMMA8_ASM(columns, types, 0, SLUICE_C_, p, q)

#define SLUICE_WGMMA(columns, p, q, tp, tq)                                                                                        \
  template <>                                                                                                                      \
  struct WgmmaInstruction<columns> {                                                                                               \
    template <DataType type, Major p_major, Major q_major>                                                                         \
    static SLUICE_DEVICE void issue(float (&d)[columns / 2], std::uint64_t p_descriptor, std::uint64_t q_descriptor) {             \
      if constexpr (type == DataType::bf16)                                                                                        \
        SLUICE_WGMMA_ASM(columns, "bf16.bf16", p, q, tp, tq);                                                                      \
      else                                                                                                                         \
        SLUICE_WGMMA_ASM(columns, "f16.f16", p, q, tp, tq);                                                                        \
    }                                                                                                                              \
    template <DataType type_p, DataType type_q, bool adds>                                                                         \
    static SLUICE_DEVICE void issue_8_bit(float (&d)[columns / 2], std::uint64_t p_descriptor, std::uint64_t q_descriptor) {       \
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

SLUICE_WGMMA(8, 4, 5, 6, 7)
SLUICE_WGMMA(16, 8, 9, 10, 11)
SLUICE_WGMMA(24, 12, 13, 14, 15)
SLUICE_WGMMA(32, 16, 17, 18, 19)
SLUICE_WGMMA(40, 20, 21, 22, 23)
SLUICE_WGMMA(48, 24, 25, 26, 27)
SLUICE_WGMMA(56, 28, 29, 30, 31)
SLUICE_WGMMA(64, 32, 33, 34, 35)
SLUICE_WGMMA(72, 36, 37, 38, 39)
SLUICE_WGMMA(80, 40, 41, 42, 43)
SLUICE_WGMMA(88, 44, 45, 46, 47)
SLUICE_WGMMA(96, 48, 49, 50, 51)
SLUICE_WGMMA(104, 52, 53, 54, 55)
SLUICE_WGMMA(112, 56, 57, 58, 59)
SLUICE_WGMMA(120, 60, 61, 62, 63)
SLUICE_WGMMA(128, 64, 65, 66, 67)
SLUICE_WGMMA(136, 68, 69, 70, 71)
SLUICE_WGMMA(144, 72, 73, 74, 75)
SLUICE_WGMMA(152, 76, 77, 78, 79)
SLUICE_WGMMA(160, 80, 81, 82, 83)
SLUICE_WGMMA(168, 84, 85, 86, 87)
SLUICE_WGMMA(176, 88, 89, 90, 91)
SLUICE_WGMMA(184, 92, 93, 94, 95)
SLUICE_WGMMA(192, 96, 97, 98, 99)
SLUICE_WGMMA(200, 100, 101, 102, 103)
SLUICE_WGMMA(208, 104, 105, 106, 107)
SLUICE_WGMMA(216, 108, 109, 110, 111)
SLUICE_WGMMA(224, 112, 113, 114, 115)
SLUICE_WGMMA(232, 116, 117, 118, 119)
SLUICE_WGMMA(240, 120, 121, 122, 123)
SLUICE_WGMMA(248, 124, 125, 126, 127)
SLUICE_WGMMA(256, 128, 129, 130, 131)

// clang-format on

// d += P Q, started now, finished when wgmma_wait says so. d must not be touched in between.
template <DataType type, Major p_major, Major q_major, int registers>
SLUICE_DEVICE void wgmma(float (&d)[registers], std::uint64_t p_descriptor, std::uint64_t q_descriptor) {
  static_assert(type == DataType::bf16 || type == DataType::fp16);
  WgmmaInstruction<registers * 2>::template issue<type, p_major, q_major>(d, p_descriptor, q_descriptor);
}

// A line that registers do not cross: what is computed into d before is computed here, what reads d reads it behind. To the compiler they
// have nothing to do with wgmma_wait and with each other.
template <int registers>
SLUICE_DEVICE void pin_registers(float (&d)[registers]) {
#pragma unroll
  for (int i = 0; i < registers; ++i) asm volatile("" : "+f"(d[i])::"memory");
}

// The same of 8-bit operands with K contiguous. adds == false: d = P Q.
template <DataType type_p, DataType type_q, bool adds, int registers>
SLUICE_DEVICE void wgmma_8_bit(float (&d)[registers], std::uint64_t p_descriptor, std::uint64_t q_descriptor) {
  static_assert(is_fp8(type_p) && is_fp8(type_q));
  WgmmaInstruction<registers * 2>::template issue_8_bit<type_p, type_q, adds>(d, p_descriptor, q_descriptor);
}

}  // namespace sluice::arch
