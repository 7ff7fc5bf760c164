// What a launch passes to a GEMM kernel about weights of 4 bits: core/w4_layout.hpp.
#pragma once

#include <cstdint>

namespace sluice {

struct W4Params {
  std::int32_t slab_bytes;
  std::int32_t slabs;        // of a block, along K
  std::int32_t blocks;       // of the matrix
  std::int32_t group_shift;  // 32 elements of K number h of a slab are of its group h >> group_shift
  std::int32_t zero_offset;  // where a slab's zero points begin; 0: it has none
  // Of streaming kernels: core/streaming_layout.hpp.
  std::int32_t log2_team_warps;
  std::int32_t log2_slabs_of_arrival;
  bool far_ahead;
};

}  // namespace sluice
