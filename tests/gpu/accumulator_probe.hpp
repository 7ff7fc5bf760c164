// How many bits do the tensor cores add FP8 products with? A product that shows it, to be run on a GPU and on the emulator.
#pragma once

#include <cstdint>
#include <vector>

#include "sluice/kernel_config.hpp"
#include "sluice/problem.hpp"

namespace sluice::gpu_tests {

// Each element of D is the sum of 2^16 and of addends 2^(16 - i), i growing with the row. Along a row they come at another place of K: in
// the first instruction of 32, beside the large product, or in one of the next three, where it is in the accumulator. The last column has
// the addend at all 31 places of the first instruction.
struct AccumulatorProbe {
  GemmProblem problem;
  std::vector<std::uint8_t> a, b;  // e4m3
};
AccumulatorProbe accumulator_probe();

// The largest i whose addend is still in the sum, in column after column of D; -1 where D holds anything but sums with addends whole
// or gone.
std::vector<int> surviving(const AccumulatorProbe& probe, const std::vector<float>& d);

// The least and the most of a range of columns, as bits that are kept: those from the largest product's to the addend's.
struct KeptBits {
  int least = 0, most = 0;

  bool operator==(const KeptBits&) const = default;
};
struct AccumulatorBits {
  KeptBits in_one_instruction, in_later_ones, of_many;

  bool operator==(const AccumulatorBits&) const = default;
};
AccumulatorBits accumulator_bits(const AccumulatorProbe& probe, const std::vector<float>& d);

}  // namespace sluice::gpu_tests
