#include "bench/stream_copy.hpp"

#include "bench/device_memory.hpp"

namespace sluice::bench {
namespace {

constexpr int kThreads = 256, kVectors = 8;  // 16 bytes each, all on their way before the first is used
static_assert(kCopyGrain == std::size_t{kThreads} * kVectors * sizeof(uint4));

template <CopyHint hint>
__device__ uint4 load(const uint4* from) {
  return hint == CopyHint::streaming ? __ldcs(from) : *from;
}
template <CopyHint hint>
__device__ void store(uint4* to, uint4 value) {
  if (hint == CopyHint::streaming)
    __stcs(to, value);
  else
    *to = value;
}

template <int reads_per_write, CopyHint hint>
__global__ void __launch_bounds__(kThreads) copy(const uint4* from, uint4* to) {
  cudaTriggerProgrammaticLaunchCompletion();
  cudaGridDependencySynchronize();
  constexpr int kWrites = kVectors / reads_per_write;
  const std::size_t block = blockIdx.x;
  from += block * kThreads * kVectors + threadIdx.x;
  to += block * kThreads * kWrites + threadIdx.x;
  uint4 held[kVectors];
#pragma unroll
  for (int v = 0; v < kVectors; ++v) held[v] = load<hint>(from + v * kThreads);
#pragma unroll
  for (int w = 0; w < kWrites; ++w) {
    uint4 value = held[w];
#pragma unroll
    for (int v = w + kWrites; v < kVectors; v += kWrites)
      value = {value.x ^ held[v].x, value.y ^ held[v].y, value.z ^ held[v].z, value.w ^ held[v].w};
    store<hint>(to + w * kThreads, value);
  }
}

template <int reads_per_write>
void launch(const void* from, void* to, std::size_t read_bytes, CopyHint hint, cudaStream_t stream) {
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = {static_cast<unsigned>(read_bytes / kCopyGrain), 1, 1};
  config.blockDim = {kThreads, 1, 1};
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = 1;
  const auto kernel = hint == CopyHint::streaming ? copy<reads_per_write, CopyHint::streaming> : copy<reads_per_write, CopyHint::none>;
  check(cudaLaunchKernelEx(&config, kernel, static_cast<const uint4*>(from), static_cast<uint4*>(to)), "copying");
}

}  // namespace

void stream_copy(const void* from, void* to, std::size_t read_bytes, int reads_per_write, CopyHint hint, cudaStream_t stream) {
  if (read_bytes == 0 || read_bytes % kCopyGrain != 0) throw DeviceFailure("stream_copy: the bytes are no multiple of kCopyGrain");
  switch (reads_per_write) {
    case 1:
      return launch<1>(from, to, read_bytes, hint, stream);
    case 2:
      return launch<2>(from, to, read_bytes, hint, stream);
    case 4:
      return launch<4>(from, to, read_bytes, hint, stream);
    case 8:
      return launch<8>(from, to, read_bytes, hint, stream);
    default:
      throw DeviceFailure("stream_copy: no kernel reads so many times what it writes");
  }
}

}  // namespace sluice::bench
