// Random weights of 4 bits, packed by the library as those of a model would be, and what they are in A's type.
#pragma once

#include <cstddef>
#include <cstdint>

#include <cuda_runtime_api.h>

#include "sluice/types.hpp"

namespace sluice::bench {

// On the GPU, of one matrix. Codes and scales are what the weights are packed from: nothing reads them later.
struct W4Memory {
  std::byte* codes = nullptr;  // padded(n k / 2) bytes
  std::byte* scales = nullptr;
  std::byte* packed = nullptr;
  std::byte* dense = nullptr;  // n x k of `activations`, row-major
};

// n x k, in groups of kBenchW4. Seeds `seed` and the one after it are used up. Scales of three significant bits make weights that bf16
// holds as they are, powers of two such that e4m3 does: packed and dense ones then have the same product, however it is computed.
void make_random_w4(std::int64_t n, std::int64_t k, DataType activations, std::uint64_t seed, const W4Memory& memory, cudaStream_t stream);

}  // namespace sluice::bench
