// Groups along K of FP8 operands whose sizes break the caller's promise, as a GPU would run them: run_on_emulator() refuses such sizes, the
// kernels must not.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "sluice/emulator.hpp"

#include "core/kernel_instances.hpp"
#include "gpu/gemm_case.hpp"
#include "launch/emulator/traced_on_emulator.hpp"
#include "placed_operands.hpp"

namespace sluice::test {
namespace {

// Those that compute groups along K by whole blocks: both schedules, both operand orders, with and without a cluster.
template <class F>
void for_each_fp8_kernel_along_k(F&& f) {
  for_each_kernel([&]<KernelConfig kernel>() {
    if constexpr (is_fp8(kernel.type_a) && kernel.type_a == kernel.type_b && kernel.tile_k == 128)
      if (resources(kernel).computes_groups_along_k) f(kernel, emulated_gemm_kernel<kernel>());
  });
}

TEST(GroupsOffBlocks, CountAsTheMultiplesBelow) {
  struct Sizes {
    std::vector<std::int32_t> given, counted;
  };
  const std::array<Sizes, 3> all = {Sizes{{-5, 130, 255, 700, 5000}, {0, 128, 128, 640, 768}},
                                    Sizes{{1, 127, 300, 299, 767}, {0, 0, 256, 256, 640}},
                                    Sizes{{100, 100, 2147483647, 5, -2147483647}, {0, 0, 768, 0, 0}}};
  std::uint64_t seed = 1;
  int schedules = 0, orders = 0;
  for_each_fp8_kernel_along_k([&](const KernelConfig& kernel, EmulatedKernel entry) {
    schedules |= 1 << static_cast<int>(kernel.schedule);
    orders |= 1 << static_cast<int>(kernel.order);
    for (const Sizes& sizes : all) {
      gpu_tests::GemmCase gemm_case{.what = "sizes between blocks", .exactness = bench::Exactness::exact, .groups = sizes.counted};
      GemmProblem& p = gemm_case.problem;
      p.m = 72, p.n = 136, p.k = 768;
      p.grouping = Grouping::along_k;
      p.scaling_a = p.scaling_b = Scaling::per_vector_128;
      p.scale_layout_a = Layout::column_major;
      const WorkClaim claim = seed % 2 == 0 ? WorkClaim::fixed : WorkClaim::ticket;
      const Plan made = plan(gpu_tests::problem_for(kernel, gemm_case), find_device("h10").value(),
                             {.claim = claim, .kernel_name = name(kernel), .keep_candidates = false})
                            .value();
      PlacedOperands operands(made.problem, gemm_case, seed);
      operands.poison();
      GemmArguments arguments = operands.arguments();
      arguments.groups = sizes.given.data();
      EXPECT_FALSE(run_on_emulator(made, arguments));
      const Status status = run_kernel_on_emulator([&](KernelScope) { return entry; }, made, arguments, {}, {}, {.seed = seed++}, {});
      ASSERT_TRUE(status) << name(kernel) << ": " << status.error().message;
      EXPECT_EQ(operands.judge(), "") << name(kernel) << ", sizes " << sizes.given[1];
    }
  });
  EXPECT_EQ(schedules, 1 << static_cast<int>(KernelSchedule::cooperative) | 1 << static_cast<int>(KernelSchedule::pingpong));
  EXPECT_EQ(orders, 1 << static_cast<int>(OperandOrder::rows_of_a) | 1 << static_cast<int>(OperandOrder::columns_of_b));
}

}  // namespace
}  // namespace sluice::test
