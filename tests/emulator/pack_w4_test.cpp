// The source of the kernels that pack weights of 4 bits and permute columns, on the emulated machine, beside the CPU's plain loops.
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "gpu/pack_w4_case.hpp"

namespace sluice::gpu_tests {
namespace {

constexpr std::array kAsynchronies = {Asynchrony::eager, Asynchrony::lazy, Asynchrony::mixed};

TEST(PackW4OnEmulator, MakesTheBytesOfTheCpu) {
  std::uint64_t seed = 0;
  for (const PackW4Case& each : pack_w4_cases(true)) {
    ++seed;
    PackW4Operands got = make_operands(each, seed), expected = make_operands(each, seed);
    const Status on_cpu = pack_w4_on_cpu(each.problem, expected.arguments());
    ASSERT_TRUE(on_cpu.ok()) << describe(each) << ": " << on_cpu.error().message;
    const Status status =
        pack_w4_on_emulator(each.problem, got.arguments(), {.seed = seed, .asynchrony = kAsynchronies[seed % kAsynchronies.size()]});
    ASSERT_TRUE(status.ok()) << describe(each) << ": " << status.error().message;
    ASSERT_EQ(differences(describe(each), got.packed, expected.packed), "");
  }
}

TEST(PackW4OnEmulator, RefusesWhatTheGpuWould) {
  PackW4Case each{.problem = {.n = 8, .k = 64, .format = {.group_size = 64, .zero_points = true}, .source = W4Source::gptq}};
  PackW4Operands operands = make_operands(each, 1);
  PackW4Arguments arguments = operands.arguments();
  arguments.zeros = nullptr;
  EXPECT_EQ(pack_w4_on_emulator(each.problem, arguments).error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(pack_w4_on_emulator(each.problem, operands.arguments(), {.resident_clusters = -1}).error().code, ErrorCode::invalid_argument);
  EXPECT_TRUE(pack_w4_on_emulator({.n = 0, .k = 64}, {}).ok());
  // An order that leads elsewhere is seen when it is followed.
  std::vector<std::int32_t> order(64, 64);
  arguments = operands.arguments();
  arguments.order = order.data();
  EXPECT_EQ(pack_w4_on_emulator(each.problem, arguments).error().code, ErrorCode::emulation);
}

TEST(PermuteColumnsOnEmulator, MakesTheElementsOfTheCpu) {
  std::uint64_t seed = 0;
  for (const PermuteCase& each : permute_cases(true)) {
    ++seed;
    PermuteOperands got = make_operands(each, seed), expected = make_operands(each, seed);
    const auto order = [](PermuteOperands& operands) { return static_cast<const std::int32_t*>(operands.order.data()); };
    ASSERT_TRUE(permute_columns_on_cpu(each.problem, expected.from.data(), order(expected), expected.to.data()).ok());
    const Status status = permute_columns_on_emulator(each.problem, got.from.data(), order(got), got.to.data(), {.seed = seed});
    ASSERT_TRUE(status.ok()) << describe(each) << ": " << status.error().message;
    ASSERT_EQ(differences(describe(each), got.to, expected.to), "");
  }
}

}  // namespace
}  // namespace sluice::gpu_tests
