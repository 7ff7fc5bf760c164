// Binds pointers to a quantize problem, for either machine.
#pragma once

#include "sluice/quantize.hpp"

#include "kernel/quantize/quantize_params.hpp"

namespace sluice {

struct BoundQuantize {
  QuantizeParams params;
  int grid_ctas;
};

// Of a validated problem that is not empty, with pointers that have been checked. sm_count: 0 where CTAs do not share SMs.
BoundQuantize bind(const QuantizeProblem& problem, const QuantizeArguments& arguments, int sm_count);

}  // namespace sluice
