// What a traced product needs in memory, and the GPU's part of `sluice trace`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sluice/plan.hpp"

namespace sluice::bench {

// In elements, from an operand's first to behind its last.
struct OperandElems {
  std::int64_t a = 0, b = 0, c = 0, d = 0, bias = 0, scale_a = 0, scale_b = 0, scale_d = 0;
};
OperandElems operand_elems(const GemmProblem& problem);  // validated

struct TraceRun {
  std::vector<std::byte> records;  // for read_trace()
  double plain_us = 0;             // of a launch of the kernel that is used otherwise,
  double traced_us = 0;            // and of the one that records, in turns with it: medians
  bool same_bits = false;          // both kernels' results
};

}  // namespace sluice::bench
