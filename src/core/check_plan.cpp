#include "core/check_plan.hpp"

#include <cstdint>
#include <limits>
#include <string>

#include "core/check_arguments.hpp"
#include "core/check_scheduler.hpp"
#include "core/general_groups.hpp"
#include "core/groups.hpp"
#include "core/kernel_layout.hpp"

namespace sluice {
namespace {

Error inconsistent(const std::string& what) {
  return {ErrorCode::invalid_argument, "the plan does not fit together: " + what + "; make it with plan()"};
}

std::string product(std::int64_t count, std::int64_t size) { return std::to_string(count) + " x " + std::to_string(size); }

bool tiles_cover(std::int64_t tiles, std::int64_t tile_elems, std::int64_t extent) { return tiles >= 0 && tiles * tile_elems >= extent; }

}  // namespace

Status check_plan(const Plan& plan) {
  const GemmProblem& p = plan.problem;
  const KernelConfig& kernel = plan.kernel;
  const SchedulerParams& s = plan.scheduler;
  if (is_empty(p)) return Nothing{};

  if (kernel.tile_m <= 0 || kernel.tile_n <= 0 || kernel.tile_k <= 0 || kernel.cluster_m <= 0 || kernel.cluster_n <= 0)
    return inconsistent("its kernel has a tile or cluster size of 0 or less");
  if (s.cluster_m != kernel.cluster_m || s.cluster_n != kernel.cluster_n)
    return inconsistent("the scheduler's cluster is " + product(s.cluster_m, s.cluster_n) + ", the kernel's " +
                        product(kernel.cluster_m, kernel.cluster_n));
  if (s.tiles_m % s.cluster_m != 0 || s.tiles_n % s.cluster_n != 0)
    return inconsistent(product(s.tiles_m, s.tiles_n) + " tiles are not whole clusters of " + product(s.cluster_m, s.cluster_n));
  if (s.cohort <= 0) return inconsistent("cohort = " + std::to_string(s.cohort) + " must be at least 1");
  if (!tiles_cover(s.tiles_m, kernel.tile_m, p.m))
    return inconsistent(product(s.tiles_m, kernel.tile_m) + " rows of tiles do not cover m = " + std::to_string(p.m));
  if (!tiles_cover(s.tiles_n, kernel.tile_n, p.n))
    return inconsistent(product(s.tiles_n, kernel.tile_n) + " columns of tiles do not cover n = " + std::to_string(p.n));
  if (!tiles_cover(s.k_tiles, kernel.tile_k, reads_a_and_b(p) ? p.k : 0))
    return inconsistent(product(s.k_tiles, kernel.tile_k) + " elements of k-tiles do not cover k = " + std::to_string(p.k));
  if (!is_grouped(p) && s.groups != p.batch)
    return inconsistent("groups = " + std::to_string(s.groups) + ", but batch = " + std::to_string(p.batch));
  if (is_grouped(p) && (s.groups != 1 || s.stream_k_regions != 1 || s.kind == SchedulerKind::one_tile_per_cta ||
                        s.reduction != Reduction::workspace || (s.kind == SchedulerKind::split_k && s.claim == WorkClaim::fixed)))
    return inconsistent("its schedule is none for groups, whose tiles only the device can count");
  if ((is_grouped(p) && !computes_groups(kernel)) || (is_grouped_along_k(p) && !computes_groups_along_k(kernel)) ||
      (is_general(p) && !computes_general_groups(kernel)))
    return inconsistent("its kernel, " + name(kernel) + ", cannot find out what such groups are");
  if ((is_grouped_along_k(p) || is_general(p)) && s.kind != SchedulerKind::data_parallel && s.kind != SchedulerKind::one_tile_per_cta)
    return inconsistent("its schedule is none for " + std::string(to_string(p.grouping)) +
                        " groups, whose k-tiles only the device can count");
  if (finds_scales(p) && !can_find_scales(kernel))
    return inconsistent("scaling_d = 1x128, but no warpgroup of " + name(kernel) + " holds 128 columns of its rows");
  if (finds_scales(p) && s.reduction != Reduction::workspace)
    return inconsistent(std::string("scaling_d = 1x128, but reduction = ") + to_string(s.reduction) + " leaves nobody with a whole tile");
  const std::int32_t rows = s.tiles_m / s.cluster_m, columns = s.tiles_n / s.cluster_n;
  const double work_tiles = static_cast<double>(rows) * columns * s.groups;
  if (work_tiles > std::numeric_limits<std::int32_t>::max()) return inconsistent("more than 2^31 work tiles");
  if (plan.worker_count <= 0 || plan.worker_count % workers_per_cta(kernel) != 0)
    return inconsistent("worker_count = " + std::to_string(plan.worker_count) + " must be a positive multiple of " +
                        std::to_string(workers_per_cta(kernel)));
  if (Status c = check_scheduler(s, plan.worker_count / workers_per_cta(kernel)); !c) return inconsistent(c.error().message);
  return Nothing{};
}

}  // namespace sluice
