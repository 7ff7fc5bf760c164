#include "bench/floor_measurement.hpp"

#include <algorithm>

#include "bench/device_random.hpp"
#include "bench/sizing.hpp"
#include "bench/stream.hpp"
#include "bench/timing.hpp"

namespace sluice::bench {
namespace {}  // namespace

FloorMeasurement::FloorMeasurement(const BenchOptions& options, const std::vector<std::size_t>& sizes, const DeviceSpec& device)
    : options_(options), l2_bytes_(static_cast<std::size_t>(device.l2_bytes)) {
  std::size_t most = 0;
  for (const std::size_t bytes : sizes) most = std::max(most, padded(bytes) * static_cast<std::size_t>(regions_for(bytes)));
  data_ = DeviceBuffer(most);
  fill_random_bytes(data_.data(), most, 1, stream_);
  stream_.synchronize("filling memory with random bytes");
}

// By the time a region comes round again, nothing of it is left in L2.
int FloorMeasurement::regions_for(std::size_t bytes) const {
  constexpr std::size_t kMost = 1024;
  return static_cast<int>(std::clamp<std::size_t>(sets_past_cache(padded(bytes), l2_bytes_), 2, kMost));
}

FloorResult FloorMeasurement::measure(std::size_t bytes) {
  FloorResult result{.bytes = bytes, .timing = {}, .rotating_regions = regions_for(bytes)};
  const Enqueue read = [this, bytes](int region, cudaStream_t stream) {
    stream_through(data_.data() + static_cast<std::size_t>(region) * padded(bytes), bytes, stream);
  };
  const double estimate = estimate_us(read, result.rotating_regions, stream_);
  const int launches = launches_for(estimate, result.rotating_regions, kGraphUs);
  const Graph graph = make_graph(read, result.rotating_regions, launches, stream_);
  const int rounds = rounds_within(options_.seconds_per_shape, launches * estimate, options_.rounds);
  constexpr int kReplays = 50;  // an idle GPU has lowered its clocks
  for (int i = 0; i < kReplays; ++i) graph.launch(stream_);
  result.timing = time_in_turns({&graph}, launches, rounds, stream_).front();
  return result;
}

}  // namespace sluice::bench
