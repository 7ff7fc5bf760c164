// What the sizes of a grouped problem's groups come to: decided here for the kernels, the planner and the reference.
#pragma once

#include <cstdint>

#include "sluice/problem.hpp"

#include "core/host_device.hpp"
#include "core/kernel_layout.hpp"

namespace sluice {

constexpr bool is_grouped(const GemmProblem& p) { return p.grouping != Grouping::none; }

// How many matrices A, C and D are; B is as many as the batch says.
constexpr std::int64_t row_matrices(const GemmProblem& p) { return p.grouping == Grouping::ragged ? 1 : p.batch; }
// How many sizes the device holds.
constexpr std::int64_t group_numbers(const GemmProblem& p) { return p.grouping == Grouping::ragged ? p.batch + 1 : p.batch; }

// Whether a kernel can fetch rows of A in boxes of as many as a wgmma takes, so that boxes behind a group's end need not come at all.
constexpr bool fetches_blocks_of_rows(const KernelConfig& c) {
  return computes_groups(c) && !swapped(c) && c.load == LoadPath::tma && k_major_a(c) && c.tile_m > kWgmmaRows &&
         c.tile_m / c.cluster_n % kWgmmaRows == 0;
}

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
