// What run() and run_traced() share.
#pragma once

#include "sluice/run.hpp"

#include "kernel/trace/trace_params.cuh"

namespace sluice {

// run(), of whichever kernel: a traced one takes `trace`, too. A null kernel is an error.
Status run_kernel(const void* kernel, const Plan& plan, const GemmArguments& arguments, void* workspace, std::size_t workspace_bytes,
                  const TraceParams& trace, Stream stream);

}  // namespace sluice
