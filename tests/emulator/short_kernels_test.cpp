// The short kernels (launch/scope.hpp): taken where a call asks for no more than they have, and nowhere else, with the bits of the long
// ones.
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

using gpu_tests::GemmCase;

void nothing(const GemmParams&) {}

GemmCase plain_case(const KernelConfig& kernel) {
  GemmCase gemm_case{.what = "plain", .offset_scale_elems = 0};
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

// One that ends inside of a tile, none, one that begins and ends there, and several tiles.
GemmCase ragged_case(const KernelConfig& kernel) {
  GemmCase gemm_case = plain_case(kernel);
  gemm_case.problem.grouping = Grouping::ragged;
  gemm_case.problem.m = 2 * kernel.tile_m + 40;
  gemm_case.groups = {0, 17, 17, 36, static_cast<std::int32_t>(gemm_case.problem.m)};
  gemm_case.options.claim = WorkClaim::ticket;
  return gemm_case;
}
GemmCase masked_case(const KernelConfig& kernel) {
  GemmCase gemm_case = plain_case(kernel);
  gemm_case.problem.grouping = Grouping::masked;
  gemm_case.groups = {kernel.tile_m + 5, 0, 12};
  return gemm_case;
}

// D, by what `find` gives.
std::vector<unsigned char> run_case(const KernelConfig& config, GemmCase gemm_case, const FindEmulatedKernel& find) {
  PlanOptions& options = gemm_case.options;
  options.kernel_name = name(config), options.keep_candidates = false;
  const Result<Plan> made = plan(gpu_tests::problem_for(config, gemm_case), find_device("h10").value(), options);
  EXPECT_TRUE(made) << made.error().message;
  PlacedOperands operands(made->problem, gemm_case, 7);
  operands.poison();
  const Status status = run_kernel_on_emulator(find, *made, operands.arguments(), {}, {}, {.seed = 3}, {});
  EXPECT_TRUE(status) << name(config) << ": " << status.error().message;
  EXPECT_EQ(operands.judge(), "") << name(config);
  const auto* d = static_cast<const unsigned char*>(operands.arguments().d);
  return {d, d + gpu_tests::span_d(made->problem) * size_bytes(made->problem.type_d)};
}

struct Pair {
  KernelConfig config;  // of the long one
  EmulatedKernel long_one, short_one;
};
std::vector<Pair> pairs(KernelScope scope) {
  std::vector<Pair> all;
  for_each_short_kernel([&]<KernelConfig listed>() {
    constexpr KernelConfig kLong = with_scope(listed, KernelScope::all);
    if (listed.scope == scope) all.push_back({kLong, emulated_gemm_kernel<kLong>(), emulated_gemm_kernel<listed>()});
  });
  EXPECT_GE(all.size(), 7u);
  return all;
}

// Where the long kernel would do nothing.
void expect_bits_of_the_long_one(KernelScope scope, const Pair& pair, const GemmCase& gemm_case) {
  const auto by_short_one = run_case(pair.config, gemm_case, [&](KernelScope s) { return s == scope ? pair.short_one : nothing; });
  EXPECT_TRUE(by_short_one == run_case(pair.config, gemm_case, [&](KernelScope) { return pair.long_one; })) << name(pair.config);
}
// Where the short one would do nothing.
void expect_taken_by_the_long_one(KernelScope scope, const Pair& pair, const GemmCase& gemm_case) {
  run_case(pair.config, gemm_case, [&](KernelScope s) { return s == scope ? nothing : pair.long_one; });
}

template <class Make>
std::vector<GemmCase> what_no_short_one_can(const KernelConfig& config, Make&& make) {
  std::vector<GemmCase> all;
  const auto changed = [&](auto&& change) { change(all.emplace_back(make(config))); };
  changed([](auto& c) { c.problem.type_d = DataType::fp32; });
  changed([](auto& c) { c.problem.epilogue.beta = 1.0f; });
  changed([](auto& c) { c.problem.epilogue.activation = Activation::relu; });
  changed([](auto& c) { c.offset_d_elems = 1; });
  if (resources(config).joins_pieces)
    changed([](auto& c) { c.options.scheduler = SchedulerKind::hybrid, c.options.claim = WorkClaim::fixed; });
  if (!is_fp8(config.type_a)) return all;
  changed([](auto& c) { c.problem.scaling_b = Scaling::per_vector_128; });
  changed([](auto& c) { c.problem.scaling_a = c.problem.scaling_b = Scaling::per_tensor; });
  return all;
}

TEST(ShortKernels, OfPlainProductsGiveTheBitsOfTheLongOnes) {
  for (const Pair& pair : pairs(KernelScope::plain)) {
    expect_bits_of_the_long_one(KernelScope::plain, pair, plain_case(pair.config));
    if (!is_fp8(pair.config.type_a)) continue;
    GemmCase one_by_one = plain_case(pair.config), apart = one_by_one;
    one_by_one.problem.m += 1;
    apart.problem.scale_layout_a = Layout::row_major;
    expect_bits_of_the_long_one(KernelScope::plain, pair, one_by_one);
    expect_bits_of_the_long_one(KernelScope::plain, pair, apart);
  }
}

TEST(ShortKernels, OfGroupsGiveTheBitsOfTheLongOnes) {
  for (const Pair& pair : pairs(KernelScope::groups)) {
    expect_bits_of_the_long_one(KernelScope::groups, pair, ragged_case(pair.config));
    expect_bits_of_the_long_one(KernelScope::groups, pair, masked_case(pair.config));
    if (!is_fp8(pair.config.type_a)) continue;
    GemmCase one_by_one = masked_case(pair.config), apart = ragged_case(pair.config);
    one_by_one.offset_scale_elems = 1, one_by_one.options.claim = WorkClaim::ticket;
    apart.problem.scale_layout_a = Layout::row_major;
    expect_bits_of_the_long_one(KernelScope::groups, pair, one_by_one);
    expect_bits_of_the_long_one(KernelScope::groups, pair, apart);
  }
}

TEST(ShortKernels, OfPlainProductsAreNotTakenForAnythingElse) {
  for (const Pair& pair : pairs(KernelScope::plain)) {
    for (const GemmCase& gemm_case : what_no_short_one_can(pair.config, plain_case))
      expect_taken_by_the_long_one(KernelScope::plain, pair, gemm_case);
    const auto changed = [&](auto&& change) {
      GemmCase gemm_case = plain_case(pair.config);
      change(gemm_case);
      expect_taken_by_the_long_one(KernelScope::plain, pair, gemm_case);
    };
    changed([](auto& c) { c.options.claim = WorkClaim::ticket; });
    if (is_fp8(pair.config.type_a)) changed([](auto& c) { c.problem.scaling_a = Scaling::per_block_128; });
    expect_taken_by_the_long_one(KernelScope::plain, pair, masked_case(pair.config));
  }
}

TEST(ShortKernels, OfGroupsAreNotTakenForAnythingElse) {
  for (const Pair& pair : pairs(KernelScope::groups)) {
    for (const GemmCase& gemm_case : what_no_short_one_can(pair.config, ragged_case))
      expect_taken_by_the_long_one(KernelScope::groups, pair, gemm_case);
    expect_taken_by_the_long_one(KernelScope::groups, pair, plain_case(pair.config));
  }
}

}  // namespace
}  // namespace sluice::test
