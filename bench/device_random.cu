#include "bench/device_random.hpp"

#include <algorithm>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include "bench/device_memory.hpp"

namespace sluice::bench {
namespace {

// Steele, Lea, Flood: Fast splittable pseudorandom number generators (2014), the finaliser of SplitMix64.
__device__ std::uint64_t hash(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

__device__ float draw(std::uint64_t bits, Distribution distribution) {
  if (distribution == Distribution::small_integers) return static_cast<float>(static_cast<int>(bits % 9) - 4);
  if (distribution == Distribution::positive) return 0.5f + static_cast<float>(bits >> 40) * 0x1p-24f;
  if (distribution == Distribution::powers_of_two) return ldexpf(1.0f, static_cast<int>(bits % 5) - 2);
  if (distribution == Distribution::few_bits) return (1.0f + 0.25f * static_cast<float>(bits % 4)) * (bits % 8 < 4 ? 1.0f : 0.5f);
  // Four numbers of 16 bits: each has variance 1/12, their sum 1/3.
  const auto sum = static_cast<float>((bits & 0xffff) + (bits >> 16 & 0xffff) + (bits >> 32 & 0xffff) + (bits >> 48));
  return (sum * (1.0f / 65536.0f) - 2.0f) * 1.7320508f;
}

template <class T>
__global__ void fill(T* memory, Extent extent, Distribution distribution, std::uint64_t seed, float scale) {
  const std::int64_t total = extent.vectors * extent.length * extent.batch;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < total; i += step) {
    const std::int64_t vector = i / extent.length;
    const std::int64_t group = vector / extent.vectors;
    const std::int64_t at = group * extent.batch_stride + (vector - group * extent.vectors) * extent.pitch + (i - vector * extent.length);
    memory[at] = static_cast<T>(scale * draw(hash(seed * 0xd1342543de82ef95ull + static_cast<std::uint64_t>(i)), distribution));
  }
}

__global__ void fill_bytes(std::uint64_t* memory, std::int64_t words, std::uint64_t seed) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < words; i += step)
    memory[i] = hash(seed * 0xd1342543de82ef95ull + static_cast<std::uint64_t>(i));
}

constexpr int kThreads = 256;
int blocks_for(std::int64_t work) { return static_cast<int>(std::min<std::int64_t>((work + kThreads - 1) / kThreads, 132 * 32)); }

}  // namespace

void fill_random(void* memory, DataType type, const Extent& extent, Distribution distribution, std::uint64_t seed, cudaStream_t stream,
                 float scale) {
  const std::int64_t total = extent.vectors * extent.length * extent.batch;
  if (total <= 0) return;
  const int blocks = blocks_for(total);
  switch (type) {
    case DataType::bf16:
      fill<<<blocks, kThreads, 0, stream>>>(static_cast<__nv_bfloat16*>(memory), extent, distribution, seed, scale);
      break;
    case DataType::fp16:
      fill<<<blocks, kThreads, 0, stream>>>(static_cast<__half*>(memory), extent, distribution, seed, scale);
      break;
    case DataType::fp32:
      fill<<<blocks, kThreads, 0, stream>>>(static_cast<float*>(memory), extent, distribution, seed, scale);
      break;
    case DataType::e4m3:
      fill<<<blocks, kThreads, 0, stream>>>(static_cast<__nv_fp8_e4m3*>(memory), extent, distribution, seed, scale);
      break;
    case DataType::e5m2:
      fill<<<blocks, kThreads, 0, stream>>>(static_cast<__nv_fp8_e5m2*>(memory), extent, distribution, seed, scale);
      break;
    case DataType::int4:
      throw DeviceFailure("int4 is no type of single elements: draw codes as bytes, and pack them");
  }
  check(cudaGetLastError(), "filling an operand with random numbers");
}

void fill_random_bytes(void* memory, std::size_t bytes, std::uint64_t seed, cudaStream_t stream) {
  const auto words = static_cast<std::int64_t>(bytes / sizeof(std::uint64_t));
  if (words == 0) return;
  fill_bytes<<<blocks_for(words), kThreads, 0, stream>>>(static_cast<std::uint64_t*>(memory), words, seed);
  check(cudaGetLastError(), "filling memory with random bytes");
}

}  // namespace sluice::bench
