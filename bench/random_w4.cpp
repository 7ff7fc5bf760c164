#include "bench/random_w4.hpp"

#include "bench/device_memory.hpp"
#include "bench/device_random.hpp"
#include "bench/device_w4.hpp"
#include "bench/sizing.hpp"
#include "sluice/w4.hpp"

namespace sluice::bench {

void make_random_w4(std::int64_t n, std::int64_t k, DataType activations, std::uint64_t seed, const W4Memory& memory, cudaStream_t stream) {
  const PackW4Problem packing{.n = n, .k = k, .format = kBenchW4, .type = activations, .type_scales = kCodeScales};
  const std::int64_t scales = n * w4_groups(k, kBenchW4);
  fill_random_bytes(memory.codes, padded(static_cast<std::size_t>(n * k) / 2), seed, stream);
  fill_random(memory.scales, kCodeScales, {.length = scales, .pitch = scales},
              is_fp8(activations) ? Distribution::powers_of_two : Distribution::few_bits, seed + 1, stream, kWeightScale);
  const Status packed = pack_w4(packing, {.codes = memory.codes, .scales = memory.scales, .packed = memory.packed}, stream);
  if (!packed) throw DeviceFailure(packed.error().message);
  dequantise(memory.codes, memory.scales, n, k, kBenchW4.group_size, activations, memory.dense, stream);
}

}  // namespace sluice::bench
