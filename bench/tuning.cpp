#include "bench/tuning.hpp"

#include <algorithm>

namespace sluice::bench {

PlanOptions only(const Candidate& candidate, PlanOptions options) {
  const SchedulerParams& s = candidate.scheduler;
  options.kernel_name = name(candidate.kernel);
  options.scheduler = s.kind;
  if (s.kind == SchedulerKind::split_k) {
    options.splits = s.splits;
    options.reduction = s.reduction;
    options.lead = s.lead > 0 ? s.lead : -1;
  }
  if (s.kind > SchedulerKind::data_parallel) options.min_k_tiles = s.min_k_tiles;
  options.keep_candidates = false;
  return options;
}

Result<TunedPlan> tuned_plan(const ShapeResult& result, const GemmProblem& problem, const DeviceSpec& device) {
  const auto right = [](const KernelTiming& kernel) { return kernel.wrong.empty() && kernel.timing.us > 0; };
  const auto best = std::find_if(result.kernels.begin(), result.kernels.end(), right);  // fastest first
  const auto chosen = std::find_if(result.kernels.begin(), result.kernels.end(),
                                   [](const KernelTiming& kernel) { return kernel.candidate.verdict == CandidateVerdict::chosen; });
  if (best == result.kernels.end() || chosen == result.kernels.end() || chosen->timing.us <= 0)
    return Error{ErrorCode::internal, to_string(result.shape) + ": no candidate could be timed and gave a right result"};
  Result<Plan> made = plan(problem, device, only(best->candidate));
  if (!made) return made.error();
  return TunedPlan{.plan = std::move(*made),
                   .measured_us = best->timing.us,
                   .planner_kernel = chosen->kernel,
                   .planner_scheduler = chosen->candidate.scheduler.kind,
                   .planner_splits = chosen->candidate.scheduler.splits,
                   .planner_us = chosen->timing.us};
}

}  // namespace sluice::bench
