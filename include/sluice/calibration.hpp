// The constants of the cost model as data: measured on one GPU, written to JSON, read back, fitted to times measured on another.
// docs/calibration.md says how they are found.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "sluice/device.hpp"
#include "sluice/error.hpp"
#include "sluice/kernel_config.hpp"
#include "sluice/plan_value.hpp"
#include "sluice/problem.hpp"

namespace sluice {

// What a kernel's measured times are of those predicted without it.
struct KernelFactor {
  std::string kernel;  // as kernel_key() names it
  double factor = 1;

  bool operator==(const KernelFactor&) const = default;
};

// What one number that is known of a candidate says about it.
struct LearntInput {
  std::string name;  // as planner/calibration/learnt.cpp calls it
  double mean = 0, spread = 1;
  std::vector<double> weights;  // one for each unit

  bool operator==(const LearntInput&) const = default;
};

// How candidates for one product compare, beyond what the model's parts say: a network with one hidden layer, learnt from measured times
// (docs/calibration.md, "What is learnt"). With x the inputs less their means, in spreads, 3 at most,
//   f = sum over units of out * tanh'(bias + sum over inputs of weight * x)
// is the logarithm of measured over predicted time, but for what all candidates for a product have in common.
struct LearntComparison {
  std::string operands;  // "16-bit", "fp8" or "w4" (16 bits beside weights of 4 bits): of A and B
  // Of the GPU: it holds for those with as many SMs and memory no more than a tenth slower or faster.
  int sm_count = 0;
  double hbm_gb_per_s = 0;
  std::vector<LearntInput> inputs;
  std::vector<double> bias, out;  // one for each unit

  bool operator==(const LearntComparison&) const = default;
};

// Where the numbers come from.
struct CalibrationProvenance {
  std::string device, date, driver, commit;
  std::string remarks;
  int shapes = 0;
  int timings = 0;
  // What the planner's choice takes, of the fastest candidate that was measured. 0: not known.
  double choice_mean = 0;  // geometric mean over the shapes
  double choice_worst = 0;

  bool operator==(const CalibrationProvenance&) const = default;
};

// Ratios, cycles and times, so that a device with another clock, another number of SMs or other memory takes them over.
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
  double l2_factor = 1;   // of DeviceSpec::l2_gb_per_s: neighbouring SMs' requests for one line are merged
  double hbm_factor = 1;  // of DeviceSpec::hbm_gb_per_s
  // Of the device that factors of kernels were measured on, at most. Slower memory makes bytes take longer, but alike for all kernels.
  // 0: that of the device which is planned for.
  double measured_hbm_gb_per_s_per_sm = 0;
  double launch_factor = 1;  // of DeviceSpec::launch_us: the rest hides under the predecessor
  double ramp_us = 0;
  double early_fetch_us = 0;              // saved where all operands are constant
  double store_bytes_per_clk_per_sm = 0;  // results leaving an SM
  double exposed_stores_cooperative = 0;  // per round
  double exposed_stores_pingpong = 0;     // once
  // Pieces of a tile: handing over, and at what rate sums are left and each other piece's are fetched.
  double hand_over_us = 0;
  double collect_bytes_per_clk_per_sm = 1;
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

  std::vector<KernelFactor> kernel_factors;  // one that is not named: 1, and 20 with LoadPath::threads
  std::vector<LearntComparison> learnt;      // for operands that are not named: nothing
  CalibrationProvenance provenance;

  bool operator==(const Calibration&) const = default;
};

// The name of a kernel without its type and layout, which do not change its factor: "coop_128x256x64_c2x1", or "fp8_coop_256x128x128_c1x1".
std::string kernel_key(const KernelConfig& kernel);

// The one that this library was built with, measured on an H200.
const Calibration& built_in_calibration();

// Every number finite and within its limits, no kernel named twice. The error names the field, its value and the limits.
Status validate(const Calibration& calibration);

std::string to_json(const Calibration& calibration);
Result<Calibration> calibration_from_json(const std::string& text);

struct CandidateTiming {
  GemmProblem problem;
  Candidate candidate;  // its kernel and scheduler: what was predicted for it does not matter
  double measured_us = 0;
};

// What a calibration would choose among the candidates that were timed for a problem.
struct JudgedChoice {
  GemmProblem problem;
  std::size_t chosen = 0;   // index of a timing
  std::size_t fastest = 0;  // the same
  double predicted_us = 0;  // of the chosen one
  double ratio = 1;         // measured time of the chosen one over the fastest one's
};

// One for each problem, in the order in which they come first. Timings that are not above 0 and problems that no plan can have are left
// out.
std::vector<JudgedChoice> judge_choices(std::span<const CandidateTiming> timings, const DeviceSpec& device, const Calibration& calibration);

// The constants and factors that come closest to the measured times, most of all where the choice depends on them, found by small steps
// from `start`. A pure function of its arguments. The result's provenance says device, shapes, timings and how good the choice is; date,
// driver and commit are the caller's to fill in.
// What `start` has learnt belongs to its own constants: the result has learnt nothing.
Calibration fit_calibration(std::span<const CandidateTiming> timings, const DeviceSpec& device, const Calibration& start);

// `start` with Calibration::learnt from these times; what they say nothing about stays as it was. A pure function of its arguments.
Calibration learn_comparisons(std::span<const CandidateTiming> timings, const DeviceSpec& device, const Calibration& start);

}  // namespace sluice
