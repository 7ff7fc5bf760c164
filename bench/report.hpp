// What a benchmark found, as a table for people and JSON for programs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bench/suites.hpp"
#include "sluice/plan.hpp"

namespace sluice::bench {

// Time of one launch inside a graph of many: median over the rounds.
struct Timing {
  double us = 0;
  double spread = 0;  // relative_spread over the rounds
  int rounds = 0;
  int launches_per_graph = 0;
};

struct RivalTiming {
  std::string name;    // as in BenchOptions::rivals
  std::string detail;  // which algorithm it took, or why it was not timed
  Timing timing;
};

// One candidate in planner mode.
struct KernelTiming {
  Candidate candidate;
  std::string kernel;
  Timing timing;
  std::string wrong;  // why its result is wrong; empty: it is right
};

struct ShapeResult {
  Shape shape;
  std::string kernel;  // that the planner chose
  std::string scheduler;
  PredictedTime predicted;
  Timing sluice;
  Timing stream;  // of weights of 4 bits: a plain launch that does nothing but read as many bytes as they are packed
  std::vector<RivalTiming> rivals;
  std::vector<KernelTiming> kernels;  // fastest first
  std::string wrong;                  // why Sluice's result is wrong, or why there is none; empty: it is right
  int rotating_sets = 0;              // of inputs and outputs
};

// As nvidia-smi reports it; empty where it does not answer.
struct GpuState {
  std::optional<double> sm_clock_mhz, memory_clock_mhz, power_w, temperature_c;
};

struct Environment {
  std::string gpu, driver, cuda, cublaslt, sluice, commit, date;
  int sm_count = 0;
  GpuState before, after;
};

struct BenchReport {
  Environment environment;
  std::vector<std::string> rivals;
  bool planner = false;
  bool constant_b = false;
  double turn_seconds = 0;  // BenchOptions::turn_seconds
  bool floor = false;       // some shapes have one
  std::vector<ShapeResult> results;
};

// Rival's time over Sluice's: above 1, Sluice is faster.
double ratio(const ShapeResult& result, const RivalTiming& rival);
// What no kernel can be much faster than, where weights have 4 bits: reading them, or the multiplications at what tensor cores sustain
// (869 TFLOP/s, e4m3 1666) if those take longer. 0 where it was not timed.
double floor_us(const ShapeResult& result);
// Of the planner's choice in planner mode: its time over the best kernel's, less 1. Negative if the choice was not timed.
double planner_loss(const ShapeResult& result);

// "bf16_rc_coop_128x64x64_c1x1, split-k 4".
std::string describe(const KernelTiming& kernel);

// In planner mode: the shapes whose choice is furthest from the best, worst first, `most` at most. Those where the choice is the best are
// left out.
std::vector<const ShapeResult*> worst_choices(const std::vector<ShapeResult>& results, std::size_t most = 10);

std::string table_header(const BenchReport& report);
std::string table_row(const ShapeResult& result, bool planner);
std::string table_footer(const BenchReport& report);  // geometric means and minima, and what was wrong
std::string to_json(const BenchReport& report);
std::string error_to_json(const Error& error, int exit_code);

}  // namespace sluice::bench
