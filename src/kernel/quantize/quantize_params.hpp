// What a launch passes to a quantize kernel.
#pragma once

#include <cstdint>

#include "core/scale_layout.hpp"

namespace sluice {

struct QuantizeParams {
  const void* x;
  const void* y;
  std::uint8_t* q;
  float* scale;
  std::uint32_t ldx, ldy, ldq;
  ScaleStrides scales;
  std::int32_t m, k;
  std::int32_t strips_in_row;
  std::int32_t waiting_from, waiting_to;  // CTAs that give others a head start (core/quantize_config.hpp)
  bool by_vectors;                        // no vector of x, y or q crosses the end of a row, and all are aligned
  bool power_of_two_scales;
};

}  // namespace sluice
