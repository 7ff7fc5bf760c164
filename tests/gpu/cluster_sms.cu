#include "cluster_sms.hpp"

#include <stdexcept>

namespace sluice::gpu_tests {
namespace {

constexpr int kSharedBytes = 227 * 1024;  // the most of a CTA: no other fits beside it

__global__ void note_sm(int* sms) {
  int sm;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
  if (threadIdx.x == 0) sms[blockIdx.x] = sm;
  for (int i = 0; i < 100; ++i) __nanosleep(1000);  // until the others are there
}

void check(cudaError_t status) {
  if (status != cudaSuccess) throw std::runtime_error(cudaGetErrorString(status));
}

}  // namespace

std::vector<std::vector<int>> sms_of_clusters(int ctas) {
  check(cudaFuncSetAttribute(note_sm, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes));
  check(cudaFuncSetAttribute(note_sm, cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim = {static_cast<unsigned>(ctas), 1, 1};
  cudaLaunchConfig_t config{};
  config.gridDim = {static_cast<unsigned>(ctas), 1, 1};
  config.blockDim = {32, 1, 1};
  config.dynamicSmemBytes = kSharedBytes;
  config.attrs = &attribute;
  config.numAttrs = 1;
  int clusters = 0;
  check(cudaOccupancyMaxActiveClusters(&clusters, note_sm, &config));
  if (clusters == 0) return {};
  config.gridDim.x = static_cast<unsigned>(clusters * ctas);
  int* sms = nullptr;
  check(cudaMallocManaged(&sms, sizeof(int) * config.gridDim.x));
  check(cudaLaunchKernelEx(&config, note_sm, sms));
  check(cudaDeviceSynchronize());
  std::vector<std::vector<int>> all;
  for (int i = 0; i < clusters; ++i) all.emplace_back(sms + i * ctas, sms + (i + 1) * ctas);
  check(cudaFree(sms));
  return all;
}

}  // namespace sluice::gpu_tests
