// The scales of a D in FP8 in `sluice gemm`: one that a file gives, or those of each 128 columns that are found and go to a file.
#pragma once

#include <string>
#include <vector>

#include "fp8_operands.hpp"
#include "sluice/problem.hpp"

namespace sluice::cli {

// Fills in the problem's scaling of D, and reads its scale if that is given; `found`: or those that were found before, for checking them.
Result<std::vector<float>> read_result_scales(const WantedScales& wanted, bool found, GemmProblem& problem);

// Those that were found, as [m, n/128], of a batch behind one another.
Status write_result_scales(const std::string& path, const GemmProblem& problem, const std::vector<std::int64_t>& shape_d,
                           const std::vector<float>& scales);

}  // namespace sluice::cli
