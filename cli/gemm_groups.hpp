// Groups of `sluice gemm`: how many rows each has, and what that says of the matrices.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "operands.hpp"
#include "planning.hpp"
#include "sluice/error.hpp"
#include "sluice/problem.hpp"

namespace sluice::cli {

struct WantedGroups {
  std::string grouping = "none";  // --grouping
  std::string sizes;              // --groups: a .npy file, or numbers with commas
  RowsFlags rows;
};

struct Groups {
  Grouping grouping = Grouping::none;
  std::int64_t count = 0;
  std::vector<std::int32_t> numbers;  // GemmArguments::groups
  std::string whence;                 // "--groups", or the file

  std::int64_t size() const;  // of all groups together,
  const char* unit() const;   // in "rows" or "elements of K"
};
Result<Groups> read_groups(const WantedGroups& wanted);

// Whether the matrices that A, B hold are those of the groups, and the sizes are of rows that there are.
Status check_groups(const Groups& groups, const std::string& path_a, const Matrices& a, const std::string& path_b, const Matrices& b);
// Those along K have whole blocks of 128 where operands are FP8.
Status check_fp8_groups(const Groups& groups, DataType type);

// How many matrices A, C and D are: the rows of ragged groups are one.
std::int64_t row_matrices(const GemmProblem& problem);

std::string line_about(const Groups& groups);  // "8 ragged groups of 0 to 45 rows, 97 in all"

}  // namespace sluice::cli
