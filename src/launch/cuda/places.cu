#include "launch/cuda/places.hpp"

#include <cuda_runtime_api.h>

#include <map>
#include <mutex>
#include <optional>

#include "launch/cuda/clusters_at_once.hpp"
#include "launch/cuda/one_kernel.hpp"

namespace sluice {
namespace {

__global__ void take_an_sm() {}  // if it asks for all shared memory that a CTA may have

std::optional<SmPlaces> ask_driver(int device) {
  int bytes = 0;
  if (cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device) != cudaSuccess ||
      cudaFuncSetAttribute(take_an_sm, cudaFuncAttributeNonPortableClusterSizeAllowed, 1) != cudaSuccess) {
    cudaGetLastError();
    return {};
  }
  return places_by_gpc(current_sm_count(), [bytes](int ctas) {
    const Result<int> clusters = clusters_at_once(reinterpret_cast<const void*>(&take_an_sm), ctas, 32, bytes);
    if (clusters) return *clusters;
    cudaGetLastError();  // or the caller's next check would see it
    return 0;            // the driver does not say
  });
}

}  // namespace

std::optional<SmPlaces> places_of_current_device(int sm_count) {
  static std::mutex mutex;
  static std::map<int, std::optional<SmPlaces>> known;
  int device = 0;
  if (cudaGetDevice(&device) != cudaSuccess || current_sm_count() != sm_count) return {};
  const std::lock_guard lock(mutex);
  const auto [found, is_new] = known.try_emplace(device);
  if (is_new) found->second = ask_driver(device);
  return found->second;
}

}  // namespace sluice
