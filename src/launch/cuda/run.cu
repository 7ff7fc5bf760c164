// run(): binds pointers to a plan and enqueues one kernel, or two of general groups.
#include "sluice/run.hpp"

#include <cuda_runtime_api.h>

#include "core/check_arguments.hpp"
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
#include "launch/plain.hpp"

namespace sluice {

Status launch(const Plan& plan, const void* kernel, void* params, Stream stream) {
  if (Status s = cuda_status(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, plan.shared_memory_bytes),
                             "cannot reserve shared memory");
      !s)
    return s;
  cudaLaunchAttribute attributes[2]{};
  attributes[0].id = cudaLaunchAttributeClusterDimension;
  attributes[0].val.clusterDim = {static_cast<unsigned>(launched_cluster_size(plan)), 1, 1};
  // The kernel waits for its predecessor itself, before it touches global memory: what overlaps is launch and set-up alone.
  attributes[1].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attributes[1].val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = {static_cast<unsigned>(launched_ctas(plan)), 1, 1};
  config.blockDim = {static_cast<unsigned>(threads_per_cta(plan.kernel)), 1, 1};
  config.dynamicSmemBytes = static_cast<std::size_t>(plan.shared_memory_bytes);
  config.stream = stream;
  config.attrs = attributes;
  config.numAttrs = 2;
  void* arguments[] = {params};
  return cuda_status(cudaLaunchKernelExC(&config, kernel, arguments), "kernel launch");
}

Status run(const Plan& plan, const GemmArguments& arguments, void* workspace, std::size_t workspace_bytes, Stream stream) {
  const void* const kernel = plan.kernel.plain ? nullptr : find_gemm_kernel(plan.kernel);
  return run_kernel(kernel, find_gemm_kernel(plain(plan.kernel)), plan, arguments, workspace, workspace_bytes, {}, stream);
}

Status run_kernel(const void* kernel, const void* if_plain, const Plan& plan, const GemmArguments& arguments, void* workspace,
                  std::size_t workspace_bytes, const TraceParams& trace, Stream stream) {
  const ProfilerRange range("sluice run");
  if (Status s = check_arguments(plan, arguments); !s) return s;
  if (workspace_bytes < plan.workspace_bytes || (plan.workspace_bytes > 0 && workspace == nullptr))
    return Error{ErrorCode::workspace_too_small, "the workspace has " + std::to_string(workspace == nullptr ? 0 : workspace_bytes) +
                                                     " bytes; the plan needs " + std::to_string(plan.workspace_bytes) +
                                                     " (Plan::workspace_bytes)"};
  if (is_empty(plan.problem)) return Nothing{};
  if (Status s = check_device(plan.device); !s) return s;
  if (kernel == nullptr)
    return Error{ErrorCode::unsupported,
                 "the plan's kernel " + name(plan.kernel) + " is not in this build; plan again, `sluice list` shows the kernels"};

  if (is_general(plan.problem)) return run_general(plan, arguments, workspace, stream);
  Result<GemmParams> params = bind(plan, arguments, workspace, encode_tensor_map);
  if (!params) return params.error();
  bind_places(plan, workspace, &places_of_current_device, *params);
  TracedGemmParams all{*params, trace};
  return launch(plan, if_plain != nullptr && is_plain(plan, *params) ? if_plain : kernel, &all, stream);
}

}  // namespace sluice
