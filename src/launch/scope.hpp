// Which of a configuration's kernels a call takes. Those that can do all there is are five times as long as short ones, and what a tile
// runs between two main loops lies far apart in them: instructions come late (docs/decisions/0035).
#pragma once

#include "sluice/plan.hpp"

#include "core/groups.hpp"
#include "kernel/gemm_params.cuh"

namespace sluice {

// Short kernels have whole tiles, and D in bf16 by the copy engine with nothing but alpha; of FP8 scales of A for 1 x 128 beside those of B
// for 128 x 128. plain: dealt in fixed turn. groups: of rows, dealt either way. What short kernels do not look at is here, and nowhere
// else. `path`: how this call's D is stored.
inline KernelScope scope_of(const Plan& plan, StorePath path) {
  constexpr int kLargeRows = 256, kMostKTiles = 32;  // beyond, ptxas's main loop is better in the long kernel than in the plain one
  const SchedulerParams& s = plan.scheduler;
  const GemmProblem& p = plan.problem;
  const bool whole = s.kind == SchedulerKind::data_parallel || s.kind == SchedulerKind::one_tile_per_cta;
  const bool stored = path == StorePath::copy_engine && p.type_d == DataType::bf16;
  const bool scaled = !is_fp8(p.type_a) || (p.scaling_a == Scaling::per_vector_128 && p.scaling_b == Scaling::per_block_128);
  if (!whole || !stored || !scaled) return KernelScope::all;
  if (is_grouped(p)) return KernelScope::groups;
  const bool quick = plan.kernel.tile_m < kLargeRows || s.k_tiles <= kMostKTiles;
  return quick && s.claim == WorkClaim::fixed && !has_groups(p) ? KernelScope::plain : KernelScope::all;
}

inline Error not_in_this_build(const KernelConfig& config) {
  return {ErrorCode::unsupported,
          "the plan's kernel " + name(config) + " is not in this build; plan again, `sluice list` shows the kernels"};
}

}  // namespace sluice
