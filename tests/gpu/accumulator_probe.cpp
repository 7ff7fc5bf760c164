#include "accumulator_probe.hpp"

#include <algorithm>
#include <cmath>

namespace sluice::gpu_tests {
namespace {

constexpr int kLargest = 16;                         // the large product is 2^16
constexpr int kFirstBit = 6, kRows = 18;             // addends from 2^(16 - 6) to 2^(16 - 23)
constexpr int kColumns = 128, kMany = kColumns - 1;  // column n < 127 has its addend at k = n + 1
constexpr int kDepth = 128, kInstruction = 32;       // a block of K between two promotions, and what one wgmma takes of it
constexpr int kExponentB = 2;                        // of addends' elements of B: those of A are then from 2^8 to 2^-9, all of e4m3

std::uint8_t e4m3_power(int exponent) {
  constexpr int kBias = 7, kFractionBits = 3, kLeastNormal = -6;
  if (exponent >= kLeastNormal) return static_cast<std::uint8_t>((exponent + kBias) << kFractionBits);
  return static_cast<std::uint8_t>(1 << (exponent - kLeastNormal + kFractionBits));
}

std::size_t at(int row, int columns, int column) { return static_cast<std::size_t>(row * columns + column); }

double addends(int column) { return column == kMany ? kInstruction - 1 : 1; }

KeptBits kept(const std::vector<int>& bits, int first, int end) {
  const auto [least, most] = std::minmax_element(bits.begin() + first, bits.begin() + end);
  return {*least + 1, *most + 1};
}

}  // namespace

AccumulatorProbe accumulator_probe() {
  AccumulatorProbe probe{.problem = {.m = kRows, .n = kColumns, .k = kDepth}, .a = {}, .b = {}};
  probe.problem.type_a = probe.problem.type_b = DataType::e4m3;
  probe.problem.type_d = DataType::fp32;
  probe.a.assign(at(kRows, kDepth, 0), 0);
  probe.b.assign(at(kColumns, kDepth, 0), 0);
  for (int row = 0; row < kRows; ++row)
    for (int k = 0; k < kDepth; ++k)
      probe.a[at(row, kDepth, k)] = e4m3_power(k == 0 ? kLargest / 2 : kLargest - kFirstBit - row - kExponentB);
  for (int column = 0; column < kColumns; ++column)
    for (int k = 0; k < kDepth; ++k) {
      const bool added = column == kMany ? k > 0 && k < kInstruction : k == column + 1;
      if (k == 0 || added) probe.b[at(column, kDepth, k)] = e4m3_power(k == 0 ? kLargest / 2 : kExponentB);
    }
  return probe;
}

std::vector<int> surviving(const AccumulatorProbe& probe, const std::vector<float>& d) {
  std::vector<int> all;
  for (int column = 0; column < probe.problem.n; ++column) {
    int last = -1;
    bool gone = false, understood = true;
    for (int row = 0; row < probe.problem.m; ++row) {
      const double rest = static_cast<double>(d[at(row, kColumns, column)]) - std::ldexp(1.0, kLargest);
      const bool whole = rest == addends(column) * std::ldexp(1.0, kLargest - kFirstBit - row);
      understood = understood && (whole ? !gone : rest == 0);
      gone = gone || !whole;
      if (whole) last = kFirstBit + row;
    }
    all.push_back(understood ? last : -1);
  }
  return all;
}

AccumulatorBits accumulator_bits(const AccumulatorProbe& probe, const std::vector<float>& d) {
  const std::vector<int> bits = surviving(probe, d);
  return {kept(bits, 0, kInstruction - 1), kept(bits, kInstruction - 1, kMany), kept(bits, kMany, kColumns)};
}

}  // namespace sluice::gpu_tests
