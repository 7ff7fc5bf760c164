// Samples for histograms, made on the GPU.
#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

namespace sluice::bench {

enum class SampleLaw : std::uint8_t {
  uniform,
  zipf,   // bin b with probability in proportion to 1 / (b + 1)
  equal,  // all of them one value
};

// `n` integers in [0, bins). `cumulative` has `bins` numbers on the device, the last 1: for zipf, the chance of that bin or one before.
void fill_samples(std::int32_t* samples, std::int64_t n, std::int64_t bins, SampleLaw law, const float* cumulative, std::uint64_t seed,
                  cudaStream_t stream);

}  // namespace sluice::bench
