// Weights of 4 bits as the matrix that they stand for: the reference multiplies and verifies with it as with any other.
#pragma once

#include <cstdint>
#include <vector>

#include "sluice/problem.hpp"
#include "sluice/run.hpp"

#include "core/scale_layout.hpp"

namespace sluice {

class Dequantised {
 public:
  // Of a validated problem. Where B is no packed weights, both stay as they are.
  Dequantised(GemmProblem& problem, GemmArguments& arguments, int threads);

  // What rounding a weight to the activations' type may change it by, of its own size. 0 where no weight has been rounded. (Kernels may
  // leave it: they multiply sums by scales instead.)
  double rounding() const { return rounding_; }

  // FP8: elements of K whose products are summed up by themselves, as scales of weights may end earlier than those of operands.
  std::int64_t short_sum_elems() const { return short_sum_elems_; }

 private:
  std::vector<std::uint16_t> weights_;
  std::vector<float> exact_weights_;  // beside activations of 8 bits: sums are scaled there, and no weight is rounded
  double rounding_ = 0;
  std::int64_t short_sum_elems_ = kScaleBlockElems;
};

}  // namespace sluice
