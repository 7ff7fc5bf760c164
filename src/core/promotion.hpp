// What FP8 operands add to a kernel's layout.
#pragma once

#include "sluice/kernel_config.hpp"

#include "core/scale_layout.hpp"

namespace sluice {

// Whether sums over kScaleBlockElems of K are promoted: added up, times their scales, in fp32 registers, because the tensor cores keep too
// few bits of longer ones. (Beside weights of 4 bits too, but these bring their scales with them.)
constexpr bool promotes(const KernelConfig& c) { return is_fp8(c.type_b); }
constexpr int scale_blocks_per_stage(const KernelConfig& c) { return promotes(c) ? c.tile_k / kScaleBlockElems : 0; }
// Of a stage: for each of its blocks a scale for each vector of both tiles.
constexpr int scale_bytes(const KernelConfig& c) {
  return scale_blocks_per_stage(c) * (c.tile_m + c.tile_n) * static_cast<int>(sizeof(float));
}

// Whether a consumer warpgroup holds whole blocks of 128 columns of its rows of D, so that it can find their scales.
constexpr bool can_find_scales(const KernelConfig& c) {
  return promotes(c) && !is_short(c) && c.order == OperandOrder::rows_of_a && c.tile_n == kScaleBlockElems;
}

// How many stages cover memory's latency, so that no staging buffers are given up for more. In FP8 a stage of 256 rows is a thousand
// cycles' work; one of 128 x 256 as well, but such tiles are for weights that stream, which want bytes on their way.
constexpr int enough_stages(const KernelConfig& c) {
  constexpr int kLongStageRows = 256;
  return promotes(c) && c.tile_m >= kLongStageRows ? 3 : 4;
}

// The warp of the producers that fetches scales. Each lane arrives when its words have come, and one for what the copy engine brings.
inline constexpr int kScaleWarp = 2;
constexpr int scale_arrivals(const KernelConfig& c) { return promotes(c) ? 32 + 1 : 0; }

}  // namespace sluice
