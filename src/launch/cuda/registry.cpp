#include "launch/cuda/registry.hpp"

#include "kernel/kernel_entry.hpp"
#include "launch/kernel_map.hpp"

namespace sluice {

const void* find_gemm_kernel(const KernelConfig& config) {
  static const KernelMap<const void*> kernels([]<KernelConfig listed>() { return gemm_kernel_entry<listed>(); });
  return kernels.find(config);
}

}  // namespace sluice
