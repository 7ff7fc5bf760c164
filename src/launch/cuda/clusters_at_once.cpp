#include "launch/cuda/clusters_at_once.hpp"

#include <cuda_runtime_api.h>

#include <cstddef>

#include "launch/cuda/cuda_status.hpp"

namespace sluice {

Result<int> clusters_at_once(const void* kernel, int ctas, int threads_per_cta, int shared_memory_bytes) {
  if (Status s = cuda_status(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_memory_bytes),
                             "cudaFuncSetAttribute");
      !s)
    return s.error();
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim = {static_cast<unsigned>(ctas), 1, 1};
  cudaLaunchConfig_t launch{};
  launch.gridDim = {static_cast<unsigned>(ctas), 1, 1};
  launch.blockDim = {static_cast<unsigned>(threads_per_cta), 1, 1};
  launch.dynamicSmemBytes = static_cast<std::size_t>(shared_memory_bytes);
  launch.attrs = &attribute;
  launch.numAttrs = 1;
  int clusters = 0;
  if (Status s = cuda_status(cudaOccupancyMaxActiveClusters(&clusters, kernel, &launch), "cudaOccupancyMaxActiveClusters"); !s)
    return s.error();
  return clusters;
}

}  // namespace sluice
