// attention() beside a kernel that reads the same keys and values and does nothing with them. See docs/attention.md.
#pragma once

#include <string>

namespace sluice {

struct AttentionBenchOptions {
  std::string out;                // a JSON file with every number; empty: none
  std::string filter;             // only cases with this text in their description
  double seconds_per_case = 0.3;  // GPU time to aim at
  bool json = false;              // the same JSON on stdout instead of the table
};

// Prints the table (or the JSON) to stdout and its progress to stderr. Returns 0; 1 if a result was wrong, which is said loudly; 2 if the
// benchmark could not run, with the reason on stderr.
int run_attention_bench(const AttentionBenchOptions& options);

}  // namespace sluice
