// What running a traced kernel takes on both machines: its buffer, cut up for it.
#pragma once

#include "sluice/error.hpp"
#include "sluice/trace.hpp"

#include "kernel/trace/trace_params.cuh"

namespace sluice {

Error not_traced(const KernelConfig& config);

// Refuses a buffer that is null, misaligned, or has no room for a tile of each role, and general groups.
Result<TraceParams> bind_trace(const Plan& plan, TraceBuffer buffer);

}  // namespace sluice
