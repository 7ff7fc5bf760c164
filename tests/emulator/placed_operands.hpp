// The operands of a GemmCase in host memory, amid bytes that must stay as they are.
#pragma once

#include <string>
#include <vector>

#include "gpu/gemm_case.hpp"
#include "sluice/sluice.hpp"

namespace sluice::test {

// An operand between guards, its first element at a chosen distance from a 256-byte boundary.
class GuardedMemory {
 public:
  GuardedMemory(DataType type, std::int64_t span_elems, int offset_elems);
  void* data() { return start(); }
  void set(std::int64_t index, double value);
  void fill(unsigned char byte) { std::fill(bytes_.begin(), bytes_.end(), byte); }
  std::vector<unsigned char>& bytes() { return bytes_; }
  std::int64_t first_byte() { return start() - bytes_.data(); }

 private:
  static constexpr std::size_t kGuardBytes = 512;
  unsigned char* start();

  DataType type_;
  int offset_bytes_;
  std::vector<unsigned char> bytes_;  // never resized: its address is the operand's
};

class PlacedOperands {
 public:
  PlacedOperands(const GemmProblem& problem, const gpu_tests::GemmCase& gemm_case, std::uint64_t seed);
  PlacedOperands(const PlacedOperands&) = delete;
  PlacedOperands& operator=(const PlacedOperands&) = delete;

  const GemmArguments& arguments() const { return arguments_; }
  // D as NaN (or as C, where it is C), with its guards and gaps.
  void poison();
  // What is wrong with D and what lies around it, or nothing.
  std::string judge();
  // D with all that lies around it.
  const std::vector<unsigned char>& d_bytes() { return d_.bytes(); }

 private:
  std::string outside_of_d();
  void poison_rows_of_no_group();
  void poison_depth_of_no_group();

  GemmProblem problem_;
  gpu_tests::CPlace c_place_;
  bool exact_;
  std::vector<std::byte> packed_;  // B, where it is weights of 4 bits
  GuardedMemory a_, b_, c_, d_, bias_, scale_a_, scale_b_, scale_d_;
  GemmArguments arguments_;
  std::vector<std::int32_t> groups_;
  std::vector<unsigned char> d_before_;
};

}  // namespace sluice::test
