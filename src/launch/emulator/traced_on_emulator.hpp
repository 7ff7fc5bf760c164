// What run_on_emulator() and run_traced_on_emulator() share.
#pragma once

#include <functional>

#include "sluice/emulator.hpp"
#include "sluice/trace.hpp"

#include "kernel/kernel_entry.hpp"
#include "kernel/trace/trace_params.cuh"

namespace sluice {

// The shortest of the plan's kernels for a scope; null is an error of run_kernel_on_emulator().
using FindEmulatedKernel = std::function<EmulatedKernel(KernelScope)>;

// run_on_emulator(), of whichever kernels: traced ones take `trace`, which lies in `buffer`. Groups' sizes are not looked at: those that
// these two refuse are run as the GPU would.
Status run_kernel_on_emulator(const FindEmulatedKernel& find, const Plan& plan, const GemmArguments& arguments, TraceBuffer buffer,
                              const TraceParams& trace, const EmulatorOptions& options, const Progress& progress);

}  // namespace sluice
