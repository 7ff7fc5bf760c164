// Matrices that a warp multiplies on its own.
#pragma once

#include "sluice/types.hpp"

#include "arch/sm90/device.cuh"
#include "arch/sm90/shared_memory.cuh"

namespace sluice::arch {

// ldmatrix: four 8x8 matrices of 16-bit elements, each transposed on its way or not; lanes 8i..8i+7 give the addresses of the rows of
// matrix i. Lane 4r+j receives elements 2j and 2j+1 of row r; transposed, of column r.
template <bool transposed>
SLUICE_DEVICE void load_matrices(SharedAddress row, std::uint32_t (&m)[4]) {
  if constexpr (transposed)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3])
                 : "r"(row)
                 : "memory");
  else
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3])
                 : "r"(row)
                 : "memory");
}

// movmatrix: an 8x8 matrix as load_matrices() gives it, transposed.
SLUICE_DEVICE std::uint32_t transpose_matrix(std::uint32_t word) {
  std::uint32_t transposed;
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(transposed) : "r"(word));
  return transposed;
}

// mma.sync.m16n8k16: d += A B, with fragments as the PTX ISA lays them out ("Matrix Fragments for mma.m16n8k16 with floating point type").
template <DataType type>
SLUICE_DEVICE void mma(float (&d)[4], const std::uint32_t (&a)[4], std::uint32_t b_low, std::uint32_t b_high) {
  static_assert(type == DataType::bf16 || type == DataType::fp16);
  if constexpr (type == DataType::bf16)
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b_low), "r"(b_high));
  else
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b_low), "r"(b_high));
}

// Of a positive number that is not denormal: floor(log2(x)). Of 0: -127.
SLUICE_DEVICE int exponent(float x) { return (__float_as_int(x) >> 23) - 127; }
// Within 2^-22 of it, relatively; what is below 2^-126 becomes 0.
SLUICE_DEVICE float power_of_two(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
// Within 2^-22 of it, relatively, away from 1; near 1 within 2^-22.
SLUICE_DEVICE float log_of_two(float x) {
  float y;
  asm("lg2.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
// Within 2^-23 of it, relatively; of what is beyond 2^126 it is 0.
SLUICE_DEVICE float reciprocal(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// The numbers of two bytes of a word, the first at `low`, as a pair of fp16.
template <int low, int high>
SLUICE_DEVICE std::uint32_t e4m3_pair_to_fp16(std::uint32_t word) {
  std::uint32_t pair;
  const std::uint32_t bytes = __byte_perm(word, 0, low | high << 4);
  asm("{\n\t.reg .b16 lower, upper;\n\t"
      "mov.b32 {lower, upper}, %1;\n\t"
      "cvt.rn.f16x2.e4m3x2 %0, lower;\n\t}"
      : "=r"(pair)
      : "r"(bytes));
  return pair;
}

SLUICE_DEVICE void load_shared(SharedAddress address, std::uint32_t (&words)[2]) {
  asm volatile("ld.shared.v2.b32 {%0, %1}, [%2];" : "=r"(words[0]), "=r"(words[1]) : "r"(address) : "memory");
}

// 0, but not before `loaded`, made of a word of each load of this warp's, is known: those loads have ended then, and what they read may be
// overwritten by the copy engine. `zero` is 0, which the compiler must not know. A fence would do as well; it takes longer.
SLUICE_DEVICE std::uint32_t zero_after_loads(std::uint32_t loaded, std::uint32_t zero) { return loaded & zero; }

// 16 bytes into shared memory by a thread that does not wait for them. Behind the first `bytes` of them zeros, for which nothing is read.
SLUICE_DEVICE void copy_packet_async(SharedAddress destination, const void* source, int bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(destination), "l"(source), "r"(bytes) : "memory");
}
SLUICE_DEVICE void copy_packet_async(SharedAddress destination, const void* source, int bytes, CachePolicy policy) {
  asm volatile("cp.async.cg.shared.global.L2::cache_hint [%0], [%1], 16, %2, %3;" ::"r"(destination), "l"(source), "r"(bytes),
               "l"(static_cast<std::uint64_t>(policy))
               : "memory");
}
// The barrier's phase does not end before all copies that this thread has asked for have come. It must not have ended yet.
SLUICE_DEVICE void barrier_hold_until_copied(Barrier* barrier) {
  asm volatile("cp.async.mbarrier.arrive.shared::cta.b64 [%0];" ::"r"(shared_address(barrier)) : "memory");
}

// Adds, and returns what was there before.
SLUICE_DEVICE std::uint64_t atomic_add_relaxed(std::uint64_t* counter, std::uint64_t value) {
  std::uint64_t before;
  asm volatile("atom.relaxed.gpu.global.add.u64 %0, [%1], %2;" : "=l"(before) : "l"(counter), "l"(value) : "memory");
  return before;
}
SLUICE_DEVICE std::uint64_t load_relaxed(const std::uint64_t* counter) {
  std::uint64_t value;
  asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(value) : "l"(counter) : "memory");
  return value;
}
SLUICE_DEVICE void store_relaxed(std::uint64_t* counter, std::uint64_t value) {
  asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(counter), "l"(value) : "memory");
}

// Words that are there when they have another pattern than this one, a NaN that arithmetic does not make. Who stores them needs no fence
// and no flag, who waits for them asks for nothing else.
inline constexpr std::uint32_t kNothingThere = 0xffffffff;

SLUICE_DEVICE void store_published(Floats4* to, const Floats4& x) {
  asm volatile("st.relaxed.gpu.global.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(to), "f"(x.values[0]), "f"(x.values[1]), "f"(x.values[2]),
               "f"(x.values[3])
               : "memory");
}
// What is there now.
SLUICE_DEVICE Floats4 load_published(const Floats4* from) {
  Floats4 x;
  asm volatile("ld.relaxed.gpu.global.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(x.values[0]), "=f"(x.values[1]), "=f"(x.values[2]), "=f"(x.values[3])
               : "l"(from)
               : "memory");
  return x;
}
SLUICE_DEVICE bool is_published(const Floats4& x) {
  return __float_as_uint(x.values[0]) != kNothingThere && __float_as_uint(x.values[1]) != kNothingThere &&
         __float_as_uint(x.values[2]) != kNothingThere && __float_as_uint(x.values[3]) != kNothingThere;
}
// As it was before anything was stored. After load_published() by the same thread.
SLUICE_DEVICE void unpublish(Floats4* at) {
  const float nothing = __uint_as_float(kNothingThere);
  store_published(at, {nothing, nothing, nothing, nothing});
}

}  // namespace sluice::arch
