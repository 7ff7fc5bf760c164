// The cost model's constants: as JSON, as an option of plan(), and found again from the times that they predict.
#include "sluice/calibration.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "sluice/plan.hpp"

#include "planner/calibration/constants.hpp"
#include "planner/calibration/kernel_factor.hpp"
#include "planner/cost_model.hpp"
#include "planner/workers.hpp"

#include "devices.hpp"

namespace sluice {
namespace {

using Json = nlohmann::ordered_json;

void expect_refused(const std::string& text, ErrorCode code, const std::vector<std::string>& pieces) {
  const Result<Calibration> read = calibration_from_json(text);
  ASSERT_FALSE(read.ok()) << "accepted; expected '" << pieces.front() << "'";
  EXPECT_EQ(read.error().code, code) << read.error().message;
  for (const std::string& piece : pieces)
    EXPECT_NE(read.error().message.find(piece), std::string::npos) << "'" << piece << "' is not in: " << read.error().message;
}

Json built_in_json() { return Json::parse(to_json(built_in_calibration())); }

std::string with(const std::string& pointer, const Json& value) {
  Json json = built_in_json();
  json[Json::json_pointer(pointer)] = value;
  return json.dump();
}

TEST(Calibration, TheBuiltInOneIsThatOfTheSources) {
  std::ifstream file(SLUICE_SOURCE_DIR "/src/planner/calibration/h200.json");
  std::ostringstream text;
  text << file.rdbuf();
  const Result<Calibration> read = calibration_from_json(text.str());
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(*read, built_in_calibration());
  EXPECT_FALSE(read->kernel_factors.empty());
  EXPECT_FALSE(read->provenance.device.empty());
  EXPECT_FALSE(read->provenance.date.empty());
}

TEST(Calibration, EachFactorOfTheBuiltInOneBelongsToAKernel) {
  for (const KernelFactor& factor : built_in_calibration().kernel_factors)
    EXPECT_TRUE(std::any_of(kernel_list().begin(), kernel_list().end(),
                            [&](const KernelConfig& kernel) { return kernel_key(kernel) == factor.kernel; }))
        << factor.kernel << " is not in this build: remove it from h200.json";
}

// A kernel without a factor counts as one that was measured and found right, and wins where others have been found slow.
TEST(Calibration, EachKernelHasAFactorInTheBuiltInOne) {
  const std::vector<KernelFactor>& factors = built_in_calibration().kernel_factors;
  for (const KernelConfig& kernel : kernel_list())
    EXPECT_TRUE(std::any_of(factors.begin(), factors.end(), [&](const KernelFactor& f) { return f.kernel == kernel_key(kernel); }))
        << kernel_key(kernel) << " was never measured: time it (sluice bench --planner), and name it in h200.json";
}

TEST(Calibration, ReadsBackEqual) {
  Calibration calibration = built_in_calibration();
  double value = 0.1;
  for (const Constant& constant : kConstants) calibration.*constant.value = std::clamp(value *= 1.37, constant.least, constant.most);
  calibration.kernel_factors = {{"coop_1x2x3_c1x1", 1.0 / 3}, {"a kernel of another build", 2}};
  calibration.provenance = {"gpu", "today", "1.2", "abc", "no \"remarks\"", 3, 4, 1.5, 2.5};
  const Result<Calibration> read = calibration_from_json(to_json(calibration));
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(*read, calibration);
}

TEST(Calibration, EveryConstantIsNeededAndHasLimits) {
  for (const Constant& constant : kConstants) {
    const std::string name = constant.name;
    Json json = built_in_json();
    json.erase(name);
    expect_refused(json.dump(), ErrorCode::bad_format, {name + " is missing"});
    expect_refused(with("/" + name, "much"), ErrorCode::bad_format, {name + " must be a number, not \"much\""});
    expect_refused(with("/" + name, "nan"), ErrorCode::invalid_argument, {name + " = nan must be from "});
    expect_refused(with("/" + name, "inf"), ErrorCode::invalid_argument, {name + " = inf must be from "});
    expect_refused(with("/" + name, 1e9), ErrorCode::invalid_argument, {name + " = 1000000000"});
    expect_refused(with("/" + name, -0.5), ErrorCode::invalid_argument, {name + " = -0.5 must be from "});
  }
}

TEST(Calibration, WhatElseIsRefused) {
  expect_refused("{", ErrorCode::bad_format, {"not JSON"});
  expect_refused("[]", ErrorCode::bad_format, {"sluice-calibration"});
  expect_refused(with("/format", "sluice-plan"), ErrorCode::bad_format, {"format", "sluice-plan", "sluice-calibration"});
  expect_refused(with("/version", 2), ErrorCode::bad_format, {"version is 2"});
  expect_refused(with("/l2_facter", 1), ErrorCode::bad_format, {"l2_facter is not a field"});
  expect_refused(with("/provenance/choice_mean", 0.5), ErrorCode::invalid_argument, {"choice_mean = 0.5", "fastest"});
  expect_refused(with("/provenance/shapes", -1), ErrorCode::invalid_argument, {"shapes = -1"});
  expect_refused(with("/provenance/timings", 1.5), ErrorCode::bad_format, {"provenance.timings must be an integer"});
  expect_refused(with("/kernel_factors", 1), ErrorCode::bad_format, {"kernel_factors must be an array"});
  expect_refused(with("/kernel_factors/2/factor", 0), ErrorCode::invalid_argument, {"kernel_factors[2].factor", "= 0", "from 0.01 to 100"});
  expect_refused(with("/kernel_factors/2/kernel", ""), ErrorCode::invalid_argument, {"kernel_factors[2].kernel is empty"});
  expect_refused(with("/kernel_factors/2/weight", 1), ErrorCode::bad_format, {"kernel_factors[2].weight"});
  const std::string first = built_in_calibration().kernel_factors[0].kernel;
  expect_refused(with("/kernel_factors/2/kernel", first), ErrorCode::invalid_argument,
                 {"kernel_factors[2].kernel", first, "kernel_factors[0]"});
}

TEST(Calibration, AKernelGoesByItsNameWithoutTypeAndLayout) {
  KernelConfig kernel{
      .type_a = DataType::fp16, .type_b = DataType::fp16, .layout_b = Layout::row_major, .tile_m = 128, .tile_n = 256, .cluster_m = 2};
  EXPECT_EQ(kernel_key(kernel), "coop_128x256x64_c2x1");
  EXPECT_EQ(kernel_key({.type_a = DataType::e4m3, .type_b = DataType::e5m2, .tile_m = 256, .tile_n = 128, .tile_k = 128}),
            "fp8_coop_256x128x128_c1x1");
  Calibration calibration;
  EXPECT_EQ(kernel_factor(calibration, kernel), 1);
  calibration.kernel_factors = {{"coop_128x256x64_c1x1", 1.5}, {"coop_128x256x64_c2x1", 1.25}};
  EXPECT_EQ(kernel_factor(calibration, kernel), 1.25);
  kernel.load = LoadPath::threads;
  EXPECT_EQ(kernel_factor(calibration, kernel), 20);
  calibration.kernel_factors.push_back({"coop_128x256x64_c2x1_anyalign", 18});
  EXPECT_EQ(kernel_factor(calibration, kernel), 18);
}

std::shared_ptr<const Calibration> shared(const Calibration& calibration) { return std::make_shared<const Calibration>(calibration); }

void scale_factor(Calibration& calibration, const KernelConfig& kernel, double by) {
  std::erase_if(calibration.kernel_factors, [&](const KernelFactor& known) { return known.kernel == kernel_key(kernel); });
  calibration.kernel_factors.push_back({kernel_key(kernel), by * kernel_factor(built_in_calibration(), kernel)});
}

TEST(Calibration, PlansFollowTheirs) {
  const GemmProblem problem{.m = 1024, .n = 2048, .k = 2048};  // so short that SMs without a tile are not missed
  const Result<Plan> usual = plan(problem, h200());
  EXPECT_EQ(*plan(problem, h200(), {.calibration = shared(built_in_calibration())}), *usual);

  Calibration other = built_in_calibration();
  scale_factor(other, usual->kernel, 3);
  const Result<Plan> changed = plan(problem, h200(), {.calibration = shared(other)});
  ASSERT_TRUE(changed.ok()) << changed.error().message;
  EXPECT_NE(changed->kernel, usual->kernel);

  other = built_in_calibration();
  other.hbm_factor /= 2;
  const Result<Plan> slower = plan(problem, h200(), {.calibration = shared(other)});
  EXPECT_NEAR(slower->predicted.hbm_us / kernel_factor(other, slower->kernel),
              2 * usual->predicted.hbm_us / kernel_factor(other, usual->kernel), 1e-9);
  EXPECT_EQ(to_json(*slower).find("calibration"), std::string::npos);

  other.hbm_factor = std::numeric_limits<double>::quiet_NaN();
  const Result<Plan> refused = plan(problem, h200(), {.calibration = shared(other)});
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("calibration: hbm_factor = nan"), std::string::npos) << refused.error().message;
}

TEST(Calibration, SlowerMemoryIsSlowForAnyKernel) {
  const GemmProblem problem{.m = 64, .n = 57344, .k = 8192};
  const DeviceSpec fast = h200();
  DeviceSpec slow = fast, slower = fast;
  slow.hbm_gb_per_s /= 1.5;
  slower.hbm_gb_per_s /= 6;
  const auto hbm_us = [&](const DeviceSpec& device, double measured_with, double factor) {
    Calibration calibration = built_in_calibration();
    calibration.measured_hbm_gb_per_s_per_sm = measured_with;
    const KernelConfig kernel = plan(problem, fast)->kernel;
    for (KernelFactor& known : calibration.kernel_factors)
      if (known.kernel == kernel_key(kernel)) known.factor = factor;
    const Result<Plan> made = plan(problem, device, {.kernel_name = name(kernel), .calibration = shared(calibration)});
    EXPECT_TRUE(made.ok());
    return made->predicted.hbm_us;
  };
  const double per_sm = fast.hbm_gb_per_s / fast.sm_count;
  const auto share = [&](const DeviceSpec& device, double measured_with) {
    return hbm_us(device, measured_with, 1.5) / hbm_us(device, measured_with, 1);
  };
  EXPECT_NEAR(share(fast, per_sm), 1.5, 1e-9);  // where they were measured, factors are all of it
  EXPECT_NEAR(share(slow, 0), 1.5, 1e-9);
  EXPECT_LT(share(slow, per_sm), 1.25);  // elsewhere the less the slower
  EXPECT_GT(share(slow, per_sm), 1.02);
  EXPECT_LT(share(slower, per_sm), 1.01);
  EXPECT_NEAR(hbm_us(slow, per_sm, 1), 1.5 * hbm_us(fast, per_sm, 1), 1e-6);  // bytes take as long as memory does
}

// One H100 SXM, 25 November 2026, weights constant: what was chosen before took 1.14 to 1.85 times as long as these.
TEST(Calibration, ChoicesOnAnH100AreThoseThatWereFastThere) {
  const auto chosen = [](GemmProblem problem) {
    problem.constant_b = true;
    return kernel_key(plan(problem, *find_device("h100-sxm"))->kernel);
  };
  const auto is_one_of = [](const std::string& key, const std::set<std::string>& keys) { return keys.count(key) > 0; };
  // Memory binds: kernels with small factors are not faster for it.
  EXPECT_PRED2(is_one_of, chosen({.m = 32, .n = 57344, .k = 8192, .type_b = DataType::int4}),
               std::set<std::string>{"w4_coop_32x192x256_c1x1_swap"});
  EXPECT_PRED2(is_one_of, chosen({.m = 32, .n = 28672, .k = 4096, .type_b = DataType::int4}),
               (std::set<std::string>{"w4_coop_32x192x256_c1x1_swap", "w4_coop_32x128x256_c1x1_swap"}));
  GemmProblem fp8{.m = 1024, .n = 32768, .k = 512, .type_a = DataType::e4m3, .type_b = DataType::e4m3, .type_d = DataType::bf16};
  fp8.scaling_a = Scaling::per_vector_128;
  fp8.scaling_b = Scaling::per_block_128;
  EXPECT_PRED2(is_one_of, chosen(fp8), std::set<std::string>{"fp8_coop_192x128x128_c1x1"});  // pingpong fetches out of step
  // Last tiles of few rows, or of few columns.
  EXPECT_PRED2(is_one_of, chosen({.m = 1357, .n = 136, .k = 448}),
               (std::set<std::string>{"ping_64x64x64_c1x1", "coop_64x64x64_c1x1_swap", "coop_64x48x128_c1x1"}));
  EXPECT_PRED2(is_one_of, chosen({.m = 647, .n = 1600, .k = 1472}),
               (std::set<std::string>{"coop_128x96x64_c2x1", "coop_128x80x64_c1x2", "coop_128x80x64_c1x1"}));
  // 28 CTAs of a kernel with rings are too few for all of K.
  EXPECT_PRED2(is_one_of, chosen({.m = 14, .n = 896, .k = 12352}),
               (std::set<std::string>{"coop_16x64x128_c1x1_swap", "coop_16x64x256_c1x1_swap"}));
}

// The same GPU and day, sizes that no suite has.
TEST(Calibration, ChoicesForOddSizesAreThoseThatWereFastOnAnH100) {
  const auto chosen = [](std::int64_t m, std::int64_t n, std::int64_t k) {
    return kernel_key(plan({.m = m, .n = n, .k = k, .constant_b = true}, *find_device("h100-sxm"))->kernel);
  };
  // Rows begin between lines of L2, and ask for two: 125 us in pairs, 200 alone.
  EXPECT_EQ(chosen(7923, 512, 10888), "coop_128x256x64_c2x1");
  // Tiles that fit the rows: 64 us instead of 78 and more, 59 instead of 73.
  EXPECT_EQ(chosen(537, 4160, 9792), "coop_136x128x64_c2x1_swap");
  EXPECT_EQ(chosen(298, 12416, 4800), "coop_160x192x64_c1x2_swap");
  // In stream-K three tiles fetch the same weights from HBM at different times: 205 us, where others take 142 to 153.
  EXPECT_NE(chosen(328, 6016, 18688), "coop_128x256x64_c1x1");
}

// One H200, 26 November 2026, weights constant.
TEST(Calibration, ChoicesForOddSizesAreThoseThatWereFastOnAnH200) {
  const auto chosen = [](std::int64_t m, std::int64_t n, std::int64_t k) {
    return plan({.m = m, .n = n, .k = k, .constant_b = true}, *find_device("h200")).value();
  };
  // Ranges of a hybrid schedule lie at different K, and fetch A again: 385 to 395 us, where whole tiles of the same kernel take 339.
  EXPECT_NE(chosen(5812, 896, 17728).scheduler.kind, SchedulerKind::hybrid);
  // Beside few rows: 3.6 and 2.8 us in 64 x 48, on nearly all SMs, 2.9 and 2.4 on half of them.
  for (const Plan& p : {chosen(43, 6016, 248), chosen(62, 6336, 128)}) EXPECT_NE(kernel_key(p.kernel), "coop_64x48x128_c1x1");
  // Four strips for each warp, of two k-tiles: 5.1 us, where five kinds of tiles take 3.9 to 4.6.
  EXPECT_NE(chosen(4, 32192, 80).kernel.schedule, KernelSchedule::streaming);
}

TEST(Calibration, OptionsCompareWhatCalibrationsHold) {
  Calibration other = built_in_calibration();
  const PlanOptions usual, same{.calibration = shared(other)}, again{.calibration = shared(other)};
  other.ramp_us += 1;
  const PlanOptions different{.calibration = shared(other)};
  EXPECT_EQ(same, again);
  EXPECT_EQ(usual, same);
  EXPECT_NE(same, different);
  EXPECT_NE(usual, different);
  EXPECT_NE(usual, PlanOptions{.tile_m = 64});
  EXPECT_NE(usual, PlanOptions{.keep_candidates = false});
}

// As if `truth` were the GPU: the candidates that the built-in constants think good, with the times that `truth` predicts.
std::vector<CandidateTiming> times_of(const Calibration& truth, const std::vector<GemmProblem>& problems) {
  constexpr double kWithin = 1.7;
  std::vector<CandidateTiming> timings;
  for (const GemmProblem& problem : problems) {
    const Plan usual = *plan(problem, h200());
    for (const Candidate& candidate : usual.candidates) {
      if (candidate.verdict > CandidateVerdict::slower || candidate.predicted.total_us > kWithin * usual.predicted.total_us) continue;
      const int workers = worker_count(candidate.scheduler, h200(), candidate.kernel);
      const double factor = kernel_factor(truth, candidate.kernel);
      const PredictedTime t = predict(usual.problem, h200(), candidate.kernel, candidate.scheduler, workers, truth, factor);
      timings.push_back({.problem = problem, .candidate = candidate, .measured_us = t.total_us});
    }
  }
  return timings;
}

double mean_ratio(const std::vector<JudgedChoice>& choices) {
  double logarithms = 0;
  for (const JudgedChoice& choice : choices) logarithms += std::log(choice.ratio);
  return std::exp(logarithms / static_cast<double>(choices.size()));
}

double worst_ratio(const std::vector<JudgedChoice>& choices) {
  double worst = 1;
  for (const JudgedChoice& choice : choices) worst = std::max(worst, choice.ratio);
  return worst;
}

// Another GPU: slower memory and L2, dearer stages and meetings, and kernels that lie elsewhere.
Calibration another_gpu() {
  Calibration truth = built_in_calibration();
  truth.learnt.clear();
  truth.hbm_factor *= 0.8;
  truth.l2_factor *= 0.7;
  truth.stage_overhead_clk_cooperative *= 3;
  truth.hand_over_us *= 1.6;
  truth.collect_bytes_per_clk_per_sm *= 0.6;
  truth.launch_factor *= 1.5;
  truth.exposed_stores_pingpong *= 0.5;
  for (std::size_t i = 0; i < truth.kernel_factors.size(); ++i)
    truth.kernel_factors[i].factor *= std::array{1.0, 1.08, 0.94, 1.0, 0.9}[i % 5];
  return truth;
}

std::vector<GemmProblem> problems_of_all_kinds(std::int64_t n) {
  std::vector<GemmProblem> problems;
  for (const std::int64_t m : {1, 16, 64, 128, 512, 2048})
    for (const std::int64_t k : {2048, 7168}) problems.push_back({.m = m, .n = n, .k = k});
  problems.push_back({.m = 128, .n = 256, .k = 16384});
  problems.push_back({.m = 64, .n = n, .k = 4096, .constant_b = true});
  return problems;
}

TEST(FitCalibration, FindsTheConstantsBehindTheTimes) {
  const Calibration truth = another_gpu();
  const std::vector<CandidateTiming> seen = times_of(truth, problems_of_all_kinds(4096)),
                                     unseen = times_of(truth, problems_of_all_kinds(6144));
  ASSERT_GT(seen.size(), 500u);
  const Calibration fitted = fit_calibration(seen, h200(), built_in_calibration());
  EXPECT_TRUE(validate(fitted).ok()) << validate(fitted).error().message;
  EXPECT_NEAR(fitted.measured_hbm_gb_per_s_per_sm, h200().hbm_gb_per_s / h200().sm_count, 1e-9);

  const std::vector<JudgedChoice> before = judge_choices(seen, h200(), built_in_calibration()), after = judge_choices(seen, h200(), fitted);
  EXPECT_GT(mean_ratio(before), 1.01);
  EXPECT_LT(mean_ratio(after), 1.001);
  EXPECT_LT(worst_ratio(after), 1.01);
  EXPECT_LT(mean_ratio(judge_choices(unseen, h200(), fitted)), 1.01);
  EXPECT_GT(mean_ratio(judge_choices(unseen, h200(), built_in_calibration())), 1.015);
  EXPECT_EQ(mean_ratio(judge_choices(seen, h200(), truth)), 1);
  for (const JudgedChoice& choice : after) EXPECT_NEAR(choice.predicted_us / seen[choice.chosen].measured_us, 1, 0.08);

  EXPECT_EQ(fitted.provenance.shapes, 14);
  EXPECT_EQ(fitted.provenance.timings, static_cast<int>(seen.size()));
  EXPECT_NEAR(fitted.provenance.choice_mean, mean_ratio(after), 1e-3);
  EXPECT_NEAR(fitted.provenance.choice_worst, worst_ratio(after), 1e-3);
}

TEST(FitCalibration, IsAFunctionOfItsArguments) {
  const std::vector<CandidateTiming> seen = times_of(another_gpu(), {{.m = 64, .n = 4096, .k = 4096}, {.m = 2048, .n = 2048, .k = 2048}});
  EXPECT_EQ(fit_calibration(seen, h200(), built_in_calibration()), fit_calibration(seen, h200(), built_in_calibration()));
}

TEST(FitCalibration, LeavesTheRestAloneAndTimesThatAreNone) {
  std::vector<CandidateTiming> timings = times_of(built_in_calibration(), {{.m = 64, .n = 4096, .k = 4096}});
  Calibration fitted = fit_calibration({}, h200(), built_in_calibration());
  fitted.provenance = built_in_calibration().provenance;
  EXPECT_EQ(fitted, built_in_calibration());

  timings.resize(3);
  timings[0].measured_us = std::numeric_limits<double>::quiet_NaN();
  timings[1].measured_us = 0;
  timings[2].problem.m = -1;
  EXPECT_TRUE(judge_choices(timings, h200(), built_in_calibration()).empty());
  fitted = fit_calibration(timings, h200(), built_in_calibration());
  EXPECT_EQ(fitted.provenance.timings, 0);
  EXPECT_TRUE(validate(fitted).ok());
}

}  // namespace
}  // namespace sluice
