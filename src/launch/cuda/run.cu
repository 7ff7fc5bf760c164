// run(): binds pointers to a plan and enqueues one kernel, or two of general groups.
#include "sluice/run.hpp"

#include <cuda_runtime_api.h>

#include "core/check_arguments.hpp"
#include "core/check_workspace.hpp"
#include "core/groups.hpp"
#include "core/kernel_layout.hpp"
#include "core/kernel_line.hpp"
#include "core/launched_clusters.hpp"
#include "core/profiler_range.hpp"
#include "launch/bind.hpp"
#include "launch/bind_places.hpp"
#include "launch/cuda/check_device.hpp"
#include "launch/cuda/cuda_status.hpp"
#include "launch/cuda/general.hpp"
#include "launch/cuda/places.hpp"
#include "launch/cuda/registry.hpp"
#include "launch/cuda/tensor_map.hpp"
#include "launch/cuda/traced.hpp"
#include "launch/scope.hpp"

namespace sluice {

Status launch(const Plan& plan, const void* kernel, void* params, Stream stream) {
  const cudaError_t reserved = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, plan.shared_memory_bytes);
  if (Status s = cuda_status(reserved, "cannot reserve shared memory"); !s) return s;
  cudaLaunchAttribute attributes[2]{{.id = cudaLaunchAttributeClusterDimension},
                                    {.id = cudaLaunchAttributeProgrammaticStreamSerialization}};
  attributes[0].val.clusterDim = {static_cast<unsigned>(launched_cluster_size(plan)), 1, 1};
  // The kernel waits for its predecessor itself, before it touches global memory: what overlaps is launch and set-up alone.
  attributes[1].val.programmaticStreamSerializationAllowed = 1;
  const cudaLaunchConfig_t config{.gridDim = dim3(static_cast<unsigned>(launched_ctas(plan))),
                                  .blockDim = dim3(static_cast<unsigned>(threads_per_cta(plan.kernel))),
                                  .dynamicSmemBytes = static_cast<std::size_t>(plan.shared_memory_bytes),
                                  .stream = stream,
                                  .attrs = attributes,
                                  .numAttrs = 2};
  void* arguments[] = {params};
  return cuda_status(cudaLaunchKernelExC(&config, kernel, arguments), "kernel launch");
}

Status run(const Plan& plan, const GemmArguments& arguments, void* workspace, std::size_t workspace_bytes, Stream stream) {
  const auto find = [&](KernelScope scope) { return find_gemm_kernel(with_scope(plan.kernel, scope)); };
  return run_kernel(find, plan, arguments, workspace, workspace_bytes, {}, stream);
}

Status run_kernel(const FindKernel& find, const Plan& plan, const GemmArguments& arguments, void* workspace, std::size_t workspace_bytes,
                  const TraceParams& trace, Stream stream) {
  const ProfilerRange range("sluice run");
  if (Status s = check_arguments(plan, arguments); !s) return s;
  if (Status s = check_workspace(workspace, workspace_bytes, plan.workspace_bytes, "Plan::workspace_bytes"); !s) return s;
  if (is_empty(plan.problem)) return Nothing{};
  if (Status s = check_device(plan.device); !s) return s;
  if (is_general(plan.problem)) return run_general(plan, arguments, workspace, stream);
  Result<GemmParams> params = bind(plan, arguments, workspace, encode_tensor_map);
  if (!params) return params.error();
  const void* const kernel = find(scope_of(plan, params->epilogue.path));
  if (kernel == nullptr) return not_in_this_build(plan.kernel);
  bind_places(plan, workspace, &places_of_current_device, *params);
  TracedGemmParams all{*params, trace};
  return launch(plan, kernel, &all, stream);
}

}  // namespace sluice
