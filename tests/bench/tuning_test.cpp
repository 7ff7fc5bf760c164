#include "bench/tuning.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace sluice::bench {
namespace {

const DeviceSpec& h200() {
  static const DeviceSpec device = *find_device("h200");
  return device;
}

// A product whose candidates are of every kind, each as if it had been timed: what the planner thinks worst is the fastest.
ShapeResult timed(const GemmProblem& problem) {
  ShapeResult result{.shape = {"file", problem.m, problem.n, problem.k}};
  const Result<Plan> own = plan(problem, h200());
  EXPECT_TRUE(own.ok()) << own.error().message;
  double us = 1000;
  for (const Candidate& candidate : own->candidates)
    if (candidate.verdict == CandidateVerdict::chosen || candidate.verdict == CandidateVerdict::slower)
      result.kernels.push_back({.candidate = candidate, .kernel = name(candidate.kernel), .timing = {.us = us -= 1}});
  std::reverse(result.kernels.begin(), result.kernels.end());
  result.sluice = result.kernels.back().timing;
  return result;
}

TEST(Tuning, ACandidateIsPlannedAgainAsItWas) {
  for (const GemmProblem& problem : {GemmProblem{.m = 64, .n = 2048, .k = 16384}, GemmProblem{.m = 1024, .n = 4864, .k = 4096}}) {
    int cut = 0;
    for (const KernelTiming& kernel : timed(problem).kernels) {
      const Result<Plan> made = plan(problem, h200(), only(kernel.candidate));
      ASSERT_TRUE(made.ok()) << made.error().message;
      EXPECT_EQ(made->kernel, kernel.candidate.kernel);
      EXPECT_EQ(made->scheduler, kernel.candidate.scheduler) << kernel.kernel;
      cut += kernel.candidate.scheduler.kind > SchedulerKind::data_parallel ? 1 : 0;
    }
    EXPECT_GT(cut, 0);
  }
}

TEST(Tuning, TheFastestRightCandidateIsKept) {
  const GemmProblem problem{.m = 64, .n = 2048, .k = 16384, .constant_b = true};
  ShapeResult result = timed(problem);
  const KernelTiming& own = result.kernels.back();
  Result<TunedPlan> tuned = tuned_plan(result, problem, h200());
  ASSERT_TRUE(tuned.ok()) << tuned.error().message;
  EXPECT_EQ(tuned->plan.kernel, result.kernels[0].candidate.kernel);
  EXPECT_EQ(tuned->plan.scheduler, result.kernels[0].candidate.scheduler);
  EXPECT_EQ(tuned->plan.problem, *validate(problem));
  EXPECT_EQ(tuned->measured_us, result.kernels[0].timing.us);
  EXPECT_EQ(tuned->planner_kernel, own.kernel);
  EXPECT_EQ(tuned->planner_scheduler, own.candidate.scheduler.kind);
  EXPECT_EQ(tuned->planner_splits, own.candidate.scheduler.splits);
  EXPECT_EQ(tuned->planner_us, own.timing.us);
  PlanCache cache;
  const Result<std::size_t> loaded = cache.load(to_json(std::vector{*tuned}));
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  EXPECT_EQ(**cache.get(problem, h200()), tuned->plan);

  result.kernels[0].wrong = "5 of 4096 elements wrong";
  tuned = tuned_plan(result, problem, h200());
  ASSERT_TRUE(tuned.ok());
  EXPECT_EQ(tuned->measured_us, result.kernels[1].timing.us);
  for (KernelTiming& kernel : result.kernels) kernel.wrong = "NaN";
  EXPECT_FALSE(tuned_plan(result, problem, h200()).ok());
  EXPECT_FALSE(tuned_plan({.shape = result.shape}, problem, h200()).ok());
}

}  // namespace
}  // namespace sluice::bench
