// What the sizes of a grouped problem's groups come to: decided here for the kernels, the planner and the reference.
#pragma once

#include <cstdint>

#include "sluice/problem.hpp"

#include "core/host_device.hpp"

namespace sluice {

constexpr bool is_grouped(const GemmProblem& p) { return p.grouping != Grouping::none; }

// How many matrices A, C and D are; B is as many as the batch says.
constexpr std::int64_t row_matrices(const GemmProblem& p) { return p.grouping == Grouping::ragged ? 1 : p.batch; }
// How many sizes the device holds.
constexpr std::int64_t group_numbers(const GemmProblem& p) { return p.grouping == Grouping::ragged ? p.batch + 1 : p.batch; }

// The rows of a group, among those of A and D.
struct GroupRows {
  std::int32_t first = 0;
  std::int32_t count = 0;
};

// From the numbers that the device holds for a group: its own, and with ragged groups the one behind it. What they say beyond the m rows
// that there are is left out, so that nothing outside of A and D is ever touched.
SLUICE_HOST_DEVICE constexpr GroupRows rows_of_group(Grouping grouping, std::int32_t m, std::int32_t number, std::int32_t next) {
  const auto clamped = [m](std::int32_t value, std::int32_t least) { return value < least ? least : value > m ? m : value; };
  if (grouping == Grouping::masked) return {0, clamped(number, 0)};
  const std::int32_t begin = clamped(number, 0);
  return {begin, clamped(next, begin) - begin};
}
inline GroupRows rows_of_group(const GemmProblem& p, const std::int32_t* sizes, std::int64_t group) {
  return rows_of_group(p.grouping, static_cast<std::int32_t>(p.m), sizes[group], p.grouping == Grouping::ragged ? sizes[group + 1] : 0);
}

}  // namespace sluice
