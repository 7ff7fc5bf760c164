#include "reference/general_groups.hpp"

#include <cmath>
#include <cstdint>
#include <string>

#include "core/check_general_groups.hpp"
#include "core/general_groups.hpp"
#include "scheduler/general_groups.hpp"

namespace sluice {
namespace {

Error of_group(std::int64_t group, const Error& error) { return {error.code, "group " + std::to_string(group) + ": " + error.message}; }

// The plan's way to compute one group, which is a problem by itself.
Plan plan_of_group(const Plan& plan, const GemmProblem& problem) {
  const TileSizes tile{plan.kernel.tile_m, plan.kernel.tile_n, plan.kernel.tile_k};
  Plan one = plan;
  one.problem = problem;
  one.scheduler = schedule_of_group(plan.scheduler, tile,
                                    {.m = static_cast<std::int32_t>(problem.m),
                                     .n = static_cast<std::int32_t>(problem.n),
                                     .k = static_cast<std::int32_t>(problem.epilogue.alpha == 0.0f ? 0 : problem.k)});
  return one;
}

// Of equally bad elements the first is kept.
void add(VerifyReport& all, VerifyReport one, std::int64_t group) {
  one.worst_batch = group;
  const bool worse = one.worst_row >= 0 && (all.worst_row < 0 || one.worst_ratio > all.worst_ratio);
  VerifyReport sum = worse ? one : all;
  sum.checked = all.checked + one.checked;
  sum.wrong = all.wrong + one.wrong;
  sum.not_a_number = all.not_a_number + one.not_a_number;
  all = sum;
}

double elements(const GroupArguments& g) { return static_cast<double>(g.m) * g.n; }

}  // namespace

Status run_groups_on_cpu(const Plan& plan, const GemmArguments& arguments, int threads, const Progress& progress) {
  const GemmProblem& p = plan.problem;
  if (Status s = check_general_groups(p, arguments.group_arguments); !s) return s;
  for (std::int64_t i = 0; i < p.batch; ++i) {
    const GroupArguments g = within(group_limits(p), arguments.group_arguments[i]);
    const Result<GemmProblem> problem = validate(problem_of_group(p, g));
    if (!problem) return of_group(i, problem.error());
    if (Status s = run_on_cpu(plan_of_group(plan, *problem), arguments_of_group(g), threads); !s) return of_group(i, s.error());
    if (progress) progress(static_cast<double>(i + 1) / static_cast<double>(p.batch));
  }
  return Nothing{};
}

Result<VerifyReport> verify_groups(const GemmProblem& p, const GemmArguments& arguments, const void* c_before, std::int64_t samples,
                                   std::uint64_t seed) {
  if (c_before != nullptr)
    return Error{ErrorCode::invalid_argument,
                 "c_before is not null, but general groups have a C each; pass null, and in group_arguments what C was before the run"};
  double all = 0;
  for (std::int64_t i = 0; i < p.batch; ++i) all += elements(within(group_limits(p), arguments.group_arguments[i]));
  VerifyReport report;
  for (std::int64_t i = 0; i < p.batch; ++i) {
    const GroupArguments g = within(group_limits(p), arguments.group_arguments[i]);
    if (g.m == 0) continue;
    // Its share of the samples, and one at least: 0 would mean every element.
    const double share = std::ceil(static_cast<double>(samples) * elements(g) / all);
    const Result<VerifyReport> one = verify(problem_of_group(p, g), arguments_of_group(g), nullptr,
                                            samples == 0 ? 0 : static_cast<std::int64_t>(share), seed + static_cast<std::uint64_t>(i));
    if (!one) return of_group(i, one.error());
    add(report, *one, i);
  }
  return report;
}

}  // namespace sluice
