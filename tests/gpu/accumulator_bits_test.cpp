// With how many bits the tensor cores add FP8 products: the bounds of results rest on it, and so does the emulator.
#include <gtest/gtest.h>

#include <cstdio>

#include "accumulator_probe.hpp"
#include "gemm_harness.hpp"
#include "sluice/emulator.hpp"
#include "summary.hpp"

namespace sluice::gpu_tests {
namespace {

std::vector<float> on_gpu(const Plan& plan, const AccumulatorProbe& probe) {
  const bench::DeviceStream stream;
  const bench::DeviceBuffer a(probe.a.size()), b(probe.b.size());
  const bench::DeviceBuffer workspace(std::max<std::size_t>(plan.workspace_bytes, std::size_t{1} << 20));
  std::vector<float> d(static_cast<std::size_t>(plan.problem.m * plan.problem.n));
  const bench::DeviceBuffer result(d.size() * sizeof(float));
  bench::check(cudaMemcpyAsync(a.data(), probe.a.data(), probe.a.size(), cudaMemcpyHostToDevice, stream), "bringing A");
  bench::check(cudaMemcpyAsync(b.data(), probe.b.data(), probe.b.size(), cudaMemcpyHostToDevice, stream), "bringing B");
  EXPECT_TRUE(prepare_workspace(workspace.data(), workspace.size_bytes(), stream));
  const Status status = run(plan, {.a = a.data(), .b = b.data(), .d = result.data()}, workspace.data(), workspace.size_bytes(), stream);
  EXPECT_TRUE(status) << status.error().message;
  bench::check(cudaMemcpyAsync(d.data(), result.data(), result.size_bytes(), cudaMemcpyDeviceToHost, stream), "fetching D");
  stream.synchronize("probing the tensor cores");
  return d;
}

std::string describe(const AccumulatorBits& bits) {
  const auto text = [](const KeptBits& kept) {
    return std::to_string(kept.least) + (kept.most > kept.least ? " to " + std::to_string(kept.most) : "");
  };
  return text(bits.in_one_instruction) + " bits of an addend in the same wgmma, " + text(bits.in_later_ones) + " in later ones, " +
         text(bits.of_many) + " of 31 addends at once";
}

// What every kernel's multiplications must have in common, whichever operand is on wgmma's 64-row side.
TEST(Fp8Accumulation, KeepsAsManyBitsAsTheBoundsAndTheEmulatorAssume) {
  constexpr int kFewest = 12, kMost = 24;
  const AccumulatorProbe probe = accumulator_probe();
  std::string first;
  for (const KernelConfig& kernel : kernel_list()) {
    if (kernel.type_a != DataType::e4m3 || kernel.type_b != DataType::e4m3) continue;
    summary().begin(name(kernel) + ", bits of the accumulator");
    const Result<Plan> made = plan(probe.problem, settings().device,
                                   {.scheduler = SchedulerKind::data_parallel, .kernel_name = name(kernel), .keep_candidates = false});
    ASSERT_TRUE(made) << made.error().message;
    const AccumulatorBits bits = accumulator_bits(probe, on_gpu(*made, probe));
    if (first.empty()) std::printf("FP8 products are added with %s\n", (first = describe(bits)).c_str());
    EXPECT_EQ(describe(bits), first) << name(kernel);
    for (const KeptBits& kept : {bits.in_one_instruction, bits.in_later_ones, bits.of_many}) {
      EXPECT_GE(kept.least, kFewest) << name(kernel);
      EXPECT_LE(kept.most, kMost) << name(kernel);
    }
    if (!built_with_emulator()) continue;
    std::vector<float> emulated(static_cast<std::size_t>(probe.problem.m * probe.problem.n));
    const Status status = run_on_emulator(*made, {.a = probe.a.data(), .b = probe.b.data(), .d = emulated.data()});
    ASSERT_TRUE(status) << status.error().message;
    EXPECT_EQ(describe(accumulator_bits(probe, emulated)), describe(bits)) << name(kernel) << ": the emulator assumes otherwise";
  }
}

}  // namespace
}  // namespace sluice::gpu_tests
