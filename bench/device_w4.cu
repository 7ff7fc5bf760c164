#include "bench/device_w4.hpp"

#include <algorithm>

#include <cuda_bf16.h>

#include "bench/device_memory.hpp"

namespace sluice::bench {
namespace {

constexpr int kThreads = 256;
constexpr int kCodes = 8;  // a thread's: 4 bytes become 16
constexpr int kMiddleCode = 8;

struct alignas(16) Weights {
  __nv_bfloat16 elements[kCodes];
};

__global__ void dequantise_all(const std::uint32_t* codes, const __nv_bfloat16* scales, std::int64_t words, std::int64_t k, int group_size,
                               Weights* dense) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  const std::int64_t groups = (k + group_size - 1) / group_size;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < words; i += step) {
    const std::int64_t row = i * kCodes / k, column = i * kCodes - row * k;  // no word has codes of two groups: these are of 32 or more
    const float scale = __bfloat162float(scales[row * groups + column / group_size]);
    Weights weights;
#pragma unroll
    for (int e = 0; e < kCodes; ++e) {
      const int code = static_cast<int>(codes[i] >> (4 * e) & 15);
      weights.elements[e] = __float2bfloat16_rn(static_cast<float>(code - kMiddleCode) * scale);
    }
    dense[i] = weights;
  }
}

}  // namespace

void dequantise(const void* codes, const void* scales, std::int64_t n, std::int64_t k, int group_size, void* dense, cudaStream_t stream) {
  const std::int64_t words = n * k / kCodes;
  if (words == 0) return;
  const auto blocks = static_cast<unsigned>(std::min<std::int64_t>((words + kThreads - 1) / kThreads, 132 * 32));
  dequantise_all<<<blocks, kThreads, 0, stream>>>(static_cast<const std::uint32_t*>(codes), static_cast<const __nv_bfloat16*>(scales),
                                                  words, k, group_size, static_cast<Weights*>(dense));
  check(cudaGetLastError(), "dequantising weights");
}

}  // namespace sluice::bench
