// What launches for general groups pass: to the kernel that prepares them, and to the product.
#pragma once

#include <cstdint>

#include "core/general_groups.hpp"
#include "kernel/gemm_params.cuh"
#include "scheduler/general_groups.hpp"

namespace sluice {

// What the copy engine and the epilogue must know of one group, in the workspace.
struct alignas(128) PreparedGroup {
  arch::TensorMap p, q;
  EpilogueParams epilogue;  // with D's maps in front
  ScaleParams scale_p, scale_q;
};
static_assert(sizeof(PreparedGroup) == kPreparedGroupBytes && offsetof(PreparedGroup, epilogue) % 128 == 0);
static_assert(sizeof(GroupSizes) == kGroupSizesBytes);

struct GeneralGroups {
  const GroupArguments* arguments;
  GroupSizes* sizes;
  PreparedGroup* prepared;
  std::int32_t count;
  GroupLimits limits;
  TileSizes tile;
  ScaleForm scales_a, scales_b;
  std::int32_t operand_bytes;  // of an element of A and B, and of C and D
  std::int32_t result_bytes;
  bool swapped;        // B is P
  bool stores_chunks;  // whether D's boxes are any of map_d, and any of map_d_rest
  bool stores_rest;
};

// The maps in the first part are those of no group: templates, from which each group's are made.
struct GeneralGemmParams : GemmParams {
  GeneralGroups general;
};

}  // namespace sluice
