// What tiles in pieces cost: hand-overs, what hides them, and slices of K inside a CTA.
#pragma once

#include "sluice/calibration.hpp"
#include "sluice/kernel_config.hpp"
#include "sluice/problem.hpp"
#include "sluice/schedule.hpp"

namespace sluice {

// From a tile's last piece multiplied to its sums complete; and what of that SchedulerParams::lead hides.
double reduction_us(const Calibration& c, const KernelConfig& kernel, const SchedulerParams& s, double clocks_per_us);
double hidden_by_lead_us(const Calibration& c, const KernelConfig& kernel, const SchedulerParams& s, double main_loops_us,
                         double clocks_per_us);

// SchedulerParams::lead: a hand-over, and what one piece has left, pass while the last piece multiplies, and begin to come before it has.
// (One H200, 27 November 2026, leads of 0 to 4 us in candidates of 10 products in 2 to 15 pieces: the best are 2 to 3.5 us, of large tiles
// no longer ones.)
inline constexpr double kLeadUs = 2.4;
// A k-tile of a piece, where all pieces' main loops take main_loops_us.
double stage_of_piece_us(const SchedulerParams& s, double main_loops_us);

// By how much pieces in clusters take longer, and what ranges of a hybrid schedule wait for memory.
double clusters_of_pieces_factor(const KernelConfig& kernel, const SchedulerParams& s);
double ranges_wait_us(const SchedulerParams& s, double hbm_us, double matrix_us);

// Slices of K: cycles of the longest one, and what tiles side by side and the meeting behind the last tile cost.
double slices_clk(const KernelConfig& kernel, const SchedulerParams& s, double rounds, double clk);
double same_columns_us(const KernelConfig& kernel, const SchedulerParams& s);
double slices_meet_us(const GemmProblem& p, const KernelConfig& kernel);

}  // namespace sluice
