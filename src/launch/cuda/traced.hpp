// What run(), run_traced() and run_general() share.
#pragma once

#include "sluice/run.hpp"

#include "kernel/trace/trace_params.cuh"

namespace sluice {

// run(), of whichever kernel: a traced one takes `trace`, too. A null kernel is an error. `if_plain`: what runs instead where the product
// is plain (launch/plain.hpp), or null.
Status run_kernel(const void* kernel, const void* if_plain, const Plan& plan, const GemmArguments& arguments, void* workspace,
                  std::size_t workspace_bytes, const TraceParams& trace, Stream stream);

// Enqueues a kernel of a plan's configuration, with what it takes.
Status launch(const Plan& plan, const void* kernel, void* params, Stream stream);

}  // namespace sluice
