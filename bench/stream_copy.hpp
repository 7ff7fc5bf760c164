// As fast as memory goes: reads so many bytes and writes some of what they hold, the roof for what passes over data once.
#pragma once

#include <cstddef>
#include <cstdint>

#include <cuda_runtime_api.h>

namespace sluice::bench {

enum class CopyHint : std::uint8_t { none, streaming };

// Reads `reads_per_write` times as many bytes as it writes: 1, 2, 4 or 8. Launched as quantize() is, so that launches overlap as much.
// `read_bytes` must be a multiple of kCopyGrain, pointers of 16. Throws DeviceFailure.
inline constexpr std::size_t kCopyGrain = std::size_t{256} * 8 * 16;
void stream_copy(const void* from, void* to, std::size_t read_bytes, int reads_per_write, CopyHint hint, cudaStream_t stream);

}  // namespace sluice::bench
