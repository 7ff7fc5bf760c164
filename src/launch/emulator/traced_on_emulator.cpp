#include "launch/emulator/traced_on_emulator.hpp"

#include "core/check_group_sizes.hpp"
#include "core/check_plan.hpp"
#include "kernel/trace/traced_entry.hpp"
#include "launch/kernel_map.hpp"
#include "launch/trace_buffer.hpp"

namespace sluice {
namespace {

EmulatedKernel find_emulated_traced_kernel(const KernelConfig& config) {
  static const KernelMap<EmulatedKernel, KernelSet::traced> kernels(
      []<KernelConfig listed>() { return emulated_traced_gemm_kernel<listed>(); });
  return kernels.find(config);
}

}  // namespace

Status run_traced_on_emulator(const Plan& plan, const GemmArguments& arguments, TraceBuffer trace, const EmulatorOptions& options,
                              const Progress& progress) {
  if (Status s = check_plan(plan); !s) return s;
  if (Status s = check_group_sizes(plan.problem, arguments.groups); !s) return s;
  if (is_empty(plan.problem)) return run_on_emulator(plan, arguments, options, progress);
  const EmulatedKernel kernel = find_emulated_traced_kernel(plan.kernel);
  if (kernel == nullptr) return not_traced(plan.kernel);
  const Result<TraceParams> params = bind_trace(plan, trace);
  if (!params) return params.error();
  return run_kernel_on_emulator([&](KernelScope) { return kernel; }, plan, arguments, trace, *params, options, progress);
}

}  // namespace sluice
