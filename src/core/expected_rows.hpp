// About how many rows a group has, where only the device will know.
#pragma once

#include <algorithm>
#include <cstdint>

#include "sluice/problem.hpp"

namespace sluice {

inline std::int64_t expected_rows(const GemmProblem& p) {
  if (p.expected_rows > 0) return std::min(p.expected_rows, p.m);
  return p.grouping == Grouping::ragged ? (p.m + p.batch - 1) / p.batch : p.m;
}

}  // namespace sluice
