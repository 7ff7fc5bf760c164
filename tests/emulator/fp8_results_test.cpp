// Results in FP8, by every kernel that can make them, on the emulated machine.
#include <gtest/gtest.h>

#include <array>

#include "gpu/fp8_result_case.hpp"

namespace sluice::test {
namespace {

class Fp8Results : public testing::TestWithParam<int> {};

TEST_P(Fp8Results, AreWhatQuantizeMakesOfResultsInFp32) {
  const KernelConfig& kernel = kernel_list()[static_cast<std::size_t>(GetParam())];
  constexpr std::array kAsynchronies = {Asynchrony::random, Asynchrony::lazy, Asynchrony::mixed, Asynchrony::eager};
  const DeviceSpec device = find_device("h10").value();
  constexpr int kSmallTile = 64 * 128;  // all cases of kernels with small tiles, some of the others, which take as long
  const bool some = kernel.tile_m * kernel.tile_n > kSmallTile;
  std::uint64_t seed = 0;
  for (const gpu_tests::Fp8ResultCase& one : gpu_tests::fp8_result_cases(kernel, GetParam(), some)) {
    const EmulatorOptions options{.seed = ++seed, .asynchrony = kAsynchronies[seed % kAsynchronies.size()]};
    const auto run = [&](const Plan& plan, const GemmArguments& arguments) { return run_on_emulator(plan, arguments, options); };
    EXPECT_EQ(gpu_tests::judge_fp8_result(kernel, one, device, run), "") << one.what << ": " << describe(one.problem);
  }
}

// The same cases by plain loops: what is expected of the emulator is not made by what it is compared with alone.
TEST_P(Fp8Results, ByPlainLoops) {
  const KernelConfig& kernel = kernel_list()[static_cast<std::size_t>(GetParam())];
  for (const gpu_tests::Fp8ResultCase& one : gpu_tests::fp8_result_cases(kernel, GetParam())) {
    const auto run = [](const Plan& plan, const GemmArguments& arguments) { return run_on_cpu(plan, arguments); };
    EXPECT_EQ(gpu_tests::judge_fp8_result(kernel, one, find_device("h10").value(), run), "") << one.what << ": " << describe(one.problem);
  }
}

INSTANTIATE_TEST_SUITE_P(KernelList, Fp8Results, testing::ValuesIn(gpu_tests::fp8_kernels()),
                         [](const testing::TestParamInfo<int>& info) { return name(kernel_list()[static_cast<std::size_t>(info.param)]); });

}  // namespace
}  // namespace sluice::test
