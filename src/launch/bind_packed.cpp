#include "launch/bind_packed.hpp"

#include <cstdint>

#include "core/dequantisation.hpp"
#include "core/leaves_first.hpp"
#include "core/streaming_layout.hpp"
#include "core/w4_layout.hpp"

namespace sluice {

void bind_packed(const Plan& plan, const GemmArguments& arguments, MainloopParams& params) {
  constexpr int kHalfElems = 32;
  const GemmProblem& p = plan.problem;
  const int slab_bytes = w4_slab_bytes(p.w4), groups = w4_groups_per_slab(p.w4);
  OperandParams& b = params.p;
  b.policy = b_leaves_first(plan) ? arch::CachePolicy::evict_first : arch::CachePolicy::evict_normal;
  b.data = arguments.b;
  b.batch_stride_elems = p.batch_stride_b;
  b.vectors = static_cast<std::int32_t>(p.n);
  b.stage_bytes = packed_stage_bytes(plan.kernel, p.w4);
  b.constant = p.constant_b;
  params.w4.slab_bytes = slab_bytes;
  params.w4.slabs = static_cast<std::int32_t>(w4_slabs(p.k));
  params.w4.blocks = static_cast<std::int32_t>(w4_blocks(p.n));
  while (kHalfElems << params.w4.group_shift < w4_elems_per_scale(p.w4)) ++params.w4.group_shift;
  if (streams(plan.kernel)) {
    const int shares = streaming_shares(plan.kernel);
    const std::int64_t strips = shares * strips_finished(plan.scheduler.tiles_n, plan.grid_ctas);
    const std::int64_t slabs = longest_share(plan.scheduler.k_tiles, shares);
    params.w4.log2_team_warps = log2_streaming_team(strips);
    params.w4.far_ahead = asks_far_ahead(strips, slabs);
    params.w4.log2_slabs_of_arrival = log2_slabs_of_arrival(slabs);
  }
  params.w4.zero_offset = p.w4.zero_points ? kW4CodeBytes + groups * kW4ScaleBytes : 0;
}

}  // namespace sluice
