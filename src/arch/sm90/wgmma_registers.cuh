// Lists for the text of wgmma instructions. An asm statement lists its registers in its text, and the preprocessor is the only thing that
// can write such a list: SLUICE_D_n names the accumulators of n columns, SLUICE_C_n binds them.
#pragma once

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

// f(columns, p, q, tp, tq, next) for each width that wgmma has. The numbers are those of the operands after the accumulators: two
// descriptors and, of 16-bit operands, two majors. P in registers takes four of them, and Q's descriptor the next.
#define SLUICE_FOR_EACH_WGMMA_WIDTH(f) \
  f(8, 4, 5, 6, 7, 8)                  \
  f(16, 8, 9, 10, 11, 12)              \
  f(24, 12, 13, 14, 15, 16)            \
  f(32, 16, 17, 18, 19, 20)            \
  f(40, 20, 21, 22, 23, 24)            \
  f(48, 24, 25, 26, 27, 28)            \
  f(56, 28, 29, 30, 31, 32)            \
  f(64, 32, 33, 34, 35, 36)            \
  f(72, 36, 37, 38, 39, 40)            \
  f(80, 40, 41, 42, 43, 44)            \
  f(88, 44, 45, 46, 47, 48)            \
  f(96, 48, 49, 50, 51, 52)            \
  f(104, 52, 53, 54, 55, 56)           \
  f(112, 56, 57, 58, 59, 60)           \
  f(120, 60, 61, 62, 63, 64)           \
  f(128, 64, 65, 66, 67, 68)           \
  f(136, 68, 69, 70, 71, 72)           \
  f(144, 72, 73, 74, 75, 76)           \
  f(152, 76, 77, 78, 79, 80)           \
  f(160, 80, 81, 82, 83, 84)           \
  f(168, 84, 85, 86, 87, 88)           \
  f(176, 88, 89, 90, 91, 92)           \
  f(184, 92, 93, 94, 95, 96)           \
  f(192, 96, 97, 98, 99, 100)          \
  f(200, 100, 101, 102, 103, 104)      \
  f(208, 104, 105, 106, 107, 108)      \
  f(216, 108, 109, 110, 111, 112)      \
  f(224, 112, 113, 114, 115, 116)      \
  f(232, 116, 117, 118, 119, 120)      \
  f(240, 120, 121, 122, 123, 124)      \
  f(248, 124, 125, 126, 127, 128)      \
  f(256, 128, 129, 130, 131, 132)

// clang-format on
