// The histogram kernels' own source on the emulated machine, beside the CPU's plain loops.
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "gpu/histogram_case.hpp"

namespace sluice::gpu_tests {
namespace {

TEST(HistogramOnEmulator, CountsAsTheCpuDoes) {
  constexpr std::array kAsynchronies = {Asynchrony::eager, Asynchrony::lazy, Asynchrony::mixed};
  std::uint64_t seed = 0;
  for (const HistogramCase& each : histogram_cases(true)) {
    ++seed;
    HistogramOperands got = make_operands(each, seed), expected = make_operands(each, seed);
    const Status on_cpu = histogram_on_cpu(each.problem, expected.arguments());
    ASSERT_TRUE(on_cpu.ok()) << describe(each) << ": " << on_cpu.error().message;
    const Status status =
        histogram_on_emulator(plan_of(each), got.arguments(), {.seed = seed, .asynchrony = kAsynchronies[seed % kAsynchronies.size()]});
    ASSERT_TRUE(status.ok()) << describe(each) << ": " << status.error().message;
    ASSERT_EQ(differences(each, got, expected), "");
  }
}

TEST(HistogramOnEmulator, PlansForItself) {
  HistogramCase each{.problem = {.n = 1000, .bins = 300}};
  HistogramOperands got = make_operands(each, 1), expected = make_operands(each, 1);
  ASSERT_TRUE(histogram_on_cpu(each.problem, expected.arguments()).ok());
  ASSERT_TRUE(histogram_on_emulator(each.problem, got.arguments()).ok());
  EXPECT_EQ(differences(each, got, expected), "");
  each.problem.n = 0;
  ASSERT_TRUE(histogram_on_cpu(each.problem, expected.arguments()).ok());
  ASSERT_TRUE(histogram_on_emulator(each.problem, got.arguments()).ok());
  EXPECT_EQ(differences(each, got, expected), "");
}

TEST(HistogramOnEmulator, RefusesWhatTheGpuWould) {
  const HistogramCase each{.problem = {.n = 100, .bins = 300}};
  HistogramOperands operands = make_operands(each, 1);
  HistogramArguments arguments = operands.arguments();
  arguments.counts = nullptr;
  EXPECT_EQ(histogram_on_emulator(each.problem, arguments).error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(histogram_on_emulator(each.problem, operands.arguments(), {.resident_clusters = -1}).error().code, ErrorCode::invalid_argument);
  HistogramPlan plan = plan_of(each);
  plan.way.field_bits = 12;
  EXPECT_EQ(histogram_on_emulator(plan, operands.arguments()).error().code, ErrorCode::unsupported);
}

}  // namespace
}  // namespace sluice::gpu_tests
