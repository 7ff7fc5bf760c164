// Plan files and the cache that loads them: there and back, what is refused, and who is preferred.
#include <gtest/gtest.h>

#include <atomic>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "sluice/plan_cache.hpp"

#include "devices.hpp"

namespace sluice {
namespace {

using Json = nlohmann::ordered_json;

GemmProblem problem(std::int64_t m) { return {.m = m, .n = 1024, .k = 512}; }

// The plan of a kernel that the planner does not choose by itself.
TunedPlan tuned(const GemmProblem& p, const DeviceSpec& device = h200()) {
  const Result<Plan> own = plan(p, device);
  EXPECT_TRUE(own.ok()) << own.error().message;
  const Candidate* other = nullptr;
  for (const Candidate& candidate : own->candidates)
    if (candidate.verdict == CandidateVerdict::slower) other = &candidate;  // the slowest
  EXPECT_NE(other, nullptr);
  PlanOptions options{.scheduler = other->scheduler.kind, .kernel_name = name(other->kernel), .keep_candidates = false};
  if (other->scheduler.kind == SchedulerKind::split_k)
    options.splits = other->scheduler.splits, options.reduction = other->scheduler.reduction;
  if (other->scheduler.kind > SchedulerKind::data_parallel) options.min_k_tiles = other->scheduler.min_k_tiles;
  TunedPlan result{.plan = *plan(p, device, options), .measured_us = 1.0 / 3.0, .planner_kernel = name(own->kernel), .planner_us = 2.5};
  result.planner_scheduler = own->scheduler.kind;
  result.planner_splits = own->scheduler.splits;
  EXPECT_NE(result.plan.kernel, own->kernel);
  return result;
}

std::shared_ptr<const Plan> get(PlanCache& cache, const GemmProblem& p, const DeviceSpec& device = h200()) {
  const auto found = cache.get(p, device);
  EXPECT_TRUE(found.ok()) << found.error().message;
  return found.ok() ? *found : nullptr;
}

std::size_t load(PlanCache& cache, const std::vector<TunedPlan>& plans) {
  const Result<std::size_t> count = cache.load(to_json(plans));
  EXPECT_TRUE(count.ok()) << count.error().message;
  return count.ok() ? *count : 0;
}

// Three plans, one value of the file replaced.
std::string with(const std::string& pointer, const Json& value) {
  Json json = Json::parse(to_json(std::vector{tuned(problem(16)), tuned(problem(64)), tuned(problem(300))}));
  json[Json::json_pointer(pointer)] = value;
  return json.dump();
}

void expect_refused(const std::string& text, ErrorCode code, const std::vector<std::string>& pieces) {
  PlanCache cache;
  const Result<std::size_t> count = cache.load(text);
  ASSERT_FALSE(count.ok()) << "accepted; expected '" << pieces.front() << "'";
  EXPECT_EQ(count.error().code, code) << count.error().message;
  for (const std::string& piece : pieces)
    EXPECT_NE(count.error().message.find(piece), std::string::npos) << "'" << piece << "' is not in: " << count.error().message;
  EXPECT_EQ(cache.size(), 0u) << "nothing of a file that is refused is loaded";
}

TEST(PlanFile, ReadsBackEqual) {
  std::vector<TunedPlan> plans = {tuned(problem(16)), tuned({.m = 64, .n = 4096, .k = 4096, .constant_b = true})};
  plans.push_back(tuned({.m = 64, .n = 256, .k = 4096, .batch = 3, .type_d = DataType::fp32, .lda = 5000, .epilogue = {.beta = 1}}));
  const Result<std::vector<TunedPlan>> back = tuned_plans_from_json(to_json(plans));
  ASSERT_TRUE(back.ok()) << back.error().message;
  EXPECT_EQ(*back, plans);
  EXPECT_EQ(to_json(*back), to_json(plans));
}

TEST(PlanFile, MayBeEmpty) {
  PlanCache cache;
  EXPECT_EQ(load(cache, {}), 0u);
  EXPECT_EQ(cache.size(), 0u);
}

TEST(PlanFile, WhatIsWrongIsNamed) {
  expect_refused("", ErrorCode::bad_format, {"not JSON: at byte"});
  expect_refused("[]", ErrorCode::bad_format, {"sluice-plans", "sluice tune"});
  expect_refused("{}", ErrorCode::bad_format, {"sluice-plans"});
  expect_refused(to_json(tuned(problem(16)).plan), ErrorCode::bad_format, {"sluice-plans"});
  expect_refused(with("/version", 2), ErrorCode::bad_format, {"version 1", "sluice tune"});
  expect_refused(with("/plans", 5), ErrorCode::bad_format, {"\"plans\""});
  expect_refused(with("/plans/1", 5), ErrorCode::bad_format, {"plans[1].measured_us is missing"});
  expect_refused(with("/plans/1/measured_us", 0), ErrorCode::bad_format, {"plans[1] (64 x 1024 x 512).measured_us", "above 0"});
  expect_refused(with("/plans/1/measured_us", "fast"), ErrorCode::bad_format, {"plans[1] (64 x 1024 x 512).measured_us"});
  expect_refused(with("/plans/2/planner/measured_us", -1), ErrorCode::bad_format, {"plans[2] (300 x 1024 x 512).planner.measured_us"});
  expect_refused(with("/plans/2/planner/splits", 0), ErrorCode::bad_format, {"planner.splits", "from 1"});
  expect_refused(with("/plans/2/planner/scheduler", "magic"), ErrorCode::bad_format, {"planner.scheduler", "not known"});
  expect_refused(with("/plans/2/planner/kernel", 1), ErrorCode::bad_format, {"planner.kernel must be a string"});
  expect_refused(with("/plans/0/planner", 1), ErrorCode::bad_format, {"plans[0] (16 x 1024 x 512).planner.kernel is missing"});
  expect_refused(with("/plans/0/plan", Json::object()), ErrorCode::bad_format, {"plans[0].plan: ", "sluice-plan"});
}

TEST(PlanFile, PlansThatDoNotFitThisBuildOrTheirDeviceAreRefused) {
  expect_refused(with("/plans/1/plan/kernel/tile_m", 136), ErrorCode::unsupported,
                 {"plans[1] (64 x 1024 x 512).plan: kernel: this build has no bf16_rc", "make the plan again"});
  expect_refused(with("/plans/1/plan/device/sm_count", 7), ErrorCode::invalid_argument, {"plans[1] (64 x 1024 x 512).plan: device 'h200'"});
  expect_refused(with("/plans/1/plan/device/compute_capability", 100), ErrorCode::wrong_device, {"plans[1]", "10.0"});
  expect_refused(with("/plans/1/plan/grid_ctas", 100000), ErrorCode::bad_format, {"plans[1]", "grid_ctas = 100000"});
  expect_refused(with("/plans/1/plan/problem/n", 100000), ErrorCode::invalid_argument, {"plans[1] (64 x 100000 x 512).plan: ldc = 1024"});
}

// Every way to compute a product that the planner weighs can be kept in a file.
TEST(PlanFile, HoldsAnyCandidate) {
  const GemmProblem p{.m = 64, .n = 2048, .k = 16384, .constant_b = true};
  const Result<Plan> own = plan(p, h200());
  ASSERT_TRUE(own.ok());
  std::vector<TunedPlan> plans;
  for (const Candidate& candidate : own->candidates) {
    if (candidate.verdict != CandidateVerdict::chosen && candidate.verdict != CandidateVerdict::slower) continue;
    PlanOptions options{.scheduler = candidate.scheduler.kind, .kernel_name = name(candidate.kernel), .keep_candidates = false};
    if (candidate.scheduler.kind == SchedulerKind::split_k)
      options.splits = candidate.scheduler.splits, options.reduction = candidate.scheduler.reduction;
    if (candidate.scheduler.kind > SchedulerKind::data_parallel) options.min_k_tiles = candidate.scheduler.min_k_tiles;
    plans.push_back({.plan = *plan(p, h200(), options), .measured_us = 1, .planner_kernel = "a_kernel", .planner_us = 1});
    EXPECT_EQ(plans.back().plan.scheduler, candidate.scheduler);
  }
  EXPECT_GT(plans.size(), 50u);
  const Result<std::vector<TunedPlan>> back = tuned_plans_from_json(to_json(plans));
  ASSERT_TRUE(back.ok()) << back.error().message;
  EXPECT_EQ(*back, plans);
  PlanCache cache;
  EXPECT_EQ(load(cache, plans), plans.size());
  EXPECT_EQ(cache.size(), 1u) << "one question, of which the last answer stays";
  EXPECT_EQ(*get(cache, p), plans.back().plan);
}

TEST(LoadedPlans, AreGivenForTheirProblemAndDeviceAlone) {
  PlanCache cache;
  const TunedPlan one = tuned(problem(64));
  EXPECT_EQ(load(cache, {one}), 1u);
  EXPECT_EQ(cache.size(), 1u);
  EXPECT_EQ(*get(cache, problem(64)), one.plan);
  EXPECT_EQ(*get(cache, *validate(problem(64))), one.plan) << "strides given or left to be dense: the same problem";
  EXPECT_EQ(cache.size(), 1u);

  GemmProblem constant = problem(64);
  constant.constant_b = true;
  DeviceSpec slower = h200();
  slower.hbm_gb_per_s = 1000;
  EXPECT_EQ(*get(cache, constant), *plan(constant, h200(), {.keep_candidates = false}));
  EXPECT_EQ(*get(cache, problem(64), slower), *plan(problem(64), slower, {.keep_candidates = false}));
  EXPECT_EQ(*get(cache, problem(65)), *plan(problem(65), h200(), {.keep_candidates = false}));
  EXPECT_EQ(cache.size(), 4u);
}

TEST(LoadedPlans, TakeThePlaceOfWhatWasMadeBefore) {
  PlanCache cache;
  const auto made = get(cache, problem(64)), made_too = get(cache, *validate(problem(64))), other = get(cache, problem(65));
  EXPECT_EQ(cache.size(), 3u);
  const TunedPlan one = tuned(problem(64));
  load(cache, {one});
  EXPECT_EQ(cache.size(), 2u) << "both ways to ask are gone, the other problem stays";
  EXPECT_EQ(*get(cache, problem(64)), one.plan);
  EXPECT_EQ(*get(cache, *validate(problem(64))), one.plan);
  EXPECT_EQ(get(cache, problem(65)), other);
  EXPECT_EQ(made->problem.m, 64) << "a plan that left the cache lives on with who holds it";

  TunedPlan later = one;
  later.plan = *plan(problem(64), h200(), {.keep_candidates = false});
  load(cache, {later});
  EXPECT_EQ(*get(cache, problem(64)), later.plan) << "a later file counts";
  EXPECT_EQ(cache.size(), 2u);
}

TEST(LoadedPlans, NeverLeaveByAge) {
  for (const std::size_t capacity : {0u, 2u}) {
    PlanCache cache(capacity);
    const TunedPlan one = tuned(problem(64)), two = tuned(problem(128));
    load(cache, {one, two});
    const auto first = get(cache, problem(64));
    for (std::int64_t m = 1; m <= 10; ++m) get(cache, problem(m));
    EXPECT_EQ(cache.size(), 2 + capacity);
    EXPECT_EQ(get(cache, problem(64)), first);
    EXPECT_EQ(*get(cache, problem(128)), two.plan);
  }
}

TEST(LoadedPlans, SurviveARefusedFileAndAMove) {
  PlanCache cache;
  const TunedPlan one = tuned(problem(64));
  load(cache, {one});
  EXPECT_FALSE(cache.load(with("/plans/2/measured_us", 0)).ok());
  EXPECT_EQ(cache.size(), 1u);
  PlanCache moved = std::move(cache);
  EXPECT_EQ(*get(moved, problem(64)), one.plan);
}

// While one thread loads, others ask: from the moment load() returns nobody gets anything but the loaded plan.
TEST(LoadedPlans, ManyThreads) {
  constexpr int kThreads = 4, kRounds = 50;
  const TunedPlan one = tuned(problem(64));
  const std::string file = to_json(std::vector{one});
  const Plan own = *plan(problem(64), h200(), {.keep_candidates = false});
  for (int round = 0; round < kRounds; ++round) {
    PlanCache cache;
    std::atomic<bool> loaded{false};
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t)
      threads.emplace_back([&] {
        for (int after = 0; after < 3;) {
          const bool late = loaded;
          const auto got = cache.get(problem(64), h200());
          if (!got || (**got != one.plan && (late || **got != own))) ++wrong;
          if (late) ++after;
        }
      });
    if (!cache.load(file)) ++wrong;
    loaded = true;
    for (std::thread& thread : threads) thread.join();
    ASSERT_EQ(wrong, 0);
    ASSERT_EQ(cache.size(), 1u);
  }
}

}  // namespace
}  // namespace sluice
