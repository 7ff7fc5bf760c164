// How to compute it: which kernel, which schedule, and why. A plan is a value: compare it, print it, write it to JSON, read it back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/error.hpp"
#include "sluice/kernel_list.hpp"
#include "sluice/plan_value.hpp"

namespace sluice {

// What may change the bits of a result. On one device and with one version of the library:
enum class Determinism : std::uint8_t {
  fast,           // nothing is promised. So far no schedule gains by it, and the plans are those of `deterministic`
  deterministic,  // the same plan and data give the same bits, whatever else runs on the GPU and however its CTAs are scheduled
  // A row of D depends on its row of A, on B and on the epilogue alone, not on M nor on the other rows: every tile is computed whole, its
  // products added in the order of k, 16 at a time. Costs the schedules that cut tiles, the streaming kernels, those for many rows of A
  // beside weights of 4 bits in groups of 128 or whole columns, and those for few rows of FP8 with scales along K.
  batch_invariant,
};
const char* to_string(Determinism determinism);  // "fast", "deterministic", "batch-invariant"
std::optional<Determinism> parse_determinism(std::string_view text);

struct Calibration;  // sluice/calibration.hpp

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
  int lead = 0;              // SchedulerParams::lead (0: as predicted, -1: none)
  std::string kernel_name;   // exactly this kernel
  int tile_m = 0;            // this tile, whatever the kernel (0 = free)
  int tile_n = 0;

  std::shared_ptr<const Calibration> calibration;  // the cost model's constants; null: those of this build
  bool keep_candidates = true;                     // false: the plan does not say what it decided against

  bool operator==(const PlanOptions& other) const;  // calibrations are compared by what they hold
};

// A pure function of its arguments.
Result<Plan> plan(const GemmProblem& problem, const DeviceSpec& device, const PlanOptions& options = {});

// Every candidate, its predicted time, the parts, and why it lost. `most` candidates at most.
std::string explain(const Plan& plan, int most = 12);
// Of one of the plan's candidates that can run: "chosen", or by how much it lost and what by, "+1.1%: 2.31 us of epilogue not hidden".
std::string why(const Plan& plan, const Candidate& candidate);
std::string to_string(const Plan& plan);  // a few lines
std::string to_json(const Plan& plan);
Result<Plan> plan_from_json(const std::string& text);

}  // namespace sluice
