#include <cuda_runtime_api.h>

#include "sluice/device.hpp"
#include "sluice/kernel_config.hpp"
#include "sluice/kernel_list.hpp"

#include "core/kernel_layout.hpp"
#include "launch/cuda/clusters_at_once.hpp"
#include "launch/cuda/cuda_status.hpp"
#include "launch/cuda/registry.hpp"

namespace sluice {
namespace {

// The built-in device whose rates stand in for the current one's.
const char* resembling(const std::string& name, int sm_count) {
  const auto has = [&](const char* text) { return name.find(text) != std::string::npos; };
  if (has("H200")) return "h200";
  if (has("H20") || sm_count <= 78) return "h20";
  if (has("PCIe") || sm_count <= 114) return "h100-pcie";
  return "h100-sxm";
}

// How many clusters of two fit at once depends on which SMs of a GPU are fused off; the driver knows.
Result<int> clusters_of_two() {
  for (const KernelConfig& config : kernel_list()) {
    if (cluster_size(config) != 2) continue;
    return clusters_at_once(find_gemm_kernel(config), 2, threads_per_cta(config), shared_memory_layout(config).total_bytes);
  }
  return 0;
}

}  // namespace

bool built_with_cuda() { return true; }

Result<DeviceSpec> current_device() {
  int device = 0;
  if (Status s = cuda_status(cudaGetDevice(&device), "no usable GPU"); !s) return s.error();
  cudaDeviceProp properties{};
  if (Status s = cuda_status(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties"); !s) return s.error();
  if (properties.major != 9 || properties.minor != 0)
    return Error{ErrorCode::wrong_device, std::string(properties.name) + " has compute capability " + std::to_string(properties.major) +
                                              "." + std::to_string(properties.minor) + "; the kernels need 9.0 (Hopper)"};
  Result<DeviceSpec> spec = find_device(resembling(properties.name, properties.multiProcessorCount));
  if (!spec) return spec;
  const Result<int> clusters = clusters_of_two();
  if (!clusters) return clusters.error();
  spec->sm_count = properties.multiProcessorCount;
  spec->clusters_of_2 = *clusters;
  spec->shared_memory_per_cta_bytes = static_cast<int>(properties.sharedMemPerBlockOptin);
  spec->l2_bytes = properties.l2CacheSize;
  return spec;
}

}  // namespace sluice
