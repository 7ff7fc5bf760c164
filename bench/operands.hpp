// Inputs and outputs that rotate: by the time a set comes round again, nothing of it is left in L2.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "bench/device_memory.hpp"
#include "bench/suites.hpp"
#include "sluice/run.hpp"

namespace sluice::bench {

struct OperandSet {
  const void* a = nullptr;         // m x k, row-major
  const void* b = nullptr;         // n x k, row-major: B transposed; or packed weights of 4 bits
  void* d = nullptr;               // m x n, row-major
  const float* scale_a = nullptr;  // null without scales
  const float* scale_b = nullptr;
  const void* dense_b = nullptr;  // what packed weights are, n x k in A's type. Null: b is dense

  GemmArguments arguments() const { return {.a = a, .b = b, .d = d, .scale_a = scale_a, .scale_b = scale_b}; }
  // Those of with_dense_weights().
  GemmArguments dense_arguments() const {
    GemmArguments dense = arguments();
    if (dense_b != nullptr) dense.b = dense_b;
    return dense;
  }
};

struct RotatingOperands {
  std::vector<OperandSet> sets;
  void* reference_d = nullptr;  // one more output, for a result to compare with
  std::size_t d_bytes = 0;
};

// One allocation for the inputs of all shapes, filled with random numbers once for each type, one for their scales and one for the
// outputs. Weights of 4 bits are made anew for each shape, since how they are packed depends on it.
class OperandArena {
 public:
  OperandArena(const std::vector<Shape>& shapes, std::size_t l2_bytes, cudaStream_t stream);
  RotatingOperands operands(const Shape& shape);

 private:
  void fill_inputs(DataType type);
  void fill_w4(const Shape& shape, int sets);

  cudaStream_t stream_;
  std::size_t l2_bytes_;
  std::size_t most_bytes_;
  DeviceBuffer inputs_;
  std::optional<DataType> filled_;  // what the inputs are now
  DeviceBuffer scales_;
  DeviceBuffer codes_, dense_;  // of weights of 4 bits: before they are packed, and what they are
  DeviceBuffer outputs_;
};

}  // namespace sluice::bench
