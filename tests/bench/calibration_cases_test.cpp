#include "bench/calibration_cases.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "sluice/plan.hpp"

namespace sluice::bench {
namespace {

std::vector<CalibrationCase> cases_of(const std::string& suites) {
  Result<std::vector<CalibrationCase>> cases = calibration_cases(suites);
  EXPECT_TRUE(cases.ok()) << cases.error().message;
  return cases ? *cases : std::vector<CalibrationCase>{};
}

TEST(CalibrationCases, AreOfAllKindsWhereverTheListIsCutOff) {
  const std::vector<CalibrationCase> cases = cases_of("");
  std::set<std::string> shapes, all;
  for (const CalibrationCase& one : cases) {
    shapes.insert(to_string(one.shape));
    all.insert(to_string(one));
    EXPECT_TRUE(!one.constant_b || one.shape.m <= 128) << to_string(one);
    EXPECT_EQ(problem_of(one).constant_b, one.constant_b);
    EXPECT_EQ(problem_of(one).n, one.shape.n);
  }
  EXPECT_EQ(all.size(), cases.size());
  EXPECT_GE(shapes.size(), 65u);
  EXPECT_LE(shapes.size(), 75u);
  for (const CalibrationCase& one : cases) {
    const auto times = std::count_if(cases.begin(), cases.end(), [&](const CalibrationCase& other) { return other.shape == one.shape; });
    EXPECT_EQ(times, one.shape.m <= 128 ? 2 : 1) << to_string(one);
  }

  std::set<std::string> suites;
  std::set<std::int64_t> llm_rows;
  int constant = 0;
  for (std::size_t i = 0; i < cases.size() / 3; ++i) {
    suites.insert(cases[i].shape.suite);
    constant += cases[i].constant_b ? 1 : 0;
    if (cases[i].shape.suite == "llm") llm_rows.insert(cases[i].shape.m);
  }
  EXPECT_EQ(suites, (std::set<std::string>{"llm", "random", "splitk", "square", "wave"}));
  EXPECT_EQ(llm_rows, (std::set<std::int64_t>{1, 16, 64, 128, 512, 2048}));
  EXPECT_GE(constant, 5);
}

TEST(CalibrationCases, OfAProductMeasuredAgainAreBroughtToTheScaleOfBefore) {
  const CalibrationCase one{.shape = {.suite = "mine", .m = 512, .n = 4096, .k = 4096}};
  const Plan plan = sluice::plan(problem_of(one), *find_device("h200")).value();
  const auto times = [&](const std::vector<std::pair<std::size_t, double>>& of_candidates) {
    ShapeResult result;
    for (const auto& [candidate, us] : of_candidates)
      result.kernels.push_back({.candidate = plan.candidates[candidate], .kernel = {}, .timing = {.us = us, .rounds = 3}, .wrong = {}});
    return result;
  };
  CalibrationTimings measured;
  measured.add(one, times({{0, 100}, {1, 110}, {2, 140}}));
  CalibrationCase elsewhere = one;
  elsewhere.shape.suite = "theirs";
  measured.add(elsewhere, times({{3, 60}, {0, 50}, {1, 55}, {2, 80}}));  // a GPU twice as fast, on which the third does worse
  ASSERT_EQ(measured.timings.size(), 4u);
  EXPECT_EQ(measured.cases.size(), 1u);
  const std::vector<double> expected = {100, 110, std::sqrt(140.0 * 160), 120};
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(measured.timings[i].measured_us, expected[i], 1e-6) << i;
    EXPECT_EQ(measured.case_of[i], 0u);
    EXPECT_EQ(measured.times[i], i == 3 ? 1 : 2);
  }
  measured.add(one, times({{2, 40}, {0, 25}, {1, 27.5}}));
  EXPECT_NEAR(measured.timings[2].measured_us, std::cbrt(140.0 * 160 * 160), 1e-6) << "each run counts once";
}

TEST(CalibrationCases, MayBeThoseOfSuites) {
  EXPECT_EQ(cases_of("square").size(), 6u);  // none has so few rows that a constant B would show
  EXPECT_EQ(cases_of("splitk").size(), 8u + 5u);
  const Result<std::vector<CalibrationCase>> unknown = calibration_cases("square,nonesuch");
  ASSERT_FALSE(unknown.ok());
  EXPECT_NE(unknown.error().message.find("'nonesuch'"), std::string::npos);
  const Result<std::vector<CalibrationCase>> fp8 = calibration_cases("wave,fp8");
  ASSERT_FALSE(fp8.ok());
  EXPECT_EQ(fp8.error().code, ErrorCode::unsupported);
}

bool cuts_tiles(const Candidate& candidate) { return candidate.scheduler.kind > SchedulerKind::data_parallel; }

// Every candidate timed as predicted, but for one that is ten times as fast: the first with whole tiles and another kernel than the choice.
ShapeResult result_of(const CalibrationCase& one, const DeviceSpec& device) {
  ShapeResult result{.shape = one.shape};
  const Result<Plan> made = plan(problem_of(one), device);
  for (const Candidate& candidate : made->candidates)
    if (candidate.verdict <= CandidateVerdict::slower)
      result.kernels.push_back(
          {.candidate = candidate, .kernel = name(candidate.kernel), .timing = {.us = candidate.predicted.total_us, .rounds = 3}});
  const auto fast = std::find_if(result.kernels.begin(), result.kernels.end(), [&](const KernelTiming& kernel) {
    return kernel.kernel != result.kernels[0].kernel && !cuts_tiles(kernel.candidate);
  });
  fast->timing.us /= 10;
  return result;
}

TEST(CalibrationCases, TimingsAreThoseOfRightResultsOnly) {
  const DeviceSpec device = *find_device("h200");
  const CalibrationCase one{.shape = {"llm", 16, 4096, 4096}, .constant_b = true};
  ShapeResult result = result_of(one, device);
  const std::size_t all = result.kernels.size();
  result.kernels[0].wrong = "5 of 4096 elements wrong";
  result.kernels[1].timing.rounds = 0;
  CalibrationTimings measured;
  measured.add(one, result);
  ASSERT_EQ(measured.timings.size(), all - 2);
  EXPECT_EQ(measured.timings[0].candidate, result.kernels[2].candidate);
  EXPECT_TRUE(measured.timings[0].problem.constant_b);
  ASSERT_EQ(measured.wrong.size(), 1u);
  for (const std::string piece : {"16x4096x4096, B constant", "5 of 4096"})
    EXPECT_NE(measured.wrong[0].find(piece), std::string::npos) << measured.wrong[0];
  measured.add(one, {.shape = one.shape, .wrong = "no kernel"});
  EXPECT_EQ(measured.wrong.size(), 2u);
}

TEST(CalibrationCases, TheReportSaysHowGoodTheChoiceIsBeforeAndAfter) {
  const DeviceSpec device = *find_device("h200");
  CalibrationTimings measured;
  for (const CalibrationCase& one :
       {CalibrationCase{.shape = {"llm", 16, 4096, 4096}, .constant_b = true}, CalibrationCase{.shape = {"wave", 1024, 2048, 4096}}})
    measured.add(one, result_of(one, device));
  const std::string same = calibration_report(measured, device, built_in_calibration(), built_in_calibration());
  for (const char* piece : {"llm, B constant", "wave", "all", "the worst choices after", "16x4096x4096, B constant: bf16_rc_"})
    EXPECT_NE(same.find(piece), std::string::npos) << piece << " is not in\n" << same;
  // A calibration that knows how fast the fast one of the first case is.
  const std::vector<JudgedChoice> choices = judge_choices(measured.timings, device, built_in_calibration());
  EXPECT_GT(choices[0].ratio, 2);
  const std::string key = kernel_key(measured.timings[choices[0].fastest].candidate.kernel);
  Calibration after = built_in_calibration();
  std::erase_if(after.kernel_factors, [&](const KernelFactor& known) { return known.kernel == key; });
  after.kernel_factors.push_back({key, 0.1});
  const std::string better = calibration_report(measured, device, built_in_calibration(), after);
  const std::string line = better.substr(better.find("llm, B constant"));
  EXPECT_TRUE(line.substr(0, line.find('\n')).ends_with("  1.0000   1.000")) << better;
}

}  // namespace
}  // namespace sluice::bench
