// About how many rows a group has, and how many at most, where only the device will know.
#pragma once

#include <algorithm>
#include <cstdint>

#include "sluice/problem.hpp"

namespace sluice {

// How many the largest group may be taken to have.
inline std::int64_t most_rows(const GemmProblem& p) { return p.most_rows > 0 ? std::min(p.most_rows, p.m) : p.m; }

inline std::int64_t expected_rows(const GemmProblem& p) {
  if (p.expected_rows > 0) return std::min(p.expected_rows, most_rows(p));
  return p.grouping == Grouping::ragged ? std::min((p.m + p.batch - 1) / p.batch, most_rows(p)) : most_rows(p);
}

}  // namespace sluice
