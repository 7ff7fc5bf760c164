// The times of bench/floor.hpp, on the GPU.
#pragma once

#include <cstddef>
#include <vector>

#include "bench/bench.hpp"
#include "bench/device_memory.hpp"
#include "bench/floor.hpp"
#include "sluice/device.hpp"

namespace sluice::bench {

class FloorMeasurement {
 public:
  // Memory for all of the sizes is taken at once.
  FloorMeasurement(const BenchOptions& options, const std::vector<std::size_t>& sizes, const DeviceSpec& device);
  FloorResult measure(std::size_t bytes);

 private:
  int regions_for(std::size_t bytes) const;

  BenchOptions options_;
  std::size_t l2_bytes_;
  DeviceStream stream_;
  DeviceBuffer data_;
};

}  // namespace sluice::bench
