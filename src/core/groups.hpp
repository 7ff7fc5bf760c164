// What the sizes of a grouped problem's groups come to: decided here for the kernels, the planner and the reference.
#pragma once

#include <cstdint>

#include "sluice/problem.hpp"

#include "core/host_device.hpp"
#include "core/kernel_layout.hpp"

namespace sluice {

// Whether the device holds sizes, and whether they are of K, of all that there is (core/general_groups.hpp), or of rows.
constexpr bool has_groups(const GemmProblem& p) { return p.grouping != Grouping::none; }
constexpr bool is_grouped_along_k(const GemmProblem& p) { return p.grouping == Grouping::along_k; }
constexpr bool is_general(const GemmProblem& p) { return p.grouping == Grouping::general; }
constexpr bool is_grouped(const GemmProblem& p) { return p.grouping == Grouping::ragged || p.grouping == Grouping::masked; }

// How many matrices A, C and D are; B is as many as the batch says.
constexpr std::int64_t row_matrices(const GemmProblem& p) { return p.grouping == Grouping::ragged ? 1 : p.batch; }
// How many sizes the device holds.
constexpr std::int64_t group_numbers(const GemmProblem& p) { return p.grouping == Grouping::masked ? p.batch : p.batch + 1; }

// Whether the kernel can find out the tiles of groups (Grouping): beside three consumer warpgroups that dequantise, producers have too few
// registers for it, unless these slice K, and so have few rows.
constexpr bool computes_groups(const KernelConfig& c) {
  return c.scope != KernelScope::plain && !streams(c) && (consumer_warpgroups(c) <= 2 || !dequantises(c) || k_slices(c) > 1);
}

// Whether the rows of a tile choose how wide a wgmma is, where they are Q's vectors: in 16-bit tiles as high as a wgmma can be wide.
inline constexpr int kWidestQ = 256, kWidthStep = 16;
constexpr bool chooses_width(const KernelConfig& c) {
  return computes_groups(c) && swapped(c) && c.tile_m == kWidestQ && c.schedule == KernelSchedule::cooperative && c.load == LoadPath::tma &&
         !promotes(c) && !dequantises(c);
}

// Rows of A that are fetched together, in boxes of so many: those behind a group's end need not come at all. As many as a wgmma takes of P,
// or two steps of Q's width; 0: all of a tile.
constexpr int rows_of_block(const KernelConfig& c) {
  if (!computes_groups(c) || c.load != LoadPath::tma || !k_major_a(c)) return 0;
  const int rows = !swapped(c) && c.tile_m > kWgmmaRows ? kWgmmaRows : chooses_width(c) ? 2 * kWidthStep : 0;
  return rows > 0 && c.tile_m / c.cluster_n % rows == 0 ? rows : 0;
}
constexpr int rows_of_block(const GemmProblem& p, const KernelConfig& c) { return is_grouped(p) ? rows_of_block(c) : 0; }
constexpr bool fetches_blocks_of_rows(const KernelConfig& c) { return rows_of_block(c) > 0; }
// In FP8, what is left of a group's rows for the last of these blocks comes in boxes of so many, and the rest of the block is zeros: what
// multiplies zeros takes less power, and at the power limit the clock is higher for it. 0: all of the block comes.
constexpr int rows_of_short_box(const KernelConfig& c) {
  constexpr int kRows = 16;
  return promotes(c) && rows_of_block(c) == kWgmmaRows ? kRows : 0;
}
constexpr int rows_of_short_box(const GemmProblem& p, const KernelConfig& c) { return is_grouped(p) ? rows_of_short_box(c) : 0; }

// Rows that are multiplied together.
constexpr int rows_of_step(const KernelConfig& c) { return chooses_width(c) ? kWidthStep : kWgmmaRows; }
// Whether a group's rows are shared out evenly among its tiles, in steps, instead of all tiles but the last being full. In FP8 a tile of
// one step takes three warpgroups as long as one of two: who multiplies alone has nobody to hide his promotion. In 16 bits a tile of few
// rows takes longer for each of them than a high one, as long as its columns of B need to come.
constexpr bool evens_out_rows(const KernelConfig& c) {
  return fetches_blocks_of_rows(c) && c.cluster_m == 1 && c.tile_m > 2 * kWgmmaRows && (!promotes(c) || consumer_warpgroups(c) > 2);
}

// Whether a kernel can multiply groups along K. Where they end anywhere, the copy engine leaves out what lies behind, and K is the
// direction of its rows; those of FP8 end with a block of scales, and so with a k-tile of one.
constexpr bool computes_groups_along_k(const KernelConfig& c) {
  if (!computes_groups(c) || is_short(c) || dequantises(c) || c.load != LoadPath::tma) return false;
  return promotes(c) ? scale_blocks_per_stage(c) == 1 : !k_major_a(c) && !k_major_b(c);
}

// The rows of a group, among those of A and D; along K what it has of K.
struct GroupRange {
  std::int32_t first = 0;
  std::int32_t count = 0;
};

// From the numbers that the device holds for a group: its own, and but for masked groups the one behind it. What they say beyond the extent
// that there is (m, or k) is left out, so that nothing outside of the matrices is ever touched.
SLUICE_HOST_DEVICE constexpr GroupRange range_of_group(Grouping grouping, std::int32_t extent, std::int32_t number, std::int32_t next) {
  const auto clamped = [extent](std::int32_t value, std::int32_t least) { return value < least ? least : value > extent ? extent : value; };
  if (grouping == Grouping::masked) return {0, clamped(number, 0)};
  const std::int32_t begin = clamped(number, 0);
  return {begin, clamped(next, begin) - begin};
}
// The rows of one of a group's tiles, where these are even: the first ones may have a step more.
SLUICE_HOST_DEVICE constexpr GroupRange rows_of_even_tile(const GroupRange& rows, std::int32_t step, std::int32_t tiles,
                                                          std::int32_t tile) {
  const std::int32_t steps = (rows.count + step - 1) / step, fewest = steps / tiles, higher = steps - fewest * tiles;
  const std::int32_t begin = (tile * fewest + (tile < higher ? tile : higher)) * step;
  const std::int32_t end = begin + (fewest + (tile < higher ? 1 : 0)) * step;
  return {rows.first + begin, (end < rows.count ? end : rows.count) - begin};
}
// Groups along K of FP8 operands begin and end with the blocks of 128 that have scales: a number between two counts as the lower one.
SLUICE_HOST_DEVICE constexpr GroupRange in_scale_blocks(const GroupRange& k) {
  constexpr std::int32_t kWholeBlocks = ~(kScaleBlockElems - 1);
  const std::int32_t first = k.first & kWholeBlocks;
  return {first, ((k.first + k.count) & kWholeBlocks) - first};
}
constexpr bool is_grouped_by_scale_blocks(const GemmProblem& p) { return is_grouped_along_k(p) && is_fp8(p.type_a); }

inline GroupRange range_of_group(const GemmProblem& p, const std::int32_t* sizes, std::int64_t group) {
  const GroupRange range = range_of_group(p.grouping, static_cast<std::int32_t>(is_grouped_along_k(p) ? p.k : p.m), sizes[group],
                                          p.grouping == Grouping::masked ? 0 : sizes[group + 1]);
  return is_grouped_by_scale_blocks(p) ? in_scale_blocks(range) : range;
}

}  // namespace sluice
