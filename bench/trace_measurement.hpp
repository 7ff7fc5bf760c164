// The GPU's part of `sluice trace`.
#pragma once

#include "bench/trace_operands.hpp"
#include "sluice/error.hpp"

namespace sluice::bench {

// Runs the plan on the current GPU over random operands that rotate beyond L2: the plain kernel and the one that records in turns, then
// once more for the record.
Result<TraceRun> measure_trace(const Plan& plan);

}  // namespace sluice::bench
