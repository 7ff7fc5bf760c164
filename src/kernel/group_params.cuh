// What a launch passes to a GEMM kernel about groups whose sizes only the device knows.
#pragma once

#include <cstdint>

#include "sluice/grouping.hpp"

namespace sluice {

struct GroupParams {
  Grouping grouping;
  std::int32_t count;
  std::int32_t extent;  // m, or k of groups along K: what the sizes are held to
  const std::int32_t* sizes;
};

}  // namespace sluice
