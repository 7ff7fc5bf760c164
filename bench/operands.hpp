// Inputs and outputs that rotate: by the time a set comes round again, nothing of it is left in L2.
#pragma once

#include <cstddef>
#include <vector>

#include "bench/device_memory.hpp"
#include "bench/suites.hpp"

namespace sluice::bench {

struct OperandSet {
  const void* a = nullptr;  // m x k, row-major
  const void* b = nullptr;  // n x k, row-major: B transposed
  void* d = nullptr;        // m x n, row-major
};

struct RotatingOperands {
  std::vector<OperandSet> sets;
  void* reference_d = nullptr;  // one more output, for a result to compare with
  std::size_t d_bytes = 0;
};

// One allocation for the inputs of all shapes, filled with random numbers once, and one for the outputs.
class OperandArena {
 public:
  OperandArena(const std::vector<Shape>& shapes, std::size_t l2_bytes, cudaStream_t stream);
  RotatingOperands operands(const Shape& shape) const;

 private:
  std::size_t l2_bytes_;
  std::size_t most_bytes_;
  DeviceBuffer inputs_;
  DeviceBuffer outputs_;
};

}  // namespace sluice::bench
