#include "launch/cuda/traced.hpp"

#include "sluice/trace.hpp"

#include "core/check_arguments.hpp"
#include "kernel/trace/traced_entry.hpp"
#include "launch/kernel_map.hpp"
#include "launch/trace_buffer.hpp"

namespace sluice {
namespace {

const void* find_traced_kernel(const KernelConfig& config) {
  static const KernelMap<const void*, KernelSet::traced> kernels([]<KernelConfig listed>() { return traced_gemm_kernel_entry<listed>(); });
  return kernels.find(config);
}

}  // namespace

Status run_traced(const Plan& plan, const GemmArguments& arguments, void* workspace, std::size_t workspace_bytes, TraceBuffer trace,
                  Stream stream) {
  if (is_empty(plan.problem)) return run(plan, arguments, workspace, workspace_bytes, stream);
  const void* const kernel = find_traced_kernel(plan.kernel);
  if (kernel == nullptr) return not_traced(plan.kernel);
  const Result<TraceParams> params = bind_trace(plan, trace);
  if (!params) return params.error();
  return run_kernel([&](KernelScope) { return kernel; }, plan, arguments, workspace, workspace_bytes, *params, stream);
}

}  // namespace sluice
