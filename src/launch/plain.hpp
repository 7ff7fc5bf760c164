// Plain products: what most calls are. Kernels that can do all else besides are five times as long, and what a tile runs between
// two main loops lies far apart in them: instructions come late. So some are compiled a second time without it (docs/decisions/0035).
#pragma once

#include "sluice/plan.hpp"

#include "kernel/gemm_params.cuh"

namespace sluice {

// Whole tiles dealt in fixed turn, no groups, D in bf16 by the copy engine with nothing but alpha; of FP8 scales of 1 x 128 that come in
// runs beside those of 128 x 128. What plain kernels do not look at is here, and nowhere else.
inline bool is_plain(const Plan& plan, const GemmParams& params) {
  constexpr int kLargeRows = 256, kMostKTiles = 32;
  const SchedulerParams& s = plan.scheduler;
  const bool whole = s.kind == SchedulerKind::data_parallel || s.kind == SchedulerKind::one_tile_per_cta;
  const bool stored = params.epilogue.path == StorePath::copy_engine && params.epilogue.type_d == DataType::bf16;
  const ScaleParams &p = params.mainloop.scale_p, &q = params.mainloop.scale_q;
  const bool scaled = !is_fp8(plan.kernel.type_a) || (p.runs && !p.anywhere && q.strides.along_k && q.strides.block_shift > 0);
  return whole && s.claim == WorkClaim::fixed && params.groups.grouping == Grouping::none && stored && scaled &&
         (plan.kernel.tile_m < kLargeRows || s.k_tiles <= kMostKTiles);
}

}  // namespace sluice
