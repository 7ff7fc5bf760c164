// What the planner predicts, and what it decided against.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "sluice/kernel_config.hpp"
#include "sluice/schedule.hpp"

namespace sluice {

// Predicted time of one launch, in microseconds. The parts say what it is made of: `total_us` is
// launch + ramp + exposed_epilogue + reduction + learnt + what matrix, hbm and l2 come to when they overlap: (matrix^e + hbm^e +
// l2^e)^(1/e), e about 3.
struct PredictedTime {
  double launch_us = 0;            // launch, ramp up and drain
  double matrix_us = 0;            // tensor cores of the busiest SM, padding and idle waves included
  double hbm_us = 0;               // bytes that must come from and go to memory
  double l2_us = 0;                // bytes the tiles fetch through L2
  double ramp_us = 0;              // first load until the first wgmma
  double exposed_epilogue_us = 0;  // writing out that no main loop hides
  double reduction_us = 0;  // bringing the pieces of a tile together; of hybrid schedules also what ranges, each at another of K, wait for
  double learnt_us = 0;     // beside the candidate that the parts above say is fastest, more (or less) than they say: Calibration::learnt
  double power_us = 0;      // more (or less) than all that where the power limit sets the clock
  double total_us = 0;

  double waves = 0;         // work tiles per worker slot, before rounding up
  double useful_share = 0;  // of the matrix work: the rest is padding of edge tiles
  double busy_share = 0;    // of the SMs, over the waves

  bool operator==(const PredictedTime&) const = default;
};

enum class CandidateVerdict : std::uint8_t {
  chosen,
  slower,                  // predicted to take longer than the chosen one
  wrong_type,              // compiled for another type or layout
  needs_aligned_operands,  // tensor memory accelerator, but an operand is not 16-byte aligned
  cluster_does_not_fit,    // the device holds no such cluster
  too_many_tiles,          // more than a schedule can count
  shared_memory,           // needs more than a CTA may have
  excluded_by_options,
  no_groups,      // cannot find out which tiles groups have, or not end where they end
  few_rows_only,  // streams weights past few rows of A, and these are too many, or the weights of another format
  no_row_scales,  // cannot find scales of each 128 columns of D: no warpgroup holds them all
};

const char* to_string(CandidateVerdict verdict);  // "chosen", "slower", "wrong-type", ...
std::optional<CandidateVerdict> parse_verdict(std::string_view text);

struct Candidate {
  KernelConfig kernel;
  SchedulerParams scheduler;
  PredictedTime predicted;  // zero where the candidate cannot run
  CandidateVerdict verdict = CandidateVerdict::slower;

  bool operator==(const Candidate&) const = default;
};

}  // namespace sluice
