// What the sizes of groups are taken for where only the device will know them.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "sluice/problem.hpp"

#include "core/expected_rows.hpp"
#include "core/groups.hpp"

namespace sluice {

// Products of the largest n and k, whose strides are as short as they may be.
inline GemmProblem general_as_batch(GemmProblem p, std::int64_t rows) {
  const std::int64_t packet_elems = 16 / size_bytes(p.type_a);
  p.m = rows;
  p.lda = p.ldb = (std::max<std::int64_t>(p.k, 1) + packet_elems - 1) / packet_elems * packet_elems;
  p.ldc = p.ldd = p.n;
  p.batch_stride_a = p.m * p.lda;
  p.batch_stride_b = p.n * p.ldb;
  p.batch_stride_c = p.batch_stride_d = p.m * p.ldd;
  p.grouping = Grouping::none;
  return p;
}
// A batch of products of so many rows each. Of a validated problem; any other than of groups is left as it is.
inline GemmProblem as_batch(GemmProblem p, std::int64_t rows) {
  if (is_general(p)) return general_as_batch(p, rows);
  if (!is_grouped(p) || is_empty(p)) return p;
  const bool ragged = p.grouping == Grouping::ragged;
  p.m = rows;
  if (ragged) {
    p.batch_stride_a = p.m * p.lda;
    p.batch_stride_c = p.m * p.ldc;
    p.batch_stride_d = p.m * p.ldd;
  }
  p.grouping = Grouping::none;
  return p;
}
inline GemmProblem as_batch(GemmProblem p) {
  if (!is_grouped_along_k(p)) return as_batch(p, expected_rows(p));
  const std::int64_t step = is_grouped_by_scale_blocks(p) ? kScaleBlockElems : 1, steps = p.k / step;
  p.k = p.batch > 0 ? (steps + p.batch - 1) / p.batch * step : 0;
  p.grouping = Grouping::none;
  return p;
}

// Groups are never all as expected, and a choice that only fits those that are would be a bad one: a kernel is judged by what it takes in
// the mean over these.
struct LikelyRows {
  std::int64_t rows;
  double weight;
};
inline std::array<LikelyRows, 3> likely_rows(const GemmProblem& p) {
  const std::int64_t rows = expected_rows(p), most = most_rows(p);
  const std::int64_t less = std::max<std::int64_t>(1, rows - rows / 4), more = std::min(rows + rows / 4, most);
  return {{{less, 0.25}, {rows, 0.5}, {more, 0.25}}};
}

}  // namespace sluice
