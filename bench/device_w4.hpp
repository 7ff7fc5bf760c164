// What weights of 4 bits are, worked out on the GPU.
#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

namespace sluice::bench {

// Codes and scales as pack_w4() takes plain ones, without zero points; the scales are bf16. `dense` becomes n rows of k numbers of bf16.
// k is a multiple of 8, codes are aligned to 4 bytes, `dense` to 16.
void dequantise(const void* codes, const void* scales, std::int64_t n, std::int64_t k, int group_size, void* dense, cudaStream_t stream);

}  // namespace sluice::bench
