// What the power limit costs a candidate (planner/cost/power.hpp).
#include <map>
#include <string>

#include <gtest/gtest.h>

#include "sluice/plan.hpp"

#include "devices.hpp"
#include "planner/peak.hpp"

namespace sluice {
namespace {

Plan plan_for(const GemmProblem& problem, const DeviceSpec& device = h200()) { return plan(problem, device).value(); }

// Bytes of L2 for a product, to a factor: what a CTA's tile fetches over what it multiplies.
double fetched(const KernelConfig& kernel) { return 1.0 / (kernel.tile_n * kernel.cluster_n) + 1.0 / (kernel.tile_m * kernel.cluster_m); }

// Whether nothing but power keeps a product that takes `us` from the sustained rate.
bool stands_at_the_limit(const GemmProblem& problem, double us) {
  const double sustained = peak_tflop_per_s(h200(), problem.type_a) * 1e6 * h200().sustained_fraction;
  return flops(problem) / us >= 0.96 * sustained;
}

TEST(Power, WhatMemoryBindsHasTheClockItWants) {
  for (const GemmProblem& problem : {GemmProblem{.m = 16, .n = 8192, .k = 8192}, GemmProblem{.m = 128, .n = 57344, .k = 8192},
                                     GemmProblem{.m = 4096, .n = 4096, .k = 64}})
    for (const Candidate& candidate : plan_for(problem).candidates) EXPECT_EQ(candidate.predicted.power_us, 0) << name(candidate.kernel);
}

TEST(Power, ADeviceThatKeepsItsClockLosesNothing) {
  DeviceSpec device = h200();
  device.sustained_fraction = 1;
  for (const Candidate& candidate : plan_for({.m = 2048, .n = 8192, .k = 8192}, device).candidates)
    EXPECT_EQ(candidate.predicted.power_us, 0) << name(candidate.kernel);
}

// Not timed so: FP8, weights of 4 bits and groups.
TEST(Power, OnlyWhatWasTimedAtTheLimitIsChanged) {
  GemmProblem fp8{.m = 4096, .n = 7168, .k = 16384, .type_a = DataType::e4m3, .type_b = DataType::e4m3, .type_d = DataType::bf16};
  GemmProblem w4{.m = 4096, .n = 8192, .k = 8192, .type_b = DataType::int4};
  GemmProblem groups{.m = 65536, .n = 4096, .k = 4096, .batch = 16, .grouping = Grouping::ragged};
  for (const GemmProblem& problem : {fp8, w4, groups})
    for (const Candidate& candidate : plan_for(problem).candidates) EXPECT_EQ(candidate.predicted.power_us, 0) << name(candidate.kernel);
}

// In turns of 0.1 s tiles of 128 x 256 in pairs take 391 to 397 us, pingpong 128 x 128 in pairs 461 (one H200, 29 November 2026).
TEST(Power, LargeProductsGoToTilesThatFetchLittle) {
  const Plan made = plan_for({.m = 2048, .n = 8192, .k = 8192, .constant_b = true});
  EXPECT_LT(made.predicted.power_us + 0.5 * made.predicted.learnt_us, 0.01 * made.predicted.total_us);
  EXPECT_LE(fetched(made.kernel), 1.0 / 128) << name(made.kernel);
  // Who fetches more pays for it; of what was learnt half is taken back.
  std::size_t fetch_more = 0;
  for (const Candidate& candidate : made.candidates) {
    const PredictedTime& t = candidate.predicted;
    if (candidate.verdict != CandidateVerdict::slower || fetched(candidate.kernel) < 1.4 * fetched(made.kernel)) continue;
    if (!stands_at_the_limit(made.problem, t.total_us - t.power_us)) continue;
    ++fetch_more;
    EXPECT_GT(t.power_us + 0.5 * t.learnt_us, 0.01 * t.total_us) << name(candidate.kernel);
  }
  EXPECT_GT(fetch_more, 0u);
}

// At their own clock 2 to 6% faster than pieces, or two rounds, of smaller tiles (one H200, 29 November 2026).
TEST(Power, OneWaveOfHighTilesBeforeMoreOfOthers) {
  for (const std::int64_t n : {4864, 5376, 5888}) {
    const Plan made = plan_for({.m = 1024, .n = n, .k = 4096, .constant_b = true});
    EXPECT_EQ(made.kernel.tile_m, 256) << name(made.kernel);
    EXPECT_EQ(made.kernel.cluster_n, 2) << name(made.kernel);
    EXPECT_EQ(made.scheduler.kind, SchedulerKind::one_tile_per_cta) << name(made.kernel);
    EXPECT_LT(made.predicted.power_us, -0.5 * made.predicted.learnt_us) << "fewer bytes than 128 x 256 in pairs";
  }
}

// Ranges that end within tiles lose more than whole tiles of the same kernel.
TEST(Power, RangesPayForWhatTheyHandOver) {
  const Plan made = plan_for({.m = 2048, .n = 8192, .k = 8192, .constant_b = true});
  std::map<std::string, double> whole, ranges;  // by kernel: what is added to cycles and half of what was learnt
  for (const Candidate& candidate : made.candidates) {
    const PredictedTime& t = candidate.predicted;
    const double before = t.total_us - t.power_us;
    if (candidate.verdict != CandidateVerdict::slower || !stands_at_the_limit(made.problem, before)) continue;
    const SchedulerKind kind = candidate.scheduler.kind;
    auto& of_kind = kind == SchedulerKind::data_parallel ? whole : ranges;
    if (kind == SchedulerKind::data_parallel || kind == SchedulerKind::hybrid || kind == SchedulerKind::stream_k)
      of_kind[name(candidate.kernel)] = t.total_us / (before - 0.5 * t.learnt_us);
  }
  std::size_t compared = 0;
  for (const auto& [kernel, share] : ranges) {
    if (!whole.contains(kernel)) continue;
    ++compared;
    EXPECT_GT(share, whole[kernel] + 0.01) << kernel;
  }
  EXPECT_GT(compared, 0u);
}

}  // namespace
}  // namespace sluice
