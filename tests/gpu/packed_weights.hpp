// Weights of 4 bits for tests: drawn, and packed by the library.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "gemm_case.hpp"

namespace sluice::gpu_tests {

// Memory for packed weights, aligned as the packing takes it.
class PackedMatrix {
 public:
  explicit PackedMatrix(std::int64_t bytes) : room_(static_cast<std::size_t>(bytes) + kAlignment - 1) {}
  std::byte* data() { return room_.data() + (kAlignment - reinterpret_cast<std::uintptr_t>(room_.data()) % kAlignment) % kAlignment; }

 private:
  static constexpr std::size_t kAlignment = 256;
  std::vector<std::byte> room_;
};

// The formats in turn, as with_scales() has the scales of FP8. What else a case asks of B (gaps, offsets) is of no consequence, but that a
// gap of -1 repeats one matrix.
GemmCase with_format(GemmCase c, const KernelConfig& kernel, int n);

// For streaming kernels: as many strips an SM as make a difference, with more and fewer parts of K than warps, and all numbers of rows.
void add_streaming(std::vector<GemmCase>& cases, const KernelConfig& kernel, int sms);

// The matrices B of a problem, as far apart as it says. No weight is rounded when it is dequantised: scales have three bits, or are 1 and
// 2 where results must be exact.
std::vector<std::byte> random_packed_weights(const GemmProblem& problem, bool exact, std::uint64_t seed);

// The problem of the matrices that those stand for, one after the other: 16-bit numbers, or fp32 beside activations of 8 bits (then the
// problem keeps their format).
GemmProblem dequantised(GemmProblem problem);
std::vector<std::byte> dequantised_weights(const GemmProblem& problem, const std::vector<std::byte>& packed);

}  // namespace sluice::gpu_tests
