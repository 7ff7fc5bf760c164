#include "launch/cuda/places.hpp"

#include <cuda_runtime_api.h>

#include <map>
#include <mutex>
#include <optional>

#include "core/launched_clusters.hpp"
#include "launch/bind_places.hpp"
#include "launch/cuda/one_kernel.hpp"

namespace sluice {
namespace {

__global__ void take_an_sm() {}  // if it asks for all shared memory that a CTA may have

// 0 where the driver does not say.
int clusters_that_run_at_once(int ctas, int shared_memory_bytes) {
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim = {static_cast<unsigned>(ctas), 1, 1};
  cudaLaunchConfig_t config{};
  config.gridDim = {static_cast<unsigned>(ctas), 1, 1};
  config.blockDim = {32, 1, 1};
  config.dynamicSmemBytes = static_cast<std::size_t>(shared_memory_bytes);
  config.attrs = &attribute;
  config.numAttrs = 1;
  int clusters = 0;
  if (cudaOccupancyMaxActiveClusters(&clusters, take_an_sm, &config) == cudaSuccess) return clusters;
  cudaGetLastError();  // or the caller's next check would see it
  return 0;
}

std::optional<SmPlaces> ask_driver(int device) {
  int bytes = 0;
  if (cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device) != cudaSuccess ||
      cudaFuncSetAttribute(take_an_sm, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes) != cudaSuccess ||
      cudaFuncSetAttribute(take_an_sm, cudaFuncAttributeNonPortableClusterSizeAllowed, 1) != cudaSuccess) {
    cudaGetLastError();
    return {};
  }
  return places_by_gpc(current_sm_count(), [bytes](int ctas) { return clusters_that_run_at_once(ctas, bytes); });
}

}  // namespace

const SmPlaces* places_of_current_device(int sm_count) {
  static std::mutex mutex;
  static std::map<int, std::optional<SmPlaces>> known;
  int device = 0;
  if (cudaGetDevice(&device) != cudaSuccess || current_sm_count() != sm_count) return nullptr;
  const std::lock_guard lock(mutex);
  const auto [found, is_new] = known.try_emplace(device);
  if (is_new) found->second = ask_driver(device);
  return found->second ? &*found->second : nullptr;
}

void bind_places_of_current_device(const Plan& plan, void* workspace, GemmParams& params) {
  if (dealt_by_place(plan.problem, plan.device, plan.kernel, plan.scheduler))
    bind_places(plan, workspace, places_of_current_device(plan.device.sm_count), params);
}

}  // namespace sluice
