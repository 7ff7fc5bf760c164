// Pieces that meet in slices (Reduction::separate), in a cluster (Reduction::cluster) or as neighbours launched in a cluster, and whole
// tiles that are neighbours: however few of them run at once, nobody waits for ever, and D has the same bits.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "core/launched_clusters.hpp"
#include "gpu/scaled_cases.hpp"
#include "placed_operands.hpp"

namespace sluice::test {
namespace {

using gpu_tests::CPlace;
using gpu_tests::GemmCase;

constexpr std::array kAsynchronies = {Asynchrony::eager, Asynchrony::lazy, Asynchrony::mixed};
constexpr int kSeedsEach = 3;

// One consumer warpgroup and two, either operand on wgmma's 64-row side, tiles of one packet a thread, of a part of a chunk, of two blocks
// a warpgroup, half rings, scales that change along K.
constexpr std::array kKernels = {
    "bf16_rc_coop_64x96x128_c1x1",      "bf16_rc_coop_64x48x128_c1x1",         "bf16_rc_coop_128x128x64_c1x1",
    "bf16_rc_coop_128x80x64_c1x1",      "bf16_rc_coop_256x136x64_c1x1",        "bf16_rc_coop_8x64x256_c1x1_swap",
    "bf16_rc_coop_16x64x256_c1x1_swap", "bf16_rc_coop_32x64x128_c1x1_x2_swap", "e4m3_rc_coop_64x64x128_c1x1_swap"};
// Whose pieces meet in the workspace alone.
constexpr const char* kLarge = "bf16_rc_coop_256x136x64_c1x1";
constexpr const char* kPingpong = "bf16_rc_ping_64x64x64_c1x1";

constexpr int kNeighboursK = 1560;  // shorter products have none
// Of which the last row of tiles has `rows` rows, and the last column of them eight columns less than it could.
struct Shape {
  int tiles_m, tiles_n, k_tiles, rows;  // k_tiles: 0 for those that make kNeighboursK
};
struct Meeting {
  Reduction reduction;
  int splits;
  Shape shape;
};
constexpr std::array kMeetings = {
    Meeting{Reduction::separate, 3, {2, 2, 0, 3}},  Meeting{Reduction::workspace, 2, {4, 2, 0, 6}},
    Meeting{Reduction::separate, 2, {2, 1, 5, 3}},  Meeting{Reduction::separate, 3, {1, 2, 3, 7}},
    Meeting{Reduction::separate, 8, {1, 1, 11, 5}}, Meeting{Reduction::separate, 20, {1, 1, 23, 1}},
    Meeting{Reduction::cluster, 2, {1, 2, 3, 3}},   Meeting{Reduction::cluster, 4, {2, 1, 6, 7}},
    Meeting{Reduction::cluster, 8, {1, 1, 9, 8}},   Meeting{Reduction::workspace, 1, {5, 3, 0, 5}},
};

GemmCase case_of(const Meeting& meeting, const KernelConfig& kernel, int index) {
  GemmCase c{.what = std::string(to_string(meeting.reduction)) + " of " + std::to_string(meeting.splits)};
  const Shape& shape = meeting.shape;
  c.problem.m = (shape.tiles_m - 1) * kernel.tile_m + shape.rows;
  c.problem.n = shape.tiles_n * kernel.tile_n - (index % 2 == 0 ? 8 : 3);  // stored by the copy engine, or element by element
  // FP8 and large tiles have no neighbours, and are slow here.
  const bool long_k = shape.k_tiles == 0 && !is_fp8(kernel.type_a) && kernel.tile_m * kernel.tile_n <= 128 * 128;
  c.problem.k = (long_k ? kNeighboursK : std::max(3, shape.k_tiles) * kernel.tile_k) - 8 * (index % 3);
  c.problem.type_d = std::array{DataType::bf16, DataType::fp32, DataType::fp16}[static_cast<std::size_t>(index / 2 % 3)];
  if (meeting.splits > 1) c.options = {.scheduler = SchedulerKind::split_k, .reduction = meeting.reduction, .splits = meeting.splits};
  if (index % 4 == 1) c.problem.epilogue = {.bias = Bias::per_row};
  if (index % 4 == 3) {
    c.problem.epilogue = {.alpha = 0.5f, .beta = 1.5f, .bias = Bias::per_column};
    c.c = CPlace::is_d;
  }
  c.problem.constant_a = index % 3 == 1;
  c.problem.constant_b = index % 3 != 2;
  return gpu_tests::with_scales(std::move(c), kernel, index, gpu_tests::block_scale_kinds());
}

DeviceSpec device_of_24_sms() {
  DeviceSpec device = find_device("h10").value();
  device.sm_count = 24;
  device.clusters_of_2 = 12;
  return device;
}

struct Met {
  GemmCase gemm_case;
  Plan plan;
};

// All meetings that a kernel of the list can hold.
std::vector<Met> all_meetings() {
  std::vector<Met> all;
  int index = 0;
  std::vector<const char*> kernel_names(kKernels.begin(), kKernels.end());
  kernel_names.push_back(kPingpong);
  for (const char* kernel_name : kernel_names)
    for (const KernelConfig& kernel : kernel_list()) {
      if (name(kernel) != kernel_name) continue;
      for (const Meeting& meeting : kMeetings) {
        GemmCase c = case_of(meeting, kernel, index++);
        PlanOptions options = c.options;
        options.kernel_name = kernel_name;
        options.keep_candidates = false;
        Result<Plan> plan = sluice::plan(gpu_tests::problem_for(kernel, c), device_of_24_sms(), options);
        if (plan) all.push_back({.gemm_case = std::move(c), .plan = std::move(*plan)});
      }
    }
  return all;
}
const std::vector<Met>& meetings() {
  static const std::vector<Met> all = all_meetings();
  return all;
}

class EveryMeeting : public testing::TestWithParam<int> {
 protected:
  static const Met& met() { return meetings()[static_cast<std::size_t>(GetParam())]; }
};

TEST_P(EveryMeeting, EndsWithTheSameBitsHoweverManyRunAtOnce) {
  const auto& [gemm_case, plan] = met();
  const int clusters = launched_ctas(plan) / launched_cluster_size(plan);
  PlacedOperands operands(plan.problem, gemm_case, static_cast<std::uint64_t>(GetParam()));
  std::vector<unsigned char> first;
  // All at once, so that in the first run the pieces that come last find one another; then so few that most have to go before.
  for (const int resident : std::set<int, std::greater<>>{clusters, (clusters + 1) / 2, std::min(2, clusters), 1})
    for (int i = 0; i < kSeedsEach; ++i) {
      const EmulatorOptions options{.seed = static_cast<std::uint64_t>(GetParam() * 1000 + resident * 10 + i),
                                    .asynchrony = kAsynchronies[static_cast<std::size_t>(i) % kAsynchronies.size()],
                                    .resident_clusters = resident};
      operands.poison();
      const Status status = run_on_emulator(plan, operands.arguments(), options);
      const std::string where = describe(plan.problem) + ", " + std::to_string(resident) + " of " + std::to_string(clusters) +
                                " resident, seed " + std::to_string(options.seed) + ", " + to_string(options.asynchrony) + ": ";
      ASSERT_TRUE(status.ok()) << where << status.error().message;
      if (first.empty()) {
        ASSERT_EQ(operands.judge(), "") << where;
        first = operands.d_bytes();
      }
      ASSERT_EQ(operands.d_bytes(), first) << where << "other bits";
    }
}

std::string title(const testing::TestParamInfo<int>& info) {
  const Plan& plan = meetings()[static_cast<std::size_t>(info.param)].plan;
  return name(plan.kernel) + '_' + to_string(plan.scheduler.reduction) + '_' + std::to_string(plan.scheduler.splits) + "_of_" +
         std::to_string(plan.scheduler.tiles_m * plan.scheduler.tiles_n);
}

INSTANTIATE_TEST_SUITE_P(Small, EveryMeeting, testing::Range(0, static_cast<int>(meetings().size())), title);

TEST(Meetings, AreHeldByEveryKernelNamedHere) {
  std::set<std::string> separate, cluster, pieces_together, tiles_together;
  std::set<std::tuple<Reduction, int, int>> ways;
  bool without_work = false;
  for (const auto& [gemm_case, plan] : meetings()) {
    const SchedulerParams& s = plan.scheduler;
    if (s.reduction != Reduction::workspace) (s.reduction == Reduction::separate ? separate : cluster).insert(name(plan.kernel));
    if (neighbours(plan.problem, plan.device, plan.kernel, s) > 1)
      (s.splits > 1 ? pieces_together : tiles_together).insert(name(plan.kernel));
    without_work |= launched_ctas(plan) > plan.grid_ctas;
    ways.insert({s.reduction, s.splits, s.tiles_m});
    EXPECT_EQ(plan.workspace_bytes > 0, s.splits > 1 && s.reduction != Reduction::cluster);
  }
  EXPECT_EQ(pieces_together.size(), 4u) << "all but FP8, two CTAs on an SM, the smallest and the largest tiles, and pingpong";
  EXPECT_EQ(tiles_together.size(), 7u) << "the smallest and pingpong, too";
  EXPECT_TRUE(tiles_together.contains(kPingpong));
  EXPECT_TRUE(without_work) << "15 tiles are launched as two clusters of 8";
  for (const char* kernel_name : kKernels) {
    // Tiles of more than 64 accumulators a thread are not cut in many, nor do those of more than 128 meet in clusters.
    EXPECT_EQ(cluster.contains(kernel_name), std::string(kernel_name) != kLarge) << kernel_name;
    EXPECT_EQ(separate.contains(kernel_name), std::string(kernel_name) != kLarge) << kernel_name;
  }
  EXPECT_EQ(ways.size(), kMeetings.size());
}

// A plan put together by hand is refused before the kernel, which would do something else, begins.
TEST(Meetings, AreRefusedToKernelsThatCannot) {
  const auto refused = [](Plan plan, Reduction wanted, const std::string& piece) {
    plan.scheduler.reduction = wanted;
    plan.scheduler.lead = 0;
    plan.workspace_bytes = std::size_t{1} << 24;
    const GemmCase gemm_case{.what = "refused"};
    PlacedOperands operands(plan.problem, gemm_case, 1);
    const Status status = run_on_emulator(plan, operands.arguments());
    ASSERT_FALSE(status.ok()) << piece;
    EXPECT_EQ(status.error().code, ErrorCode::unsupported);
    EXPECT_NE(status.error().message.find(piece), std::string::npos) << status.error().message;
  };
  const auto planned = [](const char* kernel, Reduction reduction) {
    return plan(*validate({.m = 64, .n = 64, .k = 512}), device_of_24_sms(),
                {.scheduler = SchedulerKind::split_k, .reduction = reduction, .splits = 2, .kernel_name = kernel, .keep_candidates = false})
        .value();
  };
  refused(planned(kLarge, Reduction::workspace), Reduction::separate,
          "meet in slices, which those of bf16_rc_coop_256x136x64_c1x1 cannot; plan again");
  refused(planned("bf16_rc_coop_64x64x64_c1x1_swap_anyalign", Reduction::workspace), Reduction::cluster,
          "meet in a cluster, which those of bf16_rc_coop_64x64x64_c1x1_swap_anyalign cannot; plan again");
}

}  // namespace
}  // namespace sluice::test
