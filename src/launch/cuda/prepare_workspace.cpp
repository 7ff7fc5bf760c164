#include <cuda_runtime_api.h>
#include <algorithm>

#include "sluice/run.hpp"

#include "launch/cuda/cuda_status.hpp"
#include "scheduler/workspace.hpp"

namespace sluice {

Status prepare_workspace(void* workspace, std::size_t workspace_bytes, Stream stream) {
  if (workspace_bytes == 0) return Nothing{};
  if (workspace == nullptr)
    return Error{ErrorCode::invalid_argument, "the workspace is null, but has " + std::to_string(workspace_bytes) + " bytes"};
  return cuda_status(cudaMemsetAsync(workspace, 0, std::min<std::size_t>(workspace_bytes, kFlagBytes), stream), "preparing the workspace");
}

}  // namespace sluice
