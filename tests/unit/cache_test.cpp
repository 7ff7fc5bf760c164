// The plan cache: what it finds again, what it forgets, and many threads at once.
#include <gtest/gtest.h>

#include <atomic>
#include <limits>
#include <thread>
#include <vector>

#include "sluice/plan_cache.hpp"

#include "devices.hpp"

namespace sluice {
namespace {

GemmProblem problem(std::int64_t m) { return {.m = m, .n = 256, .k = 128}; }

std::shared_ptr<const Plan> get(PlanCache& cache, const GemmProblem& p, const DeviceSpec& device = h200()) {
  const auto found = cache.get(p, device);
  EXPECT_TRUE(found.ok()) << found.error().message;
  return found.ok() ? *found : nullptr;
}

TEST(PlanCache, GivesThePlanAndThenTheSameOne) {
  PlanCache cache;
  const auto first = get(cache, problem(512));
  EXPECT_EQ(*first, *plan(problem(512), h200(), {.keep_candidates = false}));
  EXPECT_TRUE(first->candidates.empty());
  EXPECT_EQ(get(cache, problem(512)), first);
  EXPECT_EQ(cache.size(), 1u);
}

// One field of the question changed at a time: each must miss. Fields left out of the hash are still compared.
TEST(PlanCache, EveryFieldCounts) {
  PlanCache cache;
  GemmProblem base{.m = 256, .n = 256, .k = 256, .batch = 2};
  std::vector<GemmProblem> problems(1, base);
  const auto vary = [&](auto change) {
    problems.push_back(base);
    change(problems.back());
  };
  vary([](GemmProblem& p) { p.m = 264; });
  vary([](GemmProblem& p) { p.n = 264; });
  vary([](GemmProblem& p) { p.k = 264; });
  vary([](GemmProblem& p) { p.batch = 3; });
  vary([](GemmProblem& p) { p.type_a = p.type_b = DataType::fp16; });
  vary([](GemmProblem& p) { p.type_d = DataType::fp32; });
  vary([](GemmProblem& p) { p.layout_a = Layout::column_major; });
  vary([](GemmProblem& p) { p.layout_b = Layout::row_major; });
  vary([](GemmProblem& p) { p.lda = 264; });
  vary([](GemmProblem& p) { p.ldb = 264; });
  vary([](GemmProblem& p) { p.ldc = 264; });
  vary([](GemmProblem& p) { p.ldd = 264; });
  vary([](GemmProblem& p) { p.batch_stride_a = 0; });
  vary([](GemmProblem& p) { p.batch_stride_b = 0; });
  vary([](GemmProblem& p) { p.batch_stride_c = 0; });
  vary([](GemmProblem& p) { p.batch_stride_d = 1 << 20; });
  vary([](GemmProblem& p) { p.alignment_a_bytes = 8; });
  vary([](GemmProblem& p) { p.alignment_b_bytes = 8; });
  vary([](GemmProblem& p) { p.alignment_d_bytes = 8; });
  vary([](GemmProblem& p) { p.constant_a = true; });
  vary([](GemmProblem& p) { p.constant_b = true; });
  vary([](GemmProblem& p) { p.epilogue.alpha = 2; });
  vary([](GemmProblem& p) { p.epilogue.beta = 1; });
  vary([](GemmProblem& p) { p.epilogue.bias = Bias::per_row; });
  vary([](GemmProblem& p) { p.epilogue.activation = Activation::relu; });
  vary([](GemmProblem& p) { p.grouping = Grouping::ragged; });
  vary([](GemmProblem& p) { p.grouping = Grouping::ragged, p.expected_rows = 100; });
  vary([](GemmProblem& p) { p.grouping = Grouping::masked; });
  vary([](GemmProblem& p) { p.grouping = Grouping::masked, p.expected_rows = 100; });
  vary([](GemmProblem& p) { p.grouping = Grouping::masked, p.most_rows = 100; });
  base.type_a = base.type_b = DataType::e4m3;
  base.scaling_a = base.scaling_b = Scaling::per_vector_128;
  vary([](GemmProblem&) {});
  vary([](GemmProblem& p) { p.type_a = DataType::e5m2; });
  vary([](GemmProblem& p) { p.type_b = DataType::e5m2; });
  vary([](GemmProblem& p) { p.scaling_a = Scaling::per_block_128; });
  vary([](GemmProblem& p) { p.scaling_b = Scaling::none; });
  vary([](GemmProblem& p) { p.scale_layout_a = Layout::column_major; });
  vary([](GemmProblem& p) { p.scale_layout_b = Layout::column_major; });
  vary([](GemmProblem& p) { p.ld_scale_a = 4; });
  vary([](GemmProblem& p) { p.ld_scale_b = 4; });
  vary([](GemmProblem& p) { p.batch_stride_scale_a = 0; });
  vary([](GemmProblem& p) { p.batch_stride_scale_b = 0; });
  base.type_d = DataType::e4m3;
  base.scaling_d = Scaling::per_vector_128;
  vary([](GemmProblem&) {});
  vary([](GemmProblem& p) { p.scaling_d = Scaling::none; });
  vary([](GemmProblem& p) { p.scaling_d = Scaling::per_tensor; });
  vary([](GemmProblem& p) { p.scale_layout_d = Layout::column_major; });
  vary([](GemmProblem& p) { p.ld_scale_d = 4; });
  vary([](GemmProblem& p) { p.batch_stride_scale_d = 2000; });
  base = {.m = 256, .n = 256, .k = 256, .batch = 2, .type_b = DataType::int4};
  vary([](GemmProblem&) {});
  vary([](GemmProblem& p) { p.w4.group_size = 64; });
  vary([](GemmProblem& p) { p.w4.zero_points = true; });
  vary([](GemmProblem& p) { p.w4 = {.group_size = 64, .zero_points = true}; });
  vary([](GemmProblem& p) { p.batch_stride_b = 0; });
  for (const GemmProblem& p : problems) EXPECT_EQ(get(cache, p)->problem, *validate(p));
  EXPECT_EQ(cache.size(), problems.size());
  for (const GemmProblem& p : problems) EXPECT_EQ(get(cache, p)->problem, *validate(p));
  EXPECT_EQ(cache.size(), problems.size());
}

TEST(PlanCache, DevicesOfOneNameAreToldApart) {
  PlanCache cache;
  DeviceSpec slower = h200();
  slower.hbm_gb_per_s = 1000;
  DeviceSpec smaller = h200();
  smaller.sm_count = 100;
  smaller.clusters_of_2 = 50;
  get(cache, problem(4096));
  EXPECT_EQ(get(cache, problem(4096), slower)->device, slower);
  EXPECT_EQ(get(cache, problem(4096), smaller)->device, smaller);
  EXPECT_EQ(cache.size(), 3u);
}

TEST(PlanCache, TheOldestLeaves) {
  PlanCache cache(3);
  const auto first = get(cache, problem(1));
  const auto second = get(cache, problem(2));
  get(cache, problem(3));
  EXPECT_EQ(get(cache, problem(1)), first) << "being used does not make it younger, nor does it leave before its turn";
  get(cache, problem(4));
  EXPECT_EQ(cache.size(), 3u);
  EXPECT_EQ(get(cache, problem(2)), second);
  EXPECT_EQ(first->problem.m, 1) << "a plan that left the cache lives on with who holds it";
  EXPECT_NE(get(cache, problem(1)), first);  // made again
  EXPECT_EQ(cache.size(), 3u);
  EXPECT_NE(get(cache, problem(2)), second) << "2 was the oldest when 1 came back";
}

TEST(PlanCache, RoomForNone) {
  PlanCache cache(0);
  EXPECT_NE(get(cache, problem(1)), nullptr);
  EXPECT_EQ(cache.size(), 0u);
}

TEST(PlanCache, ErrorsAreNotKept) {
  PlanCache cache;
  const auto refused = cache.get(problem(-1), h200());
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(cache.size(), 0u);
}

// A NaN is not equal to itself: compared by value it would never be found, and fill the cache.
TEST(PlanCache, FindsAScaleThatIsNotANumber) {
  PlanCache cache;
  GemmProblem p = problem(64);
  p.epilogue.alpha = std::numeric_limits<float>::quiet_NaN();
  const auto first = get(cache, p);
  EXPECT_EQ(get(cache, p), first);
  EXPECT_EQ(cache.size(), 1u);
}

TEST(PlanCache, Moves) {
  PlanCache cache(8);
  const auto first = get(cache, problem(64));
  PlanCache moved = std::move(cache);
  EXPECT_EQ(get(moved, problem(64)), first);
}

// Hits, misses and evictions from many threads: everyone always gets the plan for the question asked, and the bound holds.
TEST(PlanCache, ManyThreads) {
  constexpr int kThreads = 8, kRounds = 1000, kProblems = 24;
  constexpr std::size_t kCapacity = 16;
  PlanCache cache(kCapacity);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < kRounds; ++i) {
        const std::int64_t m = 1 + (i * (t + 1)) % kProblems;
        const auto found = cache.get(problem(m), h200());
        if (!found || (*found)->problem.m != m || (*found)->device.sm_count != 132 || cache.size() > kCapacity) ++wrong;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(cache.size(), kCapacity);
}

// Two threads that ask for a new plan at the same moment end up with one and the same. Each round they wait for each
// other first, awake: a thread that sleeps would come too late to meet the other.
TEST(PlanCache, TheFirstToAddWins) {
  constexpr int kRounds = 1000;
  PlanCache cache;
  std::atomic<int> arrived{0};
  std::vector<std::shared_ptr<const Plan>> here(kRounds), there(kRounds);
  const auto ask = [&](std::vector<std::shared_ptr<const Plan>>& got) {
    for (int round = 0; round < kRounds; ++round) {
      ++arrived;
      while (arrived < 2 * (round + 1)) std::this_thread::yield();
      got[round] = *cache.get(problem(1 + round), h200());
    }
  };
  std::thread other([&] { ask(there); });
  ask(here);
  other.join();
  EXPECT_EQ(here, there);
  EXPECT_EQ(cache.size(), static_cast<std::size_t>(kRounds));
}

}  // namespace
}  // namespace sluice
