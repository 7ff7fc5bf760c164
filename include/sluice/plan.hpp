// How to compute it: which kernel, which schedule, and why. A plan is a value: compare it, print it, write it to JSON, read it back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/device.hpp"
#include "sluice/error.hpp"
#include "sluice/kernel_config.hpp"
#include "sluice/problem.hpp"
#include "sluice/schedule.hpp"

namespace sluice {

// Predicted time of one launch, in microseconds. The parts say what it is made of: `total_us` is
// launch + ramp + exposed_epilogue + reduction + what matrix, hbm and l2 come to when they overlap: (matrix^e + hbm^e + l2^e)^(1/e), e
// about 3.
struct PredictedTime {
  double launch_us = 0;            // launch, ramp up and drain
  double matrix_us = 0;            // tensor cores of the busiest SM, padding and idle waves included
  double hbm_us = 0;               // bytes that must come from and go to memory
  double l2_us = 0;                // bytes the tiles fetch through L2
  double ramp_us = 0;              // first load until the first wgmma
  double exposed_epilogue_us = 0;  // writing out that no main loop hides
  double reduction_us = 0;         // bringing the pieces of a tile together
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

// What may change the bits of a result. On one device and with one version of the library:
enum class Determinism : std::uint8_t {
  fast,           // nothing is promised. So far no schedule gains by it, and the plans are those of `deterministic`
  deterministic,  // the same plan and data give the same bits, whatever else runs on the GPU and however its CTAs are scheduled
  // A row of D depends on its row of A, on B and on the epilogue alone, not on M nor on the other rows: every tile is computed whole, its
  // products added in the order of k, 16 at a time. Costs the schedules that cut tiles.
  batch_invariant,
};
const char* to_string(Determinism determinism);  // "fast", "deterministic", "batch-invariant"
std::optional<Determinism> parse_determinism(std::string_view text);

struct PlanOptions {
  Determinism determinism = Determinism::deterministic;

  // Restrict the choice. Empty means free.
  std::optional<KernelSchedule> schedule;
  std::optional<SchedulerKind> scheduler;
  std::optional<Rasterization> raster;
  std::optional<WorkClaim> claim;
  std::optional<Reduction> reduction;
  int splits = 0;            // split_k: pieces of each tile (0: as many as fill the device, at least 2 where there are two k-tiles)
  int stream_k_regions = 0;  // stream_k and hybrid (0: one)
  int min_k_tiles = 0;       // of a piece (0: one)
  std::string kernel_name;   // exactly this kernel
  int tile_m = 0;            // this tile, whatever the kernel (0 = free)
  int tile_n = 0;
  bool keep_candidates = true;  // false: the plan does not say what it decided against

  bool operator==(const PlanOptions&) const = default;
};

struct Plan {
  GemmProblem problem;  // validated: nothing is kPacked
  DeviceSpec device;
  KernelConfig kernel;
  SchedulerParams scheduler;
  int grid_ctas = 0;     // 0 when there is nothing to compute
  int worker_count = 0;  // clusters (cooperative) or clusters times consumer warpgroups (pingpong)
  int shared_memory_bytes = 0;
  std::size_t workspace_bytes = 0;
  PredictedTime predicted;
  std::vector<Candidate> candidates;  // the chosen one first, then the others in order of predicted time, then those that cannot run

  bool operator==(const Plan&) const = default;
};

// A pure function of its arguments.
Result<Plan> plan(const GemmProblem& problem, const DeviceSpec& device, const PlanOptions& options = {});

// Every candidate, its predicted time, the parts, and why it lost. `most` candidates at most.
std::string explain(const Plan& plan, int most = 12);
std::string to_string(const Plan& plan);  // a few lines
std::string to_json(const Plan& plan);
Result<Plan> plan_from_json(const std::string& text);

}  // namespace sluice
