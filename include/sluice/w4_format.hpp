// Weights of 4 bits: what a number of them means. How they are packed: sluice/w4.hpp.
#pragma once

#include <cstdint>

namespace sluice {

// A weight is (q - z) * s, with q the 4 bits (0 to 15), and s and z those of its group: so many neighbouring elements of K in one column of
// B. A kernel may round it to the type of the activations, or not; docs/w4.md says what that does to results. Beside bf16 an s is 0, or
// from 2^-94 to 2^26 in magnitude: of larger ones results are infinite or NaN, of smaller ones bits are lost.
//
// In GemmProblem: b is what pack_w4() has made, n a multiple of 8, k and lda multiples of 8, and A row-major. There is no ldb, and
// batch_stride_b is in bytes, a multiple of 256 (packed: packed_w4_bytes()). Beside an A of e4m3 (whose scaling_a is none, per_tensor or
// per_vector) no weight is rounded, and lda and batch_stride_a are multiples of 16.
struct W4Format {
  int group_size = 128;      // elements of K: 32, 64 or 128, or 0: the whole column. The last group of a column may be short
  bool zero_points = false;  // each group has its z, 0 to 16; else z is 8 everywhere

  bool operator==(const W4Format&) const = default;
};

// Groups of a column of k elements.
constexpr std::int64_t w4_groups(std::int64_t k, const W4Format& format) {
  return format.group_size == 0 ? 1 : (k + format.group_size - 1) / format.group_size;
}

}  // namespace sluice
