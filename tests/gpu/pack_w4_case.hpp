// Cases of packing weights of 4 bits and of permuting columns, for the emulator and the GPU: operands amid guards, and what the CPU makes
// of them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "quantize_case.hpp"
#include "sluice/w4.hpp"

namespace sluice::gpu_tests {

struct PackW4Case {
  PackW4Problem problem;
  bool reordered = false;  // rows of K in a random order
  int offset_words = 0;    // of the codes and the order from a multiple of 256 bytes
};
std::string describe(const PackW4Case& pack_case);

// Every source, group size and kind of zero points, over shapes whose edges and alignments matter. `few`: as many as an emulator finishes
// in seconds.
std::vector<PackW4Case> pack_w4_cases(bool few);

struct PackW4Operands {
  GuardedBytes codes, scales, zeros, order, packed;
  PackW4Arguments arguments();
};
// Random codes, zero points and scales, infinities, NaN and denormals among these; packed is all guard.
PackW4Operands make_operands(const PackW4Case& pack_case, std::uint64_t seed);

struct PermuteCase {
  PermuteColumnsProblem problem;
  int offset_elems = 0;  // of the result
};
std::string describe(const PermuteCase& permute_case);
std::vector<PermuteCase> permute_cases(bool few);

struct PermuteOperands {
  GuardedBytes from, order, to;
};
PermuteOperands make_operands(const PermuteCase& permute_case, std::uint64_t seed);

// The first byte in which two buffers differ, guards included; empty if none.
std::string differences(const std::string& what, const GuardedBytes& got, const GuardedBytes& expected);

}  // namespace sluice::gpu_tests
