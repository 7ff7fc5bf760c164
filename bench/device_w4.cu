#include "bench/device_w4.hpp"

#include <algorithm>

#include <cuda_bf16.h>
#include <cuda_fp8.h>

#include "bench/device_memory.hpp"

namespace sluice::bench {
namespace {

constexpr int kThreads = 256;
constexpr int kCodes = 8;  // a thread's: 4 bytes become 16
constexpr int kMiddleCode = 8;

template <class Weight>
struct alignas(kCodes * sizeof(Weight)) Weights {
  Weight elements[kCodes];
};

template <class Weight>
__global__ void dequantise_all(const std::uint32_t* codes, const __nv_bfloat16* scales, std::int64_t words, std::int64_t k, int group_size,
                               Weights<Weight>* dense) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  const std::int64_t groups = (k + group_size - 1) / group_size;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < words; i += step) {
    const std::int64_t row = i * kCodes / k, column = i * kCodes - row * k;  // no word has codes of two groups: these are of 32 or more
    const float scale = __bfloat162float(scales[row * groups + column / group_size]);
    Weights<Weight> weights;
#pragma unroll
    for (int e = 0; e < kCodes; ++e) {
      const int code = static_cast<int>(codes[i] >> (4 * e) & 15);
      weights.elements[e] = static_cast<Weight>(static_cast<float>(code - kMiddleCode) * scale);
    }
    dense[i] = weights;
  }
}

}  // namespace

void dequantise(const void* codes, const void* scales, std::int64_t n, std::int64_t k, int group_size, DataType type, void* dense,
                cudaStream_t stream) {
  const std::int64_t words = n * k / kCodes;
  if (words == 0) return;
  const auto blocks = static_cast<unsigned>(std::min<std::int64_t>((words + kThreads - 1) / kThreads, 132 * 32));
  const auto launch = [&]<class Weight>(Weights<Weight>* to) {
    dequantise_all<<<blocks, kThreads, 0, stream>>>(static_cast<const std::uint32_t*>(codes), static_cast<const __nv_bfloat16*>(scales),
                                                    words, k, group_size, to);
  };
  if (type == DataType::e4m3)
    launch(static_cast<Weights<__nv_fp8_e4m3>*>(dense));
  else
    launch(static_cast<Weights<__nv_bfloat16>*>(dense));
  check(cudaGetLastError(), "dequantising weights");
}

}  // namespace sluice::bench
