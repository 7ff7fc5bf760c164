// What a calibration has learnt from measured times: how candidates for one product compare beyond the parts of the model.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "sluice/calibration.hpp"
#include "sluice/plan.hpp"

#include "planner/calibration/learnt.hpp"

#include "devices.hpp"

namespace sluice {
namespace {

Calibration unlearnt() {
  Calibration calibration = built_in_calibration();
  calibration.learnt.clear();
  return calibration;
}

Plan plan_with(const GemmProblem& problem, const Calibration& calibration, const DeviceSpec& device = h200()) {
  PlanOptions options;
  options.calibration = std::make_shared<const Calibration>(calibration);
  return plan(problem, device, options).value();
}

bool can_run(const Candidate& candidate) { return candidate.verdict <= CandidateVerdict::slower; }

// As if the GPU did what the model says, but for what no constant of it can say: pingpong takes longer the wider its tiles are, and less
// the more rounds there are of them.
double true_us(const GemmProblem& problem, const Candidate& candidate) {
  if (candidate.kernel.schedule != KernelSchedule::pingpong) return candidate.predicted.total_us;
  const double wide = candidate.kernel.tile_n / 128.0, many = std::min(1.0, candidate.predicted.waves / 4);
  return candidate.predicted.total_us * (1 + 0.25 * wide * (1 - many)) * (problem.m < 64 ? 1 : 1.02);
}

std::vector<CandidateTiming> times_of(const std::vector<GemmProblem>& problems) {
  std::vector<CandidateTiming> timings;
  for (const GemmProblem& problem : problems) {
    const Plan made = plan_with(problem, unlearnt());
    for (const Candidate& candidate : made.candidates)
      if (can_run(candidate) && candidate.predicted.total_us < 1.3 * made.predicted.total_us)
        timings.push_back({.problem = problem, .candidate = candidate, .measured_us = true_us(problem, candidate)});
  }
  return timings;
}

std::vector<GemmProblem> products(std::int64_t step) {
  std::vector<GemmProblem> all;
  for (const std::int64_t m : {128, 1024})
    for (std::int64_t n = step; n < 12000; n += 2048)
      for (const std::int64_t k : {512, 4096}) all.push_back({.m = m, .n = n, .k = k});
  return all;
}

double mean_ratio(const std::vector<CandidateTiming>& timings, const Calibration& calibration) {
  double logarithms = 0;
  const std::vector<JudgedChoice> choices = judge_choices(timings, h200(), calibration);
  for (const JudgedChoice& choice : choices) logarithms += std::log(choice.ratio);
  return std::exp(logarithms / static_cast<double>(choices.size()));
}

TEST(Learnt, FindsWhatTheConstantsCannotSay) {
  const std::vector<CandidateTiming> seen = times_of(products(1024)), unseen = times_of(products(1920));
  const Calibration learnt = learn_comparisons(seen, h200(), unlearnt());
  ASSERT_EQ(learnt.learnt.size(), 1u);
  EXPECT_EQ(learnt.learnt.front().operands, "16-bit");
  EXPECT_TRUE(validate(learnt).ok()) << validate(learnt).error().message;
  const double before = mean_ratio(unseen, unlearnt());
  EXPECT_GT(before, 1.01);
  EXPECT_LT(mean_ratio(seen, learnt), 1.002);
  EXPECT_LT(mean_ratio(unseen, learnt), 1 + (before - 1) / 3);

  Calibration constants = learnt;
  constants.learnt.clear();
  EXPECT_EQ(constants, unlearnt());
}

TEST(Learnt, IsAFunctionOfTheTimes) {
  std::vector<GemmProblem> few = products(1024);
  few.resize(8);
  const std::vector<CandidateTiming> times = times_of(few);
  EXPECT_EQ(learn_comparisons(times, h200(), unlearnt()), learn_comparisons(times, h200(), unlearnt()));
}

TEST(Learnt, FewProductsTeachNothing) {
  EXPECT_EQ(learn_comparisons(times_of({{.m = 128, .n = 4096, .k = 4096}}), h200(), built_in_calibration()), built_in_calibration());
  std::vector<CandidateTiming> none = times_of({{.m = 128, .n = 4096, .k = 4096}});
  for (CandidateTiming& timing : none) timing.measured_us = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(learn_comparisons(none, h200(), built_in_calibration()), built_in_calibration());
}

TEST(Learnt, TheFastestPredictedKeepsItsTimeAndOthersSayWhatWasAdded) {
  const GemmProblem problem{.m = 128, .n = 6144, .k = 4096, .constant_b = true};
  const Plan without = plan_with(problem, unlearnt()), with = plan_with(problem, built_in_calibration());
  const double least = without.predicted.total_us;
  std::size_t changed = 0;
  for (const Candidate& candidate : with.candidates) {
    if (!can_run(candidate)) continue;
    const auto same = [&](const Candidate& c) { return c.kernel == candidate.kernel && c.scheduler == candidate.scheduler; };
    const auto before = std::find_if(without.candidates.begin(), without.candidates.end(), same);
    ASSERT_NE(before, without.candidates.end());
    EXPECT_NEAR(candidate.predicted.total_us - candidate.predicted.learnt_us, before->predicted.total_us, 1e-9);
    EXPECT_EQ(before->predicted.learnt_us, 0);
    if (before->predicted.total_us == least || before->predicted.total_us > kLearntWithin * least) {
      EXPECT_EQ(candidate.predicted.learnt_us, 0) << name(candidate.kernel);
    }
    changed += candidate.predicted.learnt_us != 0 ? 1 : 0;
  }
  EXPECT_GT(changed, 10u);
  EXPECT_LE(with.predicted.total_us, least);
}

// H200s, 27 November 2026, weights constant: what the parts alone would take is 3% slower.
TEST(Learnt, ChoosesWhatWasFastestWhereThePartsDoNot) {
  struct Case {
    std::int64_t m, n, k;
    const char* fastest;
  };
  for (const Case& c : {Case{16, 7168, 2048, "stream_16x16x64_c1x1_swap"}, Case{128, 7168, 2048, "ping_128x64x64_c1x1"}}) {
    const GemmProblem problem{.m = c.m, .n = c.n, .k = c.k, .constant_b = true};
    EXPECT_NE(kernel_key(plan_with(problem, unlearnt()).kernel), c.fastest);
    EXPECT_EQ(kernel_key(plan(problem, h200())->kernel), c.fastest);
  }
}

TEST(Learnt, HoldsForTheProductsAndTheGpuItWasLearntFrom) {
  EXPECT_EQ(learnt_operands({.m = 1, .n = 64, .k = 64}), "16-bit");
  EXPECT_EQ(learnt_operands({.m = 1, .n = 64, .k = 64, .type_a = DataType::fp16, .type_b = DataType::fp16, .type_d = DataType::fp16}),
            "16-bit");
  EXPECT_EQ(learnt_operands({.m = 1, .n = 64, .k = 64, .type_a = DataType::e4m3, .type_b = DataType::e4m3}), "fp8");
  EXPECT_EQ(learnt_operands({.m = 1, .n = 64, .k = 128, .type_b = DataType::int4}), "w4");
  EXPECT_EQ(learnt_operands({.m = 1, .n = 64, .k = 128, .type_a = DataType::e4m3, .type_b = DataType::int4}), "");
  EXPECT_EQ(learnt_operands({.m = 1, .n = 64, .k = 64, .batch = 2}), "");
  EXPECT_EQ(learnt_operands({.m = 1, .n = 64, .k = 64, .layout_b = Layout::row_major}), "");
  EXPECT_EQ(learnt_operands({.m = 8, .n = 64, .k = 64, .batch = 2, .grouping = Grouping::ragged}), "");

  const GemmProblem problem{.m = 128, .n = 6144, .k = 4096};
  DeviceSpec other = h200();
  const auto learnt = [&](const DeviceSpec& device) {
    const Plan made = plan_with(problem, built_in_calibration(), device);
    return std::any_of(made.candidates.begin(), made.candidates.end(), [](const Candidate& c) { return c.predicted.learnt_us != 0; });
  };
  EXPECT_TRUE(learnt(other));
  other.hbm_gb_per_s *= 0.95;
  EXPECT_TRUE(learnt(other));
  other.hbm_gb_per_s *= 0.9;
  EXPECT_FALSE(learnt(other));
  EXPECT_FALSE(learnt(*find_device("h100-sxm")));

  Calibration smaller = built_in_calibration();
  for (LearntComparison& one : smaller.learnt) one.sm_count = 114;
  EXPECT_EQ(plan_with(problem, smaller).predicted, plan_with(problem, unlearnt()).predicted);
}

void expect_refused(const Calibration& calibration, const std::string& what) {
  const Status s = validate(calibration);
  ASSERT_FALSE(s.ok()) << what;
  EXPECT_EQ(s.error().code, ErrorCode::invalid_argument);
  EXPECT_NE(s.error().message.find(what), std::string::npos) << s.error().message;
}

TEST(Learnt, WhatDoesNotFitIsRefused) {
  ASSERT_FALSE(built_in_calibration().learnt.empty());
  const auto with = [](auto change) {
    Calibration calibration = built_in_calibration();
    change(calibration.learnt.front());
    return calibration;
  };
  using One = LearntComparison;
  expect_refused(with([](One& l) { l.operands = "8-bit"; }), "learnt[0].operands = \"8-bit\" must be 16-bit, fp8 or w4");
  expect_refused(with([](One& l) { l.sm_count = 0; }), "learnt[0].sm_count = 0 must be above 0");
  expect_refused(with([](One& l) { l.hbm_gb_per_s = std::nan(""); }), "learnt[0].hbm_gb_per_s");
  expect_refused(with([](One& l) { l.inputs.pop_back(); }), "learnt[0].inputs are 30, and this library knows 31");
  expect_refused(with([](One& l) { l.inputs[2].name = "swopped"; }), "learnt[0].inputs[2].name = \"swopped\" must be \"sliced\"");
  expect_refused(with([](One& l) { l.inputs[3].spread = 0; }), "learnt[0].inputs[3] has a mean of");
  expect_refused(with([](One& l) { l.inputs[4].weights.pop_back(); }), "learnt[0].inputs[4].weights has 127 numbers");
  expect_refused(with([](One& l) { l.inputs[5].weights[6] = std::numeric_limits<double>::infinity(); }),
                 "learnt[0].inputs[5].weights has inf");
  expect_refused(with([](One& l) { l.out.clear(); }), "learnt[0].out has 0 numbers, and the bias 128");
  expect_refused(with([](One& l) { l.bias.clear(); }), "learnt[0].bias has 0 numbers; there must be 1 to 256 units");
  Calibration twice = built_in_calibration();
  twice.learnt.push_back(twice.learnt.front());
  expect_refused(twice, "\"" + twice.learnt.front().operands + "\" was named before, by learnt[0]");
}

TEST(Learnt, ReadsBackEqualWithNumbersOnOneLine) {
  const std::string text = to_json(built_in_calibration());
  EXPECT_EQ(calibration_from_json(text).value(), built_in_calibration());
  const std::size_t bias = text.find("\"bias\": [");
  ASSERT_NE(bias, std::string::npos);
  EXPECT_GT(text.find('\n', bias), text.find(']', bias));
  EXPECT_EQ(to_json(unlearnt()).find("\"learnt\""), std::string::npos);  // as files were before there was anything to learn
}

TEST(Learnt, SquashedIsNearlyTheHyperbolicTangent) {
  for (float x = -6; x < 6; x += 0.01f) EXPECT_NEAR(squashed(x), std::tanh(x), 0.03f) << x;
  EXPECT_EQ(squashed(3.5f), squashed(100.0f));
}

}  // namespace
}  // namespace sluice
