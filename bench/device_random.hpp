// Random operands, made on the GPU.
#pragma once

#include <cstddef>
#include <cstdint>

#include <cuda_runtime_api.h>

#include "sluice/types.hpp"

namespace sluice::bench {

// A matrix, or a batch of them, in memory: `vectors` runs of `length` adjacent elements, `pitch` elements apart.
struct Extent {
  std::int64_t vectors = 1;
  std::int64_t length = 0;
  std::int64_t pitch = 0;
  std::int64_t batch = 1;
  std::int64_t batch_stride = 0;
};

enum class Distribution : std::uint8_t {
  normal,          // nearly: the sum of four uniform numbers, mean 0, standard deviation 1
  small_integers,  // from -4 to 4: sums of their products are exact in fp32
  positive,        // uniform, from 0.5 to 1.5
  powers_of_two,   // 1/4, 1/2, 1, 2, 4
  few_bits,        // 1, 1.25, 1.5, 1.75 and their halves: times a number of four bits, a bf16
};

// Times this, the largest normal numbers (2 sqrt(3), so 443 of e4m3's 448) are near the largest of the type. 1 for 16 and 32 bits.
constexpr float spread(DataType type) { return type == DataType::e4m3 ? 0x1p7f : type == DataType::e5m2 ? 0x1p14f : 1.0f; }

// Elements outside the extent are left alone. The same seed gives the same numbers, times `scale`.
void fill_random(void* memory, DataType type, const Extent& extent, Distribution distribution, std::uint64_t seed, cudaStream_t stream,
                 float scale = 1);

// Any bytes; `bytes` is a multiple of 8.
void fill_random_bytes(void* memory, std::size_t bytes, std::uint64_t seed, cudaStream_t stream);

}  // namespace sluice::bench
