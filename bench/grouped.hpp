// Grouped products as mixtures of experts have them: which, and how their times are reported.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/bench.hpp"
#include "bench/report.hpp"
#include "sluice/problem.hpp"

namespace sluice::bench {

struct GroupedShape {
  std::string set;                 // "contiguous", "unpadded", "experts", "masked", "skewed", "general", "gradients", "w4"
  DataType type = DataType::e4m3;  // of A and B, or int4: of B, beside a bf16 A
  Grouping grouping = Grouping::ragged;
  std::vector<std::int32_t> rows;  // of each group; along K what each has of K, its tokens too
  std::int64_t room = 0;           // masked: rows of a group that there is memory for
  bool knows_most = false;         // ragged: how many rows the largest has (GemmProblem::most_rows)
  std::int64_t n = 0;
  std::int64_t k = 0;  // along K: m
};

// Those whose set, type or size contains `filter`; all if it is empty. The shapes are those for which DeepGEMM's times are known
// (contiguous, masked), experts with few rows that nobody pads (unpadded), 256 of them with 128 rows, known or not, or about (experts), 64
// whose rows follow Zipf's law beside 64 equal ones (skewed), groups of rows as products of their own, in the same memory (general),
// gradients of the weights of either (gradients, along K; of e4m3 in whole blocks of 128 tokens), and 64 experts with weights of 4 bits, of
// which each token goes to eight (w4).
std::vector<GroupedShape> grouped_shapes(const std::string& filter);

// "e4m3 ragged 4x8192x4096x7168": groups, rows ("~": in the mean; "<=": at most, and told so), n, k (along K: groups, K, n, m).
std::string to_string(const GroupedShape& shape);
std::int64_t all_rows(const GroupedShape& shape);
GemmProblem grouped_problem(const GroupedShape& shape);
// What its numbers say, and its memory holds: groups of rows, of general groups too.
GemmProblem problem_in_memory(const GroupedShape& shape);
std::vector<std::int32_t> group_numbers(const GroupedShape& shape);  // GemmArguments::groups
// One product of as many rows, as a comparison; along K a batch of products that all have as much of K as groups have in the mean; of
// weights of 4 bits the same groups with bf16 weights.
GemmProblem dense_problem(const GroupedShape& shape);

double flops(const GroupedShape& shape);
// What must be moved at the least: the rows, the matrices of groups that have some, and the result.
double bytes(const GroupedShape& shape);

struct GroupedResult {
  GroupedShape shape;
  std::string kernel;
  std::string scheduler;
  Timing grouped, stream;      // in turn
  Timing beside_dense, dense;  // likewise; 0 where B would have to be another in every tile
  std::string best;            // with --planner: the fastest candidate
  double best_us = 0;
  std::string wrong;
};

struct GroupedReport {
  Environment environment;
  std::vector<GroupedResult> results;
};

bool any_wrong(const GroupedReport& report);
std::string table_header(const GroupedReport& report);
std::string table_row(const GroupedResult& result);
std::string table_footer(const GroupedReport& report);
std::string to_json(const GroupedReport& report);

}  // namespace sluice::bench
