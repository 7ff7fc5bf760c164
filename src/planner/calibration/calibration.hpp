// Measured constants of the cost model. Each device family has one set; they are ratios and cycles, so that a device with another clock,
// another number of SMs or other memory takes them over.
#pragma once

#include "sluice/kernel_config.hpp"

namespace sluice {

struct Calibration {
  // Cycles that a pipeline stage costs beyond its multiplications: barrier, first wgmma, last wgmma.
  double stage_overhead_clk_one_consumer = 0;
  double stage_overhead_clk_cooperative = 0;
  double stage_overhead_clk_pingpong = 0;
  double matrix_cycles_factor = 1;         // of the cycles that the tensor cores' rate says
  double ingest_bytes_per_clk_per_sm = 0;  // through the copy engine into shared memory
  // What the copy engine takes to begin with a stage, with a box, and with a row of it that lies outside the matrix (core/load_boxes.hpp).
  double issue_clk_per_stage = 0;
  double issue_clk_per_box = 0;
  double issue_clk_per_row_outside = 0;
  double l2_factor = 1;      // of DeviceSpec::l2_gb_per_s: neighbouring SMs' requests for one line are merged
  double hbm_factor = 1;     // of DeviceSpec::hbm_gb_per_s
  double launch_factor = 1;  // of DeviceSpec::launch_us: the rest hides under the predecessor
  double ramp_us = 0;
  double early_fetch_us = 0;              // saved where all operands are constant
  double store_bytes_per_clk_per_sm = 0;  // results leaving an SM
  double exposed_stores_cooperative = 0;  // per round
  double exposed_stores_pingpong = 0;     // once
  // Pieces of a tile: leaving sums and handing over, then fetching what each other piece has left, at a rate or by round trips to L2.
  double hand_over_us = 0;
  double collect_bytes_per_clk_per_sm = 1;
  double collect_round_trip_us = 0;
  double separate_meeting_us = 0;         // Reduction::separate
  double leave_bytes_per_clk_per_sm = 1;  // sums written to L2 by all SMs at once
  double cluster_meeting_us = 0;          // Reduction::cluster: until everybody is there,
  double push_bytes_per_clk_per_sm = 1;   // then sums pushed into each other's shared memory
  double stream_k_factor = 1;             // of the matrix time, where ranges begin and end anywhere
  double overlap_exponent = 1;            // parts that overlap: (a^e + b^e + ...)^(1/e)
  double throttle_us = 1;                 // time over which the power limit takes hold
  double throttle_factor = 0;             // of 1 / DeviceSpec::sustained_fraction - 1
  // On longer runs still, bytes moved on the chip cost clock too: the share of the L2 time in the matrix time beyond the one named.
  double traffic_throttle_us = 1;
  double traffic_throttle_factor = 0;
  double traffic_free_share = 1;
};

const Calibration& hopper_calibration();

// What a kernel's measured times are of those predicted without it.
double kernel_factor(const KernelConfig& kernel);

}  // namespace sluice
