// What the sizes of groups are taken for where only the device will know them.
#pragma once

#include <algorithm>
#include <cstdint>

#include "sluice/problem.hpp"

#include "core/groups.hpp"

namespace sluice {

// A batch of products of as many rows as are expected of each group. Of a validated problem; any other is left as it is.
inline GemmProblem as_batch(GemmProblem p) {
  if (!is_grouped(p) || is_empty(p)) return p;
  const bool ragged = p.grouping == Grouping::ragged;
  if (p.expected_rows > 0)
    p.m = std::min(p.expected_rows, p.m);
  else if (ragged)
    p.m = (p.m + p.batch - 1) / p.batch;
  if (ragged) {
    p.batch_stride_a = p.m * p.lda;
    p.batch_stride_c = p.m * p.ldc;
    p.batch_stride_d = p.m * p.ldd;
  }
  p.grouping = Grouping::none;
  return p;
}

}  // namespace sluice
