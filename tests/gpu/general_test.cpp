// General groups on the GPU: every kernel that is compiled for them, in every case; and that the array of groups is read when the kernels
// run, and not before.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "bench/device_memory.hpp"
#include "gemm_harness.hpp"
#include "general_case.hpp"
#include "sluice/sluice.hpp"

namespace sluice::gpu_tests {
namespace {

using bench::check;

constexpr std::int64_t kSamples = 50000;

std::vector<KernelConfig> general_kernels() {
  std::vector<KernelConfig> all;
  for (const KernelConfig& kernel : kernel_list())
    if (resources(kernel).computes_general_groups) all.push_back(kernel);
  return all;
}

void to_device(const void* from, std::size_t bytes, const bench::DeviceBuffer& to) {
  check(cudaMemcpy(to.data(), from, bytes, cudaMemcpyHostToDevice), "copying to the GPU");
  check(cudaDeviceSynchronize(), "copying to the GPU");  // the copy may return before the last bytes have come
}

// A case's matrices and the array of its groups, in the GPU's memory.
class OnDevice {
 public:
  explicit OnDevice(const GeneralMemory& host)
      : memory_(host.bytes()), groups_(host.groups(memory_.data())), array_(groups_.size() * sizeof(GroupArguments)) {
    restore(host);
    to_device(groups_.data(), array_.size_bytes(), array_);
  }

  void restore(const GeneralMemory& host) { to_device(host.data(), host.bytes(), memory_); }
  void fetch(GeneralMemory& host) const {
    check(cudaMemcpy(host.data(), memory_.data(), host.bytes(), cudaMemcpyDeviceToHost), "copying from the GPU");
  }
  const bench::DeviceBuffer& array() const { return array_; }
  GemmArguments arguments() const { return arguments(array_); }
  static GemmArguments arguments(const bench::DeviceBuffer& array) {
    return {.group_arguments = reinterpret_cast<const GroupArguments*>(array.data())};
  }

 private:
  bench::DeviceBuffer memory_;
  std::vector<GroupArguments> groups_;
  bench::DeviceBuffer array_;
};

// A plan with a workspace of its own.
struct Planned {
  Plan plan;
  bench::DeviceBuffer workspace;

  Planned(const GeneralCase& each, const KernelConfig& kernel, const bench::DeviceStream& stream) {
    Result<Plan> made = sluice::plan(problem_of(each), settings().device, options_of(each, kernel));
    if (!made) throw bench::DeviceFailure(describe(each) + ": " + made.error().message);
    plan = *made;
    if (plan.workspace_bytes == 0) return;
    workspace = bench::DeviceBuffer(plan.workspace_bytes);
    check(cudaMemset(workspace.data(), 0xff, plan.workspace_bytes), "poisoning the workspace");  // what nobody writes is neither null nor 0
    check(cudaDeviceSynchronize(), "poisoning the workspace");
    if (const Status s = prepare_workspace(workspace.data(), plan.workspace_bytes, stream); !s)
      throw bench::DeviceFailure(s.error().message);
  }
  void run(const GemmArguments& arguments, const bench::DeviceStream& stream) const {
    const Status s = sluice::run(plan, arguments, workspace.data(), plan.workspace_bytes, stream);
    if (!s) throw bench::DeviceFailure(s.error().message);
  }
};

TEST(GeneralGroups, EveryKernelComputesEveryCase) {
  const bench::DeviceStream stream;
  std::uint64_t seed = 0;
  for (const KernelConfig& kernel : general_kernels())
    for (const GeneralCase& each : general_cases(kernel, settings().small)) {
      SCOPED_TRACE(name(kernel) + ": " + describe(each));
      const GeneralMemory before(each, ++seed);
      GeneralMemory after = before;
      const OnDevice device(before);
      const Planned planned(each, kernel, stream);  // its workspace lives until the product is there
      planned.run(device.arguments(), stream);
      stream.synchronize(name(kernel) + ": " + describe(each));
      device.fetch(after);
      EXPECT_EQ(before.wrong_in(after, kSamples), "");
    }
}

// Of two cases with as many groups, with the plan for the larger of them.
struct TwoCases {
  GeneralCase first, second;

  explicit TwoCases(const KernelConfig& kernel) {
    const std::vector<GeneralCase> all = general_cases(kernel, settings().small);
    const auto found = std::find_if(all.begin(), all.end(), [](const GeneralCase& c) { return c.sizes.size() == 17; });
    first = second = *found;
    std::reverse(second.sizes.begin(), second.sizes.end());
    for (GeneralCase::Sizes& s : second.sizes) s = {s.m / 2 + 1, s.n, s.k + 3};
    const GemmProblem one = problem_of(first), other = problem_of(second);
    first.largest =
        second.largest = {static_cast<std::int32_t>(std::max(one.m, other.m)), static_cast<std::int32_t>(std::max(one.n, other.n)),
                          static_cast<std::int32_t>(std::max(one.k, other.k))};
  }
};

// One graph, replayed with other groups in the array.
TEST(GeneralGroups, AGraphTakesTheArrayAsItIsThen) {
  const bench::DeviceStream stream;
  for (const KernelConfig& kernel : general_kernels()) {
    SCOPED_TRACE(name(kernel));
    const TwoCases cases(kernel);
    const GeneralMemory first(cases.first, 1), second(cases.second, 2);
    GeneralMemory after_first = first, after_second = second;
    OnDevice on_first(first), on_second(second);
    const bench::DeviceBuffer array(on_first.array().size_bytes());
    const Planned planned(cases.first, kernel, stream);
    const bench::Graph graph(stream, [&] { planned.run(OnDevice::arguments(array), stream); });
    for (int replay = 0; replay < (settings().small ? 2 : 20); ++replay) {
      OnDevice& device = replay % 2 == 0 ? on_first : on_second;
      const GeneralMemory& before = replay % 2 == 0 ? first : second;
      GeneralMemory& after = replay % 2 == 0 ? after_first : after_second;
      device.restore(before);
      check(cudaMemcpyAsync(array.data(), device.array().data(), array.size_bytes(), cudaMemcpyDeviceToDevice, stream), "other groups");
      graph.launch(stream);
      stream.synchronize("replaying");
      device.fetch(after);
      ASSERT_EQ(before.wrong_in(after, kSamples), "") << "replay " << replay;
    }
  }
}

// Launches one behind the other without a pause, each with other groups in the same array and the same workspace: whoever looks too early,
// or keeps what it has seen, computes what was there before.
TEST(GeneralGroups, LaunchesFollowOneAnother) {
  const bench::DeviceStream stream;
  const int launches = settings().small ? 4 : 24;
  for (const KernelConfig& kernel : general_kernels()) {
    SCOPED_TRACE(name(kernel));
    const TwoCases cases(kernel);
    std::vector<GeneralMemory> before;
    std::vector<OnDevice> devices;
    for (int i = 0; i < launches; ++i) {
      before.emplace_back(i % 2 == 0 ? cases.first : cases.second, static_cast<std::uint64_t>(i));
      devices.emplace_back(before.back());
    }
    const bench::DeviceBuffer array(devices.front().array().size_bytes());
    const Planned planned(cases.first, kernel, stream);
    stream.synchronize("making ready");
    for (const OnDevice& device : devices) {
      check(cudaMemcpyAsync(array.data(), device.array().data(), array.size_bytes(), cudaMemcpyDeviceToDevice, stream), "other groups");
      planned.run(OnDevice::arguments(array), stream);
    }
    stream.synchronize("launches in a row");
    for (std::size_t i = 0; i < devices.size(); ++i) {
      GeneralMemory after = before[i];
      devices[i].fetch(after);
      ASSERT_EQ(before[i].wrong_in(after, kSamples), "") << "launch " << i;
    }
  }
}

}  // namespace
}  // namespace sluice::gpu_tests
