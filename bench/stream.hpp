// What memory alone takes.
#pragma once

#include <cstddef>

#include <cuda_runtime_api.h>

namespace sluice::bench {

// Reads `bytes` (rounded down to 16) into shared memory with bulk copies and does nothing with them: a plain launch that fills the device.
void stream_through(const void* data, std::size_t bytes, cudaStream_t stream);

}  // namespace sluice::bench
