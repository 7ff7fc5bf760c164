// What run_on_emulator() and run_traced_on_emulator() share.
#pragma once

#include "sluice/emulator.hpp"
#include "sluice/trace.hpp"

#include "kernel/kernel_entry.hpp"
#include "kernel/trace/trace_params.cuh"

namespace sluice {

// run_on_emulator(), of whichever kernel: a traced one takes `trace`, which lies in `buffer`. A null kernel is an error. Groups' sizes are
// not looked at: those that these two refuse are run as the GPU would.
Status run_kernel_on_emulator(EmulatedKernel kernel, EmulatedKernel if_plain, const Plan& plan, const GemmArguments& arguments,
                              TraceBuffer buffer, const TraceParams& trace, const EmulatorOptions& options, const Progress& progress);

}  // namespace sluice
