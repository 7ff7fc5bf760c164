#include "bench/device_memory.hpp"
#include "bench/histogram_samples.hpp"

namespace sluice::bench {
namespace {

constexpr int kThreads = 256, kCtas = 4096;

// SplitMix64's finaliser: each number of a counter gives 64 bits that look drawn.
__device__ std::uint64_t scramble(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

__device__ std::int64_t first_not_below(const float* cumulative, std::int64_t bins, float share) {
  std::int64_t low = 0, high = bins - 1;
  while (low < high) {
    const std::int64_t middle = (low + high) / 2;
    if (cumulative[middle] < share)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

__global__ void __launch_bounds__(kThreads)
    fill(std::int32_t* samples, std::int64_t n, std::int64_t bins, SampleLaw law, const float* cumulative, std::uint64_t seed) {
  for (std::int64_t i = blockIdx.x * std::int64_t{kThreads} + threadIdx.x; i < n; i += std::int64_t{kThreads} * kCtas) {
    const std::uint64_t draw = scramble(scramble(seed) + static_cast<std::uint64_t>(i)) >> 32;
    std::int64_t bin = bins / 2;
    if (law == SampleLaw::uniform) bin = static_cast<std::int64_t>(draw * static_cast<std::uint64_t>(bins) >> 32);
    if (law == SampleLaw::zipf) bin = first_not_below(cumulative, bins, (static_cast<float>(draw) + 0.5f) * 0x1p-32f);
    samples[i] = static_cast<std::int32_t>(bin);
  }
}

}  // namespace

void fill_samples(std::int32_t* samples, std::int64_t n, std::int64_t bins, SampleLaw law, const float* cumulative, std::uint64_t seed,
                  cudaStream_t stream) {
  fill<<<kCtas, kThreads, 0, stream>>>(samples, n, bins, law, cumulative, seed);
  check(cudaGetLastError(), "drawing samples");
}

}  // namespace sluice::bench
