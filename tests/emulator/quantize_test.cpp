// The quantize kernels' own source on the emulated machine, beside the CPU's plain loops.
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "gpu/quantize_case.hpp"

namespace sluice::gpu_tests {
namespace {

TEST(QuantizeOnEmulator, IsWhatTheCpuMakesOfEveryCase) {
  constexpr std::array kAsynchronies = {Asynchrony::eager, Asynchrony::lazy, Asynchrony::mixed};
  std::uint64_t seed = 0;
  for (const QuantizeCase& each : quantize_cases(true)) {
    ++seed;
    QuantizeOperands got = make_operands(each, seed), expected = make_operands(each, seed);
    const Status on_cpu = quantize_on_cpu(each.problem, expected.arguments());
    ASSERT_TRUE(on_cpu.ok()) << describe(each) << ": " << on_cpu.error().message;
    const Status status =
        quantize_on_emulator(each.problem, got.arguments(), {.seed = seed, .asynchrony = kAsynchronies[seed % kAsynchronies.size()]});
    ASSERT_TRUE(status.ok()) << describe(each) << ": " << status.error().message;
    ASSERT_EQ(differences(each, got, expected), "");
  }
}

TEST(QuantizeOnEmulator, RefusesWhatTheGpuWould) {
  QuantizeCase each{.problem = *validate(QuantizeProblem{.m = 3, .k = 130})};
  QuantizeOperands operands = make_operands(each, 1);
  QuantizeArguments arguments = operands.arguments();
  arguments.q = nullptr;
  EXPECT_EQ(quantize_on_emulator(each.problem, arguments).error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(quantize_on_emulator(each.problem, operands.arguments(), {.resident_clusters = -1}).error().code, ErrorCode::invalid_argument);
  QuantizeProblem empty = each.problem;
  empty.m = 0;
  EXPECT_TRUE(quantize_on_emulator(empty, {}).ok());
}

}  // namespace
}  // namespace sluice::gpu_tests
