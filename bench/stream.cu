#include "bench/stream.hpp"

#include <cstdint>

#include <cuda/ptx>

#include "bench/device_memory.hpp"

namespace sluice::bench {
namespace {

constexpr int kStages = 12;
constexpr std::uint32_t kStageBytes = 16384;
constexpr int kCtas = 132;  // of an H100 or H200 SXM; on others a few more than SMs do no harm

// One thread a CTA asks for every 132nd stage, a ring of them ahead.
__global__ void __launch_bounds__(32) read_all(const unsigned char* data, std::size_t bytes) {
  namespace ptx = cuda::ptx;
  extern __shared__ __align__(128) unsigned char ring[];
  __shared__ std::uint64_t full[kStages];
  if (threadIdx.x != 0) return;
  for (std::uint64_t& barrier : full) ptx::mbarrier_init(&barrier, 1);
  ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
  const auto mine = [&](std::size_t i) { return (i * gridDim.x + blockIdx.x) * kStageBytes; };
  std::size_t asked = 0;
  for (std::size_t done = 0; mine(done) < bytes; ++done) {
    for (; asked < done + kStages && mine(asked) < bytes; ++asked) {
      const std::size_t left = bytes - mine(asked);
      const std::uint32_t size = left < kStageBytes ? static_cast<std::uint32_t>(left / 16 * 16) : kStageBytes;
      std::uint64_t* const barrier = &full[asked % kStages];
      ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, barrier, size);
      if (size > 0)
        ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, ring + asked % kStages * kStageBytes, data + mine(asked), size, barrier);
    }
    while (!ptx::mbarrier_try_wait_parity(&full[done % kStages], static_cast<std::uint32_t>(done / kStages & 1))) {}
  }
}

}  // namespace

void stream_through(const void* data, std::size_t bytes, cudaStream_t stream) {
  constexpr int kRingBytes = kStages * static_cast<int>(kStageBytes);
  check(cudaFuncSetAttribute(read_all, cudaFuncAttributeMaxDynamicSharedMemorySize, kRingBytes), "reserving shared memory");
  read_all<<<kCtas, 32, kRingBytes, stream>>>(static_cast<const unsigned char*>(data), bytes);
  check(cudaGetLastError(), "streaming through memory");
}

}  // namespace sluice::bench
