// What weights of 4 bits are, worked out on the GPU.
#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

#include "sluice/types.hpp"

namespace sluice::bench {

// Codes less 8 are 4.6 in the root mean square, and Distribution::few_bits is 1.1: this makes weights of about 1.
inline constexpr float kWeightScale = 0.25f;

// Codes and scales as pack_w4() takes plain ones, without zero points; the scales are bf16. `dense` becomes n rows of k numbers of `type`,
// bf16 or e4m3. k is a multiple of 8, codes are aligned to 4 bytes, `dense` to 16.
void dequantise(const void* codes, const void* scales, std::int64_t n, std::int64_t k, int group_size, DataType type, void* dense,
                cudaStream_t stream);

}  // namespace sluice::bench
