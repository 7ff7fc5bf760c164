// The operands of `sluice gemm`: files read, their shapes matched, converted to the types of the product.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "fp8_operands.hpp"
#include "gemm_groups.hpp"
#include "planning.hpp"
#include "sluice/problem.hpp"

namespace sluice::cli {

struct GemmFiles {
  std::string a, b, c, bias;  // paths; c and bias may be empty, and a and b together: random numbers then
  std::int64_t m = 0, n = 0, k = 0;
  std::uint64_t data_seed = 0;
  bool a_is_transposed = false;
  bool b_is_transposed = false;
  bool bf16_as_uint16 = false;
  std::string type, out_type;  // empty: from the files
  WantedScales scales_a, scales_b, scales_d;
  bool d_is_there = false;  // and is only checked
  W4Flags w4;
  std::string w4_order;  // a path
  WantedGroups groups;
  std::string bias_kind = "per_column";
  EpilogueFlags epilogue;
};

struct GemmInputs {
  GemmProblem problem;  // validated
  std::vector<std::byte> a, b, c, bias;
  std::vector<float> scale_a, scale_b, scale_d;  // scale_d: unless it is to be found
  Groups groups;
  std::vector<std::int64_t> shape_d;
  std::vector<std::string> lines;     // what was read, one line a file
  std::vector<std::string> warnings;  // what the user may not have meant
};

// Multiply-adds times 2, of the rows that groups have.
double needed_flops(const GemmInputs& inputs);

Result<GemmInputs> read_gemm_inputs(const GemmFiles& files);

// An existing D, for checking it.
Result<std::vector<std::byte>> read_result(const std::string& path, const GemmInputs& inputs, bool bf16_as_uint16);

}  // namespace sluice::cli
