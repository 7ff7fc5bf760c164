// The flags that describe a problem, a device and the freedom the planner has, and what they mean.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <CLI/CLI.hpp>

#include "sluice/calibration.hpp"
#include "sluice/device.hpp"
#include "sluice/plan.hpp"
#include "sluice/problem.hpp"

namespace sluice::cli {

// What the planner may choose from. `plan`, `explain`, `simulate` and `gemm` share them.
struct PlannerFlags {
  std::string schedule, scheduler, raster, claim, reduction, kernel;
  std::string determinism = "deterministic";
  int tile_m = 0, tile_n = 0;
  int splits = 0, regions = 0, min_k_tiles = 0, lead = 0;
  std::string calibration;  // a file
};
void add_planner_flags(CLI::App& command, PlannerFlags& flags);
Result<PlanOptions> to_plan_options(const PlannerFlags& flags);

// --calibration, as add_planner_flags() adds it. Read: null where the path is empty.
CLI::Option* add_calibration_flag(CLI::App& command, std::string& path);
Result<std::shared_ptr<const Calibration>> read_calibration(const std::string& path);

struct EpilogueFlags {
  float alpha = 1;
  std::optional<float> beta;  // 0 unless given
  std::string activation = "none";
};
void add_epilogue_flags(CLI::App& command, EpilogueFlags& flags);
Result<Epilogue> to_epilogue(const EpilogueFlags& flags, Bias bias);

// Of FP8 operands, and of D in FP8.
struct ScaleFlags {
  std::string scaling_a = "none", scaling_b = "none", scaling_d = "none";
  std::string layout_a = "row-major", layout_b = "row-major", layout_d = "row-major";
  std::int64_t ld_a = kPacked, ld_b = kPacked, ld_d = kPacked;
};

// Of weights of 4 bits.
struct W4Flags {
  std::optional<int> group_size;  // nothing: 128, or what a file says
  bool zero_points = false;
};
// --w4-group and --w4-zeros, which `gemm` has as well.
void add_w4_flags(CLI::App& command, W4Flags& flags, const char* more);
W4Format to_w4_format(const W4Flags& flags);
// Refuses the flags where B is of another type.
Status check_w4_flags(const W4Flags& flags, DataType type_b);

// What is said of the rows of groups; 0: nothing.
struct RowsFlags {
  std::int64_t expected = 0, most = 0;
};

struct ProblemFlags {
  std::int64_t m = 0, n = 0, k = 0, batch = 1;
  std::string type = "bf16", out_type, layout = "rc", bias = "none";
  std::int64_t lda = kPacked, ldb = kPacked, ldc = kPacked, ldd = kPacked;
  int alignment_a = 16, alignment_b = 16, alignment_d = 16;
  std::string constant = "none";
  std::string grouping = "none";
  RowsFlags rows;
  ScaleFlags scales;
  W4Flags w4;
  EpilogueFlags epilogue;
};
// --constant: "a", "b", "ab" or "none".
void add_constant_flag(CLI::App& command, std::string& constant);
// --expected-rows and --most-rows, which `gemm` has as well.
void add_rows_flags(CLI::App& command, RowsFlags& rows);
// Refuses them where there are no groups. `groupings`: which there could be.
Status check_rows_flags(const RowsFlags& rows, Grouping grouping, const char* groupings);
// --scaling-a and --scaling-b, which `gemm` has as well.
void add_scaling_flags(CLI::App& command, std::string& scaling_a, std::string& scaling_b, const char* more);
// --scaling-d, the same.
void add_result_scaling_flag(CLI::App& command, std::string& scaling_d);
// `required`: whether --m, --n and --k must be there (not when the problem may come from a file).
void add_problem_flags(CLI::App& command, ProblemFlags& flags, bool required);
Result<GemmProblem> to_problem(const ProblemFlags& flags);

struct ChosenDevice {
  DeviceSpec spec;
  std::string why;  // in words: where it comes from
};
// --device: the name of a built-in device, a .json file, or "current". Empty: the current GPU if it can run the kernels, else h200.
Result<ChosenDevice> choose_device(const std::string& text);
void add_device_flag(CLI::App& command, std::string& device);

// All that `plan`, `explain` and `simulate` have in common.
struct PlanningFlags {
  ProblemFlags problem;
  PlannerFlags planner;
  std::string device;
};
struct PlannedProblem {
  Plan plan;
  std::string device_line;  // "for      h200, built in"
};
Result<PlannedProblem> make_plan(const PlanningFlags& flags, bool keep_candidates);
std::string device_line(const ChosenDevice& device);

}  // namespace sluice::cli
