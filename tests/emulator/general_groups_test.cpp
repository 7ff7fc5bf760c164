// General groups on the emulated machine: every kernel that is compiled for them, in every case, and what it says of groups that break a
// promise.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "gpu/general_case.hpp"
#include "sluice/sluice.hpp"

namespace sluice {
namespace {

using gpu_tests::general_cases;
using gpu_tests::GeneralCase;
using gpu_tests::GeneralMemory;

std::vector<KernelConfig> general_kernels() {
  std::vector<KernelConfig> all;
  for (const KernelConfig& kernel : kernel_list())
    if (resources(kernel).computes_general_groups) all.push_back(kernel);
  return all;
}

GeneralCase case_called(const std::string& name, const KernelConfig& kernel) {
  for (GeneralCase& each : general_cases(kernel, true))
    if (each.name == name) return each;
  ADD_FAILURE() << "no case is called " << name;
  return {};
}

Result<Plan> plan_case(const GeneralCase& each, const KernelConfig& kernel) {
  return plan(problem_of(each), find_device("h10").value(), options_of(each, kernel));
}

void expect_right(const GeneralCase& each, const KernelConfig& kernel, std::uint64_t seed) {
  SCOPED_TRACE(name(kernel) + ": " + describe(each));
  const Result<Plan> made = plan_case(each, kernel);
  ASSERT_TRUE(made) << made.error().message;
  const GeneralMemory before(each, seed);
  GeneralMemory after = before;
  const std::vector<GroupArguments> groups = after.groups(after.data());
  const Status status = run_on_emulator(*made, {.group_arguments = groups.data()}, {.seed = seed});
  ASSERT_TRUE(status) << status.error().message;
  EXPECT_EQ(before.wrong_in(after), "");
}

TEST(GeneralGroups, EveryKernelComputesEveryCase) {
  ASSERT_FALSE(general_kernels().empty());
  std::uint64_t seed = 0;
  for (const KernelConfig& kernel : general_kernels())
    for (const GeneralCase& each : general_cases(kernel, true)) {
      if (kernel.type_a == DataType::fp16 && ++seed % 3 != 0) continue;  // the same but for a conversion
      expect_right(each, kernel, ++seed);
    }
}

// Whatever the order in which copies and multiplications happen, and with SMs that something else holds.
TEST(GeneralGroups, AreRightInOtherOrders) {
  for (const KernelConfig& kernel : general_kernels()) {
    const GeneralCase each = case_called(is_fp8(kernel.type_a) ? "scales, kind 1" : "17 of random sizes", kernel);
    const Result<Plan> made = plan_case(each, kernel);
    ASSERT_TRUE(made) << made.error().message;
    for (std::uint64_t seed = 0; seed < 6; ++seed) {
      SCOPED_TRACE(name(kernel) + ": " + describe(each) + ", seed " + std::to_string(seed));
      const GeneralMemory before(each, seed);
      GeneralMemory after = before;
      const std::vector<GroupArguments> groups = after.groups(after.data());
      const EmulatorOptions options{.seed = seed,
                                    .asynchrony = seed % 2 == 0 ? Asynchrony::lazy : Asynchrony::mixed,
                                    .resident_clusters = static_cast<int>(seed % 3)};
      const Status status = run_on_emulator(*made, {.group_arguments = groups.data()}, options);
      ASSERT_TRUE(status) << status.error().message;
      EXPECT_EQ(before.wrong_in(after), "");
    }
  }
}

TEST(GeneralGroups, TheEmulatorRefusesBrokenPromises) {
  const KernelConfig kernel = general_kernels().front();
  const GeneralCase each = case_called("two, whole tiles", kernel);
  const Result<Plan> made = plan_case(each, kernel);
  ASSERT_TRUE(made) << made.error().message;
  GeneralMemory memory(each, 1);
  const auto message_for = [&](auto&& breaks) {
    std::vector<GroupArguments> groups = memory.groups(memory.data());
    breaks(groups[1]);
    const Status status = run_on_emulator(*made, {.group_arguments = groups.data()});
    return status ? std::string() : status.error().message;
  };
  EXPECT_NE(message_for([](GroupArguments& g) { g.a = static_cast<const std::byte*>(g.a) + 2; }).find("group 1: a starts 2 bytes behind"),
            std::string::npos);
  EXPECT_NE(message_for([](GroupArguments& g) { g.d = nullptr; }).find("group 1: d is null"), std::string::npos);
  EXPECT_NE(message_for([](GroupArguments& g) { g.ldb += 4; }).find("columns of B must start at multiples of 16 bytes"), std::string::npos);
  EXPECT_NE(message_for([](GroupArguments& g) { g.lda = 8; }).find("group 1: lda = 8 is shorter than"), std::string::npos);
}

TEST(GeneralGroups, TheEmulatorRefusesScalesThatAreNotThere) {
  for (const KernelConfig& kernel : general_kernels()) {
    if (!is_fp8(kernel.type_a)) continue;
    const GeneralCase each = case_called("scales, kind 1", kernel);
    const Result<Plan> made = plan_case(each, kernel);
    ASSERT_TRUE(made) << made.error().message;
    GeneralMemory memory(each, 1);
    std::vector<GroupArguments> groups = memory.groups(memory.data());
    groups[3].scale_b = nullptr;
    const Status status = run_on_emulator(*made, {.group_arguments = groups.data()});
    ASSERT_FALSE(status);
    EXPECT_NE(status.error().message.find("group 3: scale_b is null"), std::string::npos) << status.error().message;
  }
}

TEST(GeneralGroups, AreNotTraced) {
  const KernelConfig kernel{.tile_m = 128, .tile_n = 128};
  const GeneralCase each = general_cases(kernel, true)[1];
  const Result<Plan> made = plan_case(each, kernel);
  ASSERT_TRUE(made) << made.error().message;
  GeneralMemory memory(each, 1);
  const std::vector<GroupArguments> groups = memory.groups(memory.data());
  std::vector<std::uint64_t> buffer(1 << 16);
  const Status status = run_traced_on_emulator(*made, {.group_arguments = groups.data()},
                                               {.data = buffer.data(), .bytes = buffer.size() * sizeof(std::uint64_t)});
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().message.find("grouping = general cannot be traced"), std::string::npos) << status.error().message;
}

}  // namespace
}  // namespace sluice
