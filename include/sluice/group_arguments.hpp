// What one of a problem's general groups is (Grouping::general): docs/grouped.md.
#pragma once

#include <cstdint>

#include "sluice/problem.hpp"

namespace sluice {

// D = activation(alpha A B + beta C + bias), of this group. An array of these lies in device memory, and is read there, when the kernels
// run: a graph may be replayed with another array in its place.
//
// Sizes below 0 count as 0, and those over the problem's m, n and k as these. Where m or n is 0 nothing is read or written, and all
// pointers may be null; where k is 0 (or alpha), a, b and their scales may be. What the caller promises, since nobody can refuse it on the
// device: a and b are aligned to 16 bytes, and so is each of their rows (A) and columns (B), also where they are packed; leading dimensions
// are at least as long as what they lead over, and less than 2^40 bytes; c, d and bias are aligned as the problem's alignment_d_bytes says,
// scales to 4 bytes, and the last scale of a matrix is no more than 2^31 - 1 behind the first. No D overlaps anything but its own C, which
// it may be.
struct GroupArguments {
  const void* a = nullptr;
  const void* b = nullptr;
  const void* c = nullptr;  // read when beta is not 0; may be d, if ldc is ldd
  void* d = nullptr;
  const void* bias = nullptr;      // read when the epilogue has one: m elements (per_row) or n (per_column)
  const float* scale_a = nullptr;  // of FP8 operands that have scales: of this group's A alone, as the problem's scaling_a and
  const float* scale_b = nullptr;  // scale_layout_a say, and of its B
  std::int32_t m = 0;
  std::int32_t n = 0;
  std::int32_t k = 0;
  std::int32_t reserved = 0;  // 0
  // In elements, or kPacked: k, k, n and n, as they count.
  std::int64_t lda = kPacked;
  std::int64_t ldb = kPacked;
  std::int64_t ldc = kPacked;
  std::int64_t ldd = kPacked;
  // Of scales that follow K, in elements, or kPacked: as many as are adjacent.
  std::int64_t ld_scale_a = kPacked;
  std::int64_t ld_scale_b = kPacked;

  bool operator==(const GroupArguments&) const = default;
};
static_assert(sizeof(void*) != 8 || sizeof(GroupArguments) == 120);

}  // namespace sluice
