// What run(), run_traced() and run_general() share.
#pragma once

#include <functional>

#include "sluice/run.hpp"

#include "kernel/trace/trace_params.cuh"

namespace sluice {

// The shortest of the plan's kernels for a scope; null is an error of run_kernel().
using FindKernel = std::function<const void*(KernelScope)>;

// run(), of whichever kernels: traced ones take `trace`, too.
Status run_kernel(const FindKernel& find, const Plan& plan, const GemmArguments& arguments, void* workspace, std::size_t workspace_bytes,
                  const TraceParams& trace, Stream stream);

// Enqueues a kernel of a plan's configuration, with what it takes.
Status launch(const Plan& plan, const void* kernel, void* params, Stream stream);

}  // namespace sluice
