// Operations other than products, each beside a copy or a streaming read of the same bytes: docs/quantize.md, docs/w4.md, docs/histogram.md
// and docs/attention.md say what is timed.
#pragma once

#include <cstdint>
#include <string>

namespace sluice {

enum class BenchedOperation : std::uint8_t { quantize, pack_w4, histogram, attention };

struct OperationBenchOptions {
  std::string out;                // a JSON file with every number; empty: none
  std::string filter;             // only cases with this text in their description
  double seconds_per_case = 0.3;  // GPU time to aim at
  bool json = false;              // the same JSON on stdout instead of the table
};

// Prints the table (or the JSON) to stdout and its progress to stderr. Returns 0; 1 if a result was wrong, which is said loudly; 2 if the
// benchmark could not run, with the reason on stderr.
int run_operation_bench(BenchedOperation operation, const OperationBenchOptions& options);

}  // namespace sluice
