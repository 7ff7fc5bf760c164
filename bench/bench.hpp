// Sluice beside its rivals on one GPU. See docs/benchmarks.md for the method.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "sluice/plan.hpp"

namespace sluice {

struct BenchOptions {
  // square, wave, splitk, llm, all (those four), fp8, w4a16, w4a8, random, or a file with a shape in each line (CSV m,n,k or JSON lines);
  // or several, separated by commas.
  std::string suite = "llm";
  std::uint64_t seed = 1;  // of the suite random

  // Of A and B, bf16 or e4m3, or int4: B of 4 bits beside a bf16 A. Empty: the suite's own, which is bf16 but for fp8, w4a16 and w4a8.
  std::optional<DataType> type;

  // What Sluice is measured against: "cublaslt" (the first answer of its heuristic) and "cublaslt-best" (the fastest of the first 16).
  // Empty: Sluice alone.
  std::vector<std::string> rivals = {"cublaslt", "cublaslt-best"};

  std::string out;    // a JSON file with every number; empty: none
  std::string plans;  // with `planner`: a plan file for the fastest candidate of each shape; empty: none
  std::string html;   // a page of plots of a suite, each of them beside it as FILE-NAME.svg; empty: none
  bool json = false;  // the same JSON on stdout instead of the table

  // Only shapes with m in [m_min, m_max] and this text in "MxNxK".
  std::int64_t m_min = 0;
  std::int64_t m_max = std::numeric_limits<std::int64_t>::max();
  std::string shape_filter;

  // Times the linear layers of a language model's blocks, each fed by the one before, instead of a suite: llama3-8b, llama3-70b or all.
  // Empty: the suite.
  std::string chain;
  std::vector<std::int64_t> chain_rows = {1, 16, 64};  // M
  int chain_blocks = 8;                                // each with weights of its own

  // Times grouped products instead of a suite: those whose set, type or size contains this ("masked", "bf16", "4x8192"), or all.
  std::string grouped;

  // Times memory alone instead of a suite: how long reading so many MB (10^6 bytes) takes, numbers separated by commas, or all: 1 to 1024.
  std::string floor;

  // Times every candidate of the planner for each shape instead of the rivals: how far is the planner's choice from the best?
  bool planner = false;
  double kernels_within = 0;  // with `planner`: only candidates predicted to take at most so many times the best one's time; 0: all

  // Sluice is told that B, the weights, is constant (GemmProblem::constant_b), so that launches overlap. cuBLASLt has no such promise.
  bool constant_b = false;

  int rounds = 0;                  // turns of each competitor; 0: as many as the seconds allow, 7 at least
  double seconds_per_shape = 0.5;  // GPU time to aim at
  // Suites, beside rivals or of candidates: how long a turn lasts, of which the last third is timed; there are 3 unless told otherwise. 0:
  // one graph, of about 2 ms. Where power decides, competitors in short turns share a clock, and in turns of 0.2 s and more each has its
  // own.
  double turn_seconds = 0;
  // For how long the GPU is left idle before each product, so that its figures do not depend on what was measured before: at the power
  // limit the clock falls for a second or so. Not given: 1 of grouped products, 0 of all else.
  std::optional<double> rest_seconds;
  PlanOptions plan_options;  // restricts Sluice's choice of kernel
};

// Prints the table (or the JSON) to stdout and its progress to stderr. Returns 0; 1 if a result was wrong, which is said loudly; 2 if the
// benchmark could not run, with the reason on stderr.
int run_bench(const BenchOptions& options);

}  // namespace sluice
