// The short kernels for plain products (launch/plain.hpp): taken where a call is plain, and nowhere else, with the bits of the long ones.
#include <gtest/gtest.h>

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

void nothing(const GemmParams&) {}

gpu_tests::GemmCase plain_case(const KernelConfig& kernel) {
  gpu_tests::GemmCase gemm_case{.what = "plain", .offset_scale_elems = 0};
  GemmProblem& p = gemm_case.problem;
  p.m = kernel.tile_m + 36, p.n = 2 * kernel.tile_n + 24, p.k = 5 * kernel.tile_k + 48;
  p.type_d = DataType::bf16;
  p.epilogue.alpha = 0.5f;
  if (is_fp8(kernel.type_a)) {
    p.scaling_a = Scaling::per_vector_128, p.scaling_b = Scaling::per_block_128;
    p.scale_layout_a = Layout::column_major;
  }
  gemm_case.options = {.scheduler = SchedulerKind::data_parallel, .claim = WorkClaim::fixed};
  return gemm_case;
}

// D, by `kernel` or, where the call is plain, `if_plain`.
std::vector<unsigned char> run_case(const KernelConfig& config, gpu_tests::GemmCase gemm_case, EmulatedKernel kernel,
                                    EmulatedKernel if_plain) {
  PlanOptions& options = gemm_case.options;
  options.kernel_name = name(config), options.keep_candidates = false;
  const Result<Plan> made = plan(gpu_tests::problem_for(config, gemm_case), find_device("h10").value(), options);
  EXPECT_TRUE(made) << made.error().message;
  PlacedOperands operands(made->problem, gemm_case, 7);
  operands.poison();
  const Status status = run_kernel_on_emulator(kernel, if_plain, *made, operands.arguments(), {}, {}, {.seed = 3}, {});
  EXPECT_TRUE(status) << name(config) << ": " << status.error().message;
  EXPECT_EQ(operands.judge(), "") << name(config);
  const auto* d = static_cast<const unsigned char*>(operands.arguments().d);
  return {d, d + gpu_tests::span_d(made->problem) * size_bytes(made->problem.type_d)};
}

template <class F>
void for_each_plain_pair(F&& f) {
  for_each_plain_kernel([&]<KernelConfig short_one>() {
    constexpr KernelConfig kListed = [] {
      KernelConfig config = short_one;
      config.plain = false;
      return config;
    }();
    f(kListed, emulated_gemm_kernel<kListed>(), emulated_gemm_kernel<short_one>());
  });
}

TEST(PlainKernels, GiveTheBitsOfTheLongOnes) {
  int kernels = 0;
  for_each_plain_pair([&](const KernelConfig& config, EmulatedKernel long_one, EmulatedKernel short_one) {
    const gpu_tests::GemmCase gemm_case = plain_case(config);
    EXPECT_TRUE(run_case(config, gemm_case, nothing, short_one) == run_case(config, gemm_case, long_one, nullptr)) << name(config);
    ++kernels;
  });
  EXPECT_GE(kernels, 10);
}

// Each of what plain kernels cannot do, by the long kernel alone: the other one does nothing.
TEST(PlainKernels, AreNotTakenForAnythingElse) {
  for_each_plain_pair([&](const KernelConfig& config, EmulatedKernel long_one, EmulatedKernel) {
    const bool fp8 = is_fp8(config.type_a);
    const auto changed = [&](auto&& change) {
      gpu_tests::GemmCase gemm_case = plain_case(config);
      change(gemm_case);
      run_case(config, gemm_case, long_one, nothing);
    };
    changed([](auto& c) { c.problem.type_d = DataType::fp32; });
    changed([](auto& c) { c.problem.epilogue.beta = 1.0f; });
    changed([](auto& c) { c.problem.epilogue.activation = Activation::relu; });
    changed([](auto& c) { c.options.claim = WorkClaim::ticket; });
    changed([](auto& c) { c.offset_d_elems = 1; });
    changed([](auto& c) {
      c.problem.grouping = Grouping::ragged, c.groups = {0, 17, static_cast<std::int32_t>(c.problem.m)};
      c.options.scheduler = SchedulerKind::data_parallel;
    });
    if (resources(config).joins_pieces) changed([](auto& c) { c.options.scheduler = SchedulerKind::split_k, c.options.splits = 2; });
    if (!fp8) return;
    changed([](auto& c) { c.offset_scale_elems = 1; });
    changed([](auto& c) { c.problem.scaling_b = Scaling::per_vector_128; });
    changed([](auto& c) { c.problem.scaling_a = c.problem.scaling_b = Scaling::per_tensor; });
  });
}

}  // namespace
}  // namespace sluice::test
