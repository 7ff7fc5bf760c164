#include "planner/cost/groups.hpp"

#include <algorithm>
#include <cstdint>

#include "core/groups.hpp"
#include "core/kernel_layout.hpp"

namespace sluice {
namespace {

// FP8, 256 columns: halves of the tile are multiplied and promoted in turn, which costs tensor cores more than others.
bool is_widest(const KernelConfig& kernel) { return promotes(kernel) && kernel.tile_n >= 2 * kScaleBlockElems; }

constexpr double kFewRounds = 4;  // of groups

}  // namespace

// Of the rows of a matrix's tiles, the share to fetch, in blocks of 64 that have rows, and the share that a warpgroup multiplies one after
// the other. CTAs of a cluster take as long as the first. In FP8, what a warpgroup promotes takes no less time because another one rests;
// alone it has nobody whose multiplications hide that (one H200, 24 November 2026: 256 groups of 128 x 512 x 7168 in 256 x 128 take 336 us,
// in 128 x 128 310). Where rows are shared out evenly, another tile has them to spare, and nobody is alone (another H200, 28 November 2026:
// 32 x about 204 x 6144 x 7168 in 192 x 128 651 us to 616).
RowShares shares_with_rows(const GemmProblem& p, const KernelConfig& kernel) {
  constexpr double kAlone = 1.5, kEven = 1.2;
  const std::int64_t cluster_rows = std::int64_t{kernel.tile_m} * kernel.cluster_m, whole = p.m / cluster_rows;
  const std::int64_t rest = std::min<std::int64_t>(p.m % cluster_rows, kernel.tile_m), step = rows_of_step(kernel),
                     block = rows_of_block(kernel);
  const auto in_whole = [rest](std::int64_t unit) { return (rest + unit - 1) / unit * unit; };
  const auto tiles = static_cast<double>(whole + (rest > 0 ? 1 : 0)), rows = static_cast<double>(in_whole(step));
  const auto share = [&](double of_last) { return (static_cast<double>(whole) + of_last) / tiles; };
  const double fetched = share(static_cast<double>(in_whole(block)) / kernel.tile_m);
  if (!promotes(kernel)) return {fetched, share(rows / kernel.tile_m)};
  const int own = blocks_per_warpgroup(kernel) * kWgmmaRows;
  const bool is_lower = rest <= own && sharing_warpgroups(kernel) > 1;
  const double alone = !is_lower ? 1 : evens_out_rows(kernel) && whole > 0 ? kEven : kAlone;
  return {fetched, share(alone * std::min(1.0, rows / own))};
}

// Small factors are those of few tiles an SM, or of products that the tensor cores bind; groups have many tiles, and where they wait for
// memory, it is no faster for it (24 November 2026, 10 sets of groups with 31 to 136 rows in FP8, 4 with 20 rows in bf16). Beside weights
// of 4 bits groups that wait for memory have few rows, and other kernels.
double memory_factor_of_groups(const KernelConfig& kernel, double factor, double rounds) {
  // FP8 again when the warp that fetches scales had become faster: one H100, 28 November 2026, candidates of 52 sets.
  constexpr double kSwapped = 1.25, kPingpong = 1.15, kWide = 1.07;
  // Beside short boxes, the same day, an H200, 4 sets (64 x about 99 x 4096 x 7168 in 128 x 256 500 us, in 128 x 128 490; 1.045 before).
  constexpr double kWidest = 1.07;
  const bool pingpong = kernel.schedule == KernelSchedule::pingpong;
  if (dequantises(kernel)) return factor;
  if (!promotes(kernel)) {
    // In bf16 again, the same day, two H200s, candidates of 22 sets: 32 x about 20 x 6144 x 7168 in 128 x 80 672 and in 64 x 96 659 us, 6 x
    // about 1043 x 7168 x 3072 in 128 x 184 449 and in 128 x 192 432.
    // Pairs that share B of 128 x 128: the same day, another H200, 12 sets (32 x about 204 x 7168 x 3072 589 us, in 128 x 192 571 and 584).
    constexpr double kOddWidth = 1.03, kSquarePair = 1.03;
    constexpr int kEvenColumns = 64, kWideColumns = 128;
    const bool odd = kernel.tile_n > kWideColumns && kernel.tile_n % kEvenColumns != 0;
    const bool square_pair = kernel.tile_m == kernel.tile_n && kernel.cluster_m > 1 && rounds > kFewRounds;
    return std::max(factor, pingpong ? 0.95 : 0.97) * (odd ? kOddWidth : square_pair ? kSquarePair : 1);
  }
  if (is_widest(kernel)) return kWidest;
  return std::max(factor, swapped(kernel) ? kSwapped : pingpong ? kPingpong : kernel.tile_n > kScaleBlockElems ? kWide : 1);
}

// So it is for one product where CTAs of FP8 pingpong have had time to get out of step (one H100, 25 November 2026: 1024 x 32768 x 512 in
// 128 x 64, 31 rounds, 52 us where 41 were predicted; 128 x 32768 x 512, four rounds, as predicted).
double memory_factor_of_product(const KernelConfig& kernel, double factor, double rounds) {
  constexpr double kRoundsInStep = 8;
  const bool drifts = promotes(kernel) && kernel.schedule == KernelSchedule::pingpong && rounds > kRoundsInStep;
  return drifts ? memory_factor_of_groups(kernel, factor, rounds) : factor;
}

// Large tiles are as fast for groups as for one product. Those of 256 rows are a little faster beside others than their factor says, to
// which products of many rounds have brought it, where a set is only a few rounds of them (the same 52 sets; contiguous ones again on an
// H200).
double matrix_factor_of_groups(const KernelConfig& kernel, double factor, double rounds) {
  constexpr int kLargeRows = 192;
  constexpr double kOfTwo = 0.88, kOfThree = 1.02;
  if (is_widest(kernel)) return factor;
  if (!promotes(kernel) || kernel.tile_m < kLargeRows) return memory_factor_of_groups(kernel, factor, rounds);
  return rounds > kFewRounds ? factor : factor * (consumer_warpgroups(kernel) > 2 ? kOfThree : kOfTwo);
}

// Scales of single columns take a multiplication for each short sum, for which three warpgroups have little time, and two with 128 rows
// each, and one set of short sums, less (five sets of gradients).
double column_scales_factor(const GemmProblem& p, const KernelConfig& kernel) {
  constexpr int kRowsOfTwo = 256;
  constexpr double kOfTwo = 1.25, kOfThree = 1.1;
  const Scaling of_q = swapped(kernel) ? p.scaling_a : p.scaling_b;
  if (!promotes(kernel) || of_q != Scaling::per_vector_128) return 1;
  return kernel.tile_m >= kRowsOfTwo ? kOfTwo : consumer_warpgroups(kernel) > 2 ? kOfThree : 1;
}

}  // namespace sluice
