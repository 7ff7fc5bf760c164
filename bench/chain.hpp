// Decode chains: the linear layers of a language model's blocks one behind another, each reading what the one before wrote.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "bench/bench.hpp"
#include "bench/report.hpp"
#include "bench/suites.hpp"
#include "sluice/error.hpp"
#include "sluice/problem.hpp"

namespace sluice::bench {

struct ChainLayer {
  std::string name;
  std::int64_t n, k;
};

struct ChainModel {
  std::string name;
  std::vector<ChainLayer> layers;  // of a block; the last feeds the first of the next block
};

// "llama3-8b", "llama3-70b", or both: "all".
Result<std::vector<ChainModel>> find_chains(const std::string& wanted);
// The models' names, and what is wrong with rows or blocks.
Status check_chain_options(const BenchOptions& options);

// A layer's A is the first k columns of the output of the layer before: its rows are as far apart as those are long.
std::int64_t chain_lda(const ChainModel& model, std::size_t layer);
Shape chain_shape(const ChainModel& model, std::size_t layer, std::int64_t rows);
GemmProblem chain_problem(const ChainModel& model, std::size_t layer, std::int64_t rows, bool constant_b);

// Where everything lies: offsets in bytes, each a multiple of 1 KB.
struct ChainLayout {
  ChainLayout(const ChainModel& model, std::int64_t rows, int blocks);

  std::vector<std::size_t> weights;      // of each layer, within a block
  std::vector<std::size_t> activations;  // the layer's output, within a block
  std::size_t block_weight_bytes = 0;
  std::size_t block_activation_bytes = 0;
  std::size_t output_bytes = 0;  // of the largest layer; the input of the chain is no larger
  std::size_t total_bytes = 0;   // weights and outputs of all blocks, the input, and an output to compare with
};

// What no chain can beat: the weights of one block, at the rate of the device's memory. Activations fit in L2.
double chain_floor_us(const ChainModel& model, double hbm_gb_per_s);

struct ChainTiming {
  std::string name;                 // "sluice-constant", "sluice", "cublaslt", "cublaslt-best"
  std::vector<std::string> layers;  // what computes each
  Timing timing;                    // of one block
  std::string wrong;                // why a result is wrong; empty: all are right
};

struct ChainResult {
  std::string model;
  std::int64_t rows = 0;
  int blocks = 0;
  double floor_us = 0;  // of one block
  std::vector<ChainTiming> contestants;
  std::string wrong;  // why nothing was measured
};

struct ChainReport {
  Environment environment;
  std::vector<ChainResult> results;
};

// The fastest rival's time over the contestant's: above 1, the contestant is faster. 0 where either is missing.
double chain_ratio(const ChainResult& result, const std::string& rival, const std::string& contestant);
bool any_wrong(const ChainReport& report);

std::string table_header(const ChainReport& report);
std::string table_row(const ChainResult& result);
std::string table_footer(const ChainReport& report);
std::string to_json(const ChainReport& report);

}  // namespace sluice::bench
