// Schedules that wait: whatever the claim, and however few of the grid's clusters run at once, nobody waits for ever, and D has the same
// bits.
#include <gtest/gtest.h>

#include <array>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "core/launched_clusters.hpp"
#include "gpu/scaled_cases.hpp"
#include "placed_operands.hpp"

namespace sluice::test {
namespace {

constexpr int kPlaces = 4;  // clusters that the device holds
constexpr int kSeedsEach = 6;
constexpr std::array kAsynchronies = {Asynchrony::eager, Asynchrony::lazy, Asynchrony::mixed};

struct Way {
  SchedulerKind kind;
  WorkClaim claim;
  int clusters_m, clusters_n, k_tiles;  // how large the output is
  int splits = 0;
  int regions = 0;
};
using enum SchedulerKind;
constexpr std::array kWays = {Way{split_k, WorkClaim::fixed, 2, 1, 7, 3},    Way{split_k, WorkClaim::ticket, 2, 1, 7, 4},
                              Way{stream_k, WorkClaim::fixed, 1, 3, 5},      Way{stream_k, WorkClaim::ticket, 1, 3, 5},
                              Way{stream_k, WorkClaim::ticket, 1, 1, 9},     Way{stream_k, WorkClaim::fixed, 2, 1, 9, 0, 2},
                              Way{hybrid, WorkClaim::fixed, 3, 3, 3},        Way{hybrid, WorkClaim::ticket, 3, 3, 3},
                              Way{data_parallel, WorkClaim::ticket, 3, 3, 2}};
constexpr std::array kKernels = {"bf16_rc_coop_64x96x128_c1x1", "bf16_rc_ping_64x64x64_c1x1", "bf16_rc_coop_64x64x128_c2x1_swap",
                                 "e4m3_rc_coop_64x64x128_c1x1_swap"};

Plan plan_for(const Way& way, const KernelConfig& kernel, gpu_tests::GemmCase& gemm_case) {
  gemm_case.problem.m = way.clusters_m * kernel.tile_m * kernel.cluster_m - 3;
  gemm_case.problem.n = way.clusters_n * kernel.tile_n * kernel.cluster_n - 8;
  gemm_case.problem.k = way.k_tiles * kernel.tile_k - 8;
  gemm_case.problem.constant_a = way.k_tiles % 2 == 1;  // fetched early, as far as the first item goes
  gemm_case.problem.constant_b = way.claim == WorkClaim::fixed;
  gemm_case = gpu_tests::with_scales(gemm_case, kernel, 0);
  DeviceSpec device = find_device("h10").value();
  device.sm_count = 2 * kPlaces;
  device.clusters_of_2 = kPlaces;
  if (kernel.cluster_m * kernel.cluster_n == 1) device.sm_count = kPlaces, device.clusters_of_2 = kPlaces / 2;
  PlanOptions options{.scheduler = way.kind, .claim = way.claim, .splits = way.splits, .stream_k_regions = way.regions};
  options.kernel_name = name(kernel);
  options.keep_candidates = false;
  return plan(gpu_tests::problem_for(kernel, gemm_case), device, options).value();
}

const KernelConfig& kernel_named(const char* wanted) {
  for (const KernelConfig& each : kernel_list())
    if (name(each) == wanted) return each;
  throw std::runtime_error(std::string(wanted) + " has left the list: choose another small one");
}

EmulatorOptions options_with(int resident, int seed) {
  return {.seed = static_cast<std::uint64_t>(seed + 100 * resident),
          .asynchrony = kAsynchronies[static_cast<std::size_t>(seed) % kAsynchronies.size()],
          .resident_clusters = resident};
}

class EverySchedule : public testing::TestWithParam<std::tuple<const char*, int>> {
 protected:
  static const KernelConfig& kernel() { return kernel_named(std::get<0>(GetParam())); }
  static const Way& way() { return kWays[static_cast<std::size_t>(std::get<1>(GetParam()))]; }
};

TEST_P(EverySchedule, EndsWithTheSameBitsHoweverManyClustersRunAtOnce) {
  gpu_tests::GemmCase gemm_case{.what = to_string(way().kind)};
  const Plan plan = plan_for(way(), kernel(), gemm_case);
  const int clusters = plan.grid_ctas / (kernel().cluster_m * kernel().cluster_n);
  ASSERT_GT(clusters, 1);
  ASSERT_GT(plan.workspace_bytes, 0u);
  PlacedOperands operands(plan.problem, gemm_case, 7);
  std::vector<unsigned char> first;
  for (int resident = 1; resident <= clusters; ++resident)
    for (int seed = 0; seed < kSeedsEach; ++seed) {
      const EmulatorOptions options = options_with(resident, seed);
      operands.poison();
      const Status status = run_on_emulator(plan, operands.arguments(), options);
      ASSERT_TRUE(status.ok()) << resident << " of " << clusters << " resident: " << status.error().message;
      if (first.empty()) {
        ASSERT_EQ(operands.judge(), "");
        first = operands.d_bytes();
      }
      ASSERT_EQ(operands.d_bytes(), first) << resident << " of " << clusters << " resident, seed " << options.seed << ": other bits";
    }
}

std::string title(const testing::TestParamInfo<std::tuple<const char*, int>>& info) {
  const auto& [kernel, number] = info.param;
  const Way& way = kWays[static_cast<std::size_t>(number)];
  std::string text = std::string(kernel) + '_' + to_string(way.kind) + '_' + to_string(way.claim) + '_' + std::to_string(number);
  for (char& c : text)
    if (c == '-') c = '_';
  return text;
}

INSTANTIATE_TEST_SUITE_P(Small, EverySchedule,
                         testing::Combine(testing::ValuesIn(kKernels), testing::Range(0, static_cast<int>(kWays.size()))), title);

// Tiles dealt by place (core/launched_clusters.hpp): fewer CTAs than the grid has take the places of those that are not there, too.
void expect_every_place_taken(const Plan& plan, const gpu_tests::GemmCase& gemm_case) {
  ASSERT_TRUE(dealt_by_place(plan));
  PlacedOperands operands(plan.problem, gemm_case, 7);
  for (int resident = 1; resident <= kPlaces; ++resident)
    for (int seed = 0; seed < kSeedsEach; ++seed) {
      operands.poison();
      const Status status = run_on_emulator(plan, operands.arguments(), options_with(resident, seed));
      ASSERT_TRUE(status.ok()) << resident << " resident: " << status.error().message;
      ASSERT_EQ(operands.judge(), "") << name(plan.kernel) << ", " << resident << " resident, seed " << seed;
    }
}

TEST(Places, EveryTileIsSomebodysHoweverManyClustersRunAtOnce) {
  for (const char* kernel_name : {"bf16_rc_coop_64x96x128_c1x1", "bf16_rc_ping_64x64x64_c1x1"}) {
    const KernelConfig& kernel = kernel_named(kernel_name);
    gpu_tests::GemmCase gemm_case{.what = "places"};
    const Plan plan = plan_for({data_parallel, WorkClaim::fixed, 2, 2, 1600 / kernel.tile_k + 1}, kernel, gemm_case);
    ASSERT_NO_FATAL_FAILURE(expect_every_place_taken(plan, gemm_case));
  }
}

// Those of groups, too, whose CTAs take further tiles behind the first, as many for each as there are.
TEST(Places, EveryTileOfGroupsIsSomebodysHoweverManyClustersRunAtOnce) {
  const KernelConfig& kernel = kernel_named("e4m3_rc_coop_128x128x128_c1x1");
  gpu_tests::GemmCase gemm_case{.what = "places of groups"};
  gemm_case.groups = {70, 0, 100, 128, 1};
  GemmProblem& p = gemm_case.problem;
  p.m = 128, p.n = 2 * kernel.tile_n - 16, p.k = 3 * kernel.tile_k;
  p.grouping = Grouping::masked;
  p.scaling_a = Scaling::per_vector_128;
  p.scaling_b = Scaling::per_block_128;
  p.scale_layout_a = Layout::column_major;
  DeviceSpec device = find_device("h10").value();
  device.sm_count = kPlaces, device.clusters_of_2 = kPlaces / 2;
  const PlanOptions options{.kernel_name = name(kernel), .keep_candidates = false};
  expect_every_place_taken(plan(gpu_tests::problem_for(kernel, gemm_case), device, options).value(), gemm_case);
}

}  // namespace
}  // namespace sluice::test
