// attention(): binds pointers to a plan and enqueues its kernel.
#include "sluice/attention.hpp"

#include <cuda_runtime_api.h>

#include "core/attention_config.hpp"
#include "core/check_attention.hpp"
#include "kernel/attention/attention_entry.hpp"
#include "launch/bind_attention.hpp"
#include "launch/cuda/cuda_status.hpp"
#include "launch/cuda/one_kernel.hpp"
#include "launch/cuda/tensor_map.hpp"

namespace sluice {

Status prepare_attention_workspace(void* workspace, std::size_t workspace_bytes, Stream stream) {
  if (workspace == nullptr) return Error{ErrorCode::invalid_argument, "the workspace is null; allocate AttentionPlan::workspace_bytes"};
  return cuda_status(cudaMemsetAsync(workspace, 0xff, workspace_bytes, stream), "preparing the workspace");
}

Status attention(const AttentionPlan& given, const AttentionArguments& arguments, void* workspace, std::size_t workspace_bytes,
                 Stream stream) {
  const Result<AttentionProblem> valid = check_plan(given, workspace, workspace_bytes);
  if (!valid) return valid.error();
  AttentionPlan plan = given;
  plan.problem = *valid;
  if (Status s = check_arguments(*valid, arguments); !s) return s;
  if (Status s = check_hopper(); !s) return s;
  if (valid->batch == 0) return Nothing{};
  Result<AttentionParams> params = bind(plan, arguments, workspace, encode_tensor_map);
  if (!params) return params.error();
  const AttentionConfig config = attention_config(*valid);
  const void* const kernel = find_attention_kernel(config, []<AttentionConfig listed>() { return attention_kernel_entry<listed>(); });
  if (Status s = cuda_status(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, plan.shared_memory_bytes),
                             "cannot reserve shared memory");
      !s)
    return s;
  return enqueue(
      {.kernel = kernel, .ctas = plan.ctas, .threads_per_cta = attention_threads(config), .shared_memory_bytes = plan.shared_memory_bytes},
      &*params, stream);
}

}  // namespace sluice
