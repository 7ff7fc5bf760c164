// Grouped products made ready, checked, and timed beside what they are compared with.
#pragma once

#include <vector>

#include "bench/bench.hpp"
#include "bench/device_check.hpp"
#include "bench/device_memory.hpp"
#include "bench/grouped.hpp"
#include "bench/timing.hpp"
#include "sluice/device.hpp"
#include "sluice/run.hpp"

namespace sluice::bench {

class GroupedMeasurement {
 public:
  GroupedMeasurement(const BenchOptions& options, const std::vector<GroupedShape>& shapes, const DeviceSpec& device);

  // A failure of Sluice ends up in `wrong`; what breaks the GPU is thrown.
  GroupedResult measure(const GroupedShape& shape);

 private:
  // A shape's operands, several times over where they would stay in L2.
  struct Operands {
    int sets = 0;
    std::size_t a_bytes = 0, b_bytes = 0, dense_b_bytes = 0, d_bytes = 0, moved_bytes = 0;
  };
  Operands place(const GroupedShape& shape);
  // dense: of weights of 4 bits, what they are in bf16.
  GemmArguments arguments(const GroupedShape& shape, const Operands& operands, int set, bool dense) const;
  void fill_w4(const GroupedShape& shape, const Operands& operands);
  void place_groups(const GroupedShape& shape, const Operands& operands);  // general ones
  Enqueue enqueue(const GroupedShape& shape, const Operands& operands, const Plan& plan);
  std::string verify(const GroupedShape& shape, const Operands& operands, const Plan& plan);
  void time_all(const GroupedShape& shape, const Operands& operands, const Plan& plan, GroupedResult& result);
  void time_candidates(const GroupedShape& shape, const Operands& operands, const Plan& plan, GroupedResult& result);
  void reserve_workspace(const Plan& plan);

  BenchOptions options_;
  DeviceSpec device_;
  DeviceStream stream_;
  DeviceBuffer inputs_, dense_b_, codes_, scales_, outputs_, numbers_, groups_, workspace_;
  DataType filled_ = DataType::fp32;  // what the inputs are now
  DeviceCheck check_;
};

}  // namespace sluice::bench
