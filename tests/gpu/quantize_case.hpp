// Cases of quantisation, for the emulator and the GPU: a matrix of edges, operands amid guards, and what the CPU makes of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sluice/quantize.hpp"

namespace sluice::gpu_tests {

struct QuantizeCase {
  QuantizeProblem problem;
  int offset_elems = 0;  // of x, y and q from a multiple of 256 bytes
  bool special = false;  // NaN, infinities, denormals and blocks of zeros among the numbers
};

std::string describe(const QuantizeCase& quantize_case);

// Every type, scaling and input, each over shapes, leading dimensions, layouts of scales and alignments that matter to it. `few`: as many
// as an emulator finishes in seconds.
std::vector<QuantizeCase> quantize_cases(bool few);

// A matrix somewhere in a buffer: the rest of it is guard, of bytes that nobody may change.
class GuardedBytes {
 public:
  static constexpr std::byte kGuard{0xa5};
  static constexpr std::size_t kAlignment = 256;

  GuardedBytes() = default;
  // The matrix begins so many bytes behind a multiple of kAlignment.
  GuardedBytes(std::size_t matrix_bytes, std::size_t offset_bytes);

  bool empty() const { return blocks_.empty(); }
  std::size_t first() const { return first_; }  // byte of the matrix
  std::span<std::byte> all() { return {blocks_.data()->bytes, blocks_.size() * kAlignment}; }
  std::span<const std::byte> all() const { return {blocks_.data()->bytes, blocks_.size() * kAlignment}; }
  void* data() { return empty() ? nullptr : all().data() + first_; }

 private:
  struct alignas(kAlignment) Block {
    std::byte bytes[kAlignment];
  };
  std::vector<Block> blocks_;
  std::size_t first_ = 0;
};

struct QuantizeOperands {
  GuardedBytes x, y, q, scale;
  QuantizeArguments arguments();
};

// Random x and y; q and scale are all guard. `problem` must be valid.
QuantizeOperands make_operands(const QuantizeCase& quantize_case, std::uint64_t seed);

// What is wrong with `got`, beside what the CPU made of the same x and y; empty if nothing. silu_times may differ: exp() does, in its last
// bits, and then a scale by as much and a number by one step. Guards may not.
std::string differences(const QuantizeCase& quantize_case, const QuantizeOperands& got, const QuantizeOperands& expected);

}  // namespace sluice::gpu_tests
