#include "planner/cost/pieces.hpp"

#include <algorithm>
#include <cmath>

#include "core/kernel_layout.hpp"
#include "core/tile_parts.hpp"
#include "scheduler/tile_order.hpp"

namespace sluice {
namespace {

// Pieces of the tile that has most.
double most_pieces(const SchedulerParams& s) {
  if (s.kind == SchedulerKind::split_k) return s.splits;
  if (s.stream_k_tiles == 0) return 1;
  const double range_k_tiles = std::max(1.0, static_cast<double>(s.stream_k_tiles) * s.k_tiles / s.stream_k_ranges);
  return 1 + std::ceil(s.k_tiles / range_k_tiles);
}

// Slices of K: one warpgroup hands over a few KB (two H200s, 26 November 2026, candidates with 8 to 64 rows of the suite w4a16). Other
// kernels for weights of 4 bits take longer to begin and to end a piece (one H200 and one H100, 27 November: 64 x 4096 x 4096 in three
// pieces 8.9 us where 6.6 were predicted, in slices 7.9 and 6.8).
double hand_over_us(const Calibration& c, const KernelConfig& kernel, const SchedulerParams& s) {
  constexpr double kOfSlices = 1.0 / 3, kOfCodesUs = 0.6;
  if (k_slices(kernel) > 1) return kOfSlices * c.hand_over_us;
  return c.hand_over_us + (dequantises(kernel) && s.splits > 1 ? kOfCodesUs : 0);
}

double collect_us(const Calibration& c, const KernelConfig& kernel, double clocks_per_us) {
  return static_cast<double>(kernel.tile_m) * kernel.tile_n * sizeof(float) / c.collect_bytes_per_clk_per_sm / clocks_per_us;
}

}  // namespace

double reduction_us(const Calibration& c, const KernelConfig& kernel, const SchedulerParams& s, double clocks_per_us) {
  const double others = most_pieces(s) - 1;
  if (others <= 0) return 0;
  const double bytes = static_cast<double>(kernel.tile_m) * kernel.tile_n * sizeof(float);
  if (s.reduction == Reduction::separate)  // all leave the whole tile, and fetch a slice of it from all
    return c.separate_meeting_us +
           (bytes / c.leave_bytes_per_clk_per_sm + s.splits * bytes / slices_of_tile(kernel, s.splits) / c.collect_bytes_per_clk_per_sm) /
               clocks_per_us;
  if (s.reduction == Reduction::cluster)  // each CTA pushes all but its own part, and takes in as much
    return c.cluster_meeting_us + others / s.splits * bytes / c.push_bytes_per_clk_per_sm / clocks_per_us;
  return hand_over_us(c, kernel, s) + (1 + others) * collect_us(c, kernel, clocks_per_us);  // one to leave
}

double stage_of_piece_us(const SchedulerParams& s, double main_loops_us) { return main_loops_us * s.splits / std::max(1, s.k_tiles); }

double hidden_by_lead_us(const Calibration& c, const KernelConfig& kernel, const SchedulerParams& s, double main_loops_us,
                         double clocks_per_us) {
  const double wait_us = c.hand_over_us + 2 * collect_us(c, kernel, clocks_per_us);
  return std::min(s.lead * stage_of_piece_us(s, main_loops_us) / kLeadUs, 1.0) * wait_us / s.splits;
}

// CTAs that share stages by multicast wait for the slowest of them, which pieces, that begin when there is room, feel.
double clusters_of_pieces_factor(const KernelConfig& kernel, const SchedulerParams& s) {
  constexpr double kOfFour = 1.2, kOfPairs = 1.06;
  if (s.splits == 1 || cluster_size(kernel) == 1) return 1;
  return cluster_size(kernel) > 2 ? kOfFour : kOfPairs;
}

// The ranges of a hybrid schedule have whole tiles before them, which leave memory idle that ranges would need: what memory takes for them
// beyond the multiplications overlaps with nothing. (One H200, 26 November 2026: 2048 x 8192 x 28672 in 128 x 128 takes 1657 us in whole
// tiles and 2683 with the last 1.8 of 7.8 rounds in ranges; 5812 x 896 x 17728 385 where 258 were predicted.)
double ranges_wait_us(const SchedulerParams& s, double hbm_us, double matrix_us) {
  return std::max(0.0, hbm_us - matrix_us) * s.stream_k_tiles / std::max(1, cluster_tiles(s));
}

// Slices of K: the one with most k-tiles decides, and they meet in shared memory before the next tile's can (one H200, 24 November 2026,
// groups of 2 rows, whose tiles have 8 k-tiles, beside suites with 16 and more).
double slices_clk(const KernelConfig& kernel, const SchedulerParams& s, double rounds, double clk) {
  constexpr double kMeetingClk = 200;
  if (k_slices(kernel) == 1) return clk;
  const double k_tiles = std::max(1.0, static_cast<double>(s.k_tiles) / s.splits), slices = k_slices(kernel);
  return clk * std::ceil(k_tiles / slices) * slices / k_tiles + std::ceil(rounds) * kMeetingClk;
}

// Slices of K: tiles of the same columns side by side ask for weights that are still on their way from memory (two H200s, 26 November 2026:
// 32 x 4096 x 4096 in two tiles of 16 rows takes 6.65 us, in tiles of 32 and two pieces 6.15).
double same_columns_us(const KernelConfig& kernel, const SchedulerParams& s) {
  constexpr double kLoss = 0.4;
  return k_slices(kernel) > 1 && s.tiles_m > 1 ? kLoss : 0;
}

// Slices of K beside up to 8 rows: the warpgroups' sums meet behind the last tile, which tells beside streaming kernels. (One H200, 27
// November 2026: with one row 4096 x 14336 takes 12.1 us in slices and 10.5 by streaming, 57344 x 8192 60.7 and 65.3 at lasting clocks.)
double slices_meet_us(const GemmProblem& p, const KernelConfig& kernel) {
  constexpr double kMeeting = 0.8;
  return k_slices(kernel) > 1 && p.m <= 8 ? kMeeting : 0;
}

}  // namespace sluice
