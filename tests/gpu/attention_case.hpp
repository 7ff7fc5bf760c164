// Cases of attention, for the emulator and the GPU: caches that are NaN wherever no token may be seen, pages in disorder, results that
// begin as NaN, and what the CPU makes of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "sluice/attention.hpp"

namespace sluice::gpu_tests {

struct AttentionCase {
  AttentionProblem problem;  // batch, max_kv_len and pages follow from the lengths
  std::vector<std::int32_t> lengths;
  int spare_tokens = 0;  // that max_kv_len has more than the longest sequence
};
std::string describe(const AttentionCase& c);

// `few`: what an emulator does within seconds.
std::vector<AttentionCase> attention_cases(bool few);

struct AttentionOperands {
  AttentionProblem problem;
  std::vector<std::uint16_t> q, o;
  std::vector<std::uint8_t> k, v;
  std::vector<float> lse, k_scales, v_scales;
  std::vector<std::int32_t> lengths, block_table;
  std::int64_t block_table_stride = 0;
  std::uint32_t fault = 0;
  double greatest_value = 0;  // of V, its scale included

  AttentionArguments arguments();
};
AttentionOperands make_operands(const AttentionCase& c, std::uint64_t seed);

// Empty: every element lies within what rounding explains. An element may be wrong by the rounding of both results, and by that of the
// weights (of unit roundoff u each, sum |w v| <= greatest |v|); the logarithm by the rounding of its score.
std::string differences(const AttentionOperands& got, const AttentionOperands& expected);

}  // namespace sluice::gpu_tests
