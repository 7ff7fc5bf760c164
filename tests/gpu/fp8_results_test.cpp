// Results in FP8 by every kernel on the GPU: within the bound, and what quantize() makes of the same kernel's results in fp32, to the bit.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "bench/device_memory.hpp"
#include "fp8_result_case.hpp"
#include "gemm_harness.hpp"

namespace sluice::gpu_tests {
namespace {

using bench::check;

// Host memory on the GPU, as far from a multiple of 16 bytes as there.
class Copied {
 public:
  Copied(const void* host, std::size_t bytes) : bytes_(host == nullptr ? 0 : bytes) {
    if (bytes_ == 0) return;
    const std::size_t offset = reinterpret_cast<std::uintptr_t>(host) % 16;
    buffer_ = bench::DeviceBuffer(bytes + offset);
    first_ = buffer_.data() + offset;
    check(cudaMemcpy(first_, host, bytes, cudaMemcpyHostToDevice), "copying to the GPU");
    check(cudaDeviceSynchronize(), "copying to the GPU");  // the copy may return before the last bytes have come
  }
  template <class T>
  T* as() const {
    return reinterpret_cast<T*>(first_);
  }
  void fetch(void* to) const {
    if (bytes_ > 0) check(cudaMemcpy(to, first_, bytes_, cudaMemcpyDeviceToHost), "copying from the GPU");
  }

 private:
  std::size_t bytes_;
  bench::DeviceBuffer buffer_;
  std::byte* first_ = nullptr;
};

Status run_on_device(const Plan& plan, const GemmArguments& host, const bench::DeviceStream& stream) {
  const OperandSizes sizes = operand_sizes(plan.problem);
  const Copied a(host.a, sizes.a), b(host.b, sizes.b), d(host.d, sizes.d), bias(host.bias, sizes.bias),
      scale_a(host.scale_a, sizes.scale_a), scale_b(host.scale_b, sizes.scale_b), scale_d(host.scale_d, sizes.scale_d),
      groups(host.groups, sizes.groups);
  const bench::DeviceBuffer workspace(plan.workspace_bytes);
  if (Status s = prepare_workspace(workspace.data(), workspace.size_bytes(), stream); !s) return s;
  const GemmArguments arguments{.a = a.as<void>(),
                                .b = b.as<void>(),
                                .d = d.as<void>(),
                                .bias = bias.as<void>(),
                                .scale_a = scale_a.as<float>(),
                                .scale_b = scale_b.as<float>(),
                                .scale_d = scale_d.as<float>(),
                                .groups = groups.as<std::int32_t>()};
  if (Status s = run(plan, arguments, workspace.data(), workspace.size_bytes(), stream); !s) return s;
  stream.synchronize("multiplying");
  d.fetch(host.d);
  scale_d.fetch(host.scale_d);
  return Nothing{};
}

class Fp8Results : public testing::TestWithParam<int> {};

TEST_P(Fp8Results, AreWhatQuantizeMakesOfResultsInFp32) {
  const KernelConfig& kernel = kernel_list()[static_cast<std::size_t>(GetParam())];
  const bench::DeviceStream stream;
  const auto run = [&](const Plan& plan, const GemmArguments& host) { return run_on_device(plan, host, stream); };
  for (const Fp8ResultCase& one : fp8_result_cases(kernel, GetParam(), settings().small))
    EXPECT_EQ(judge_fp8_result(kernel, one, settings().device, run), "") << one.what << ": " << describe(one.problem);
}

INSTANTIATE_TEST_SUITE_P(KernelList, Fp8Results, testing::ValuesIn(fp8_kernels()),
                         [](const testing::TestParamInfo<int>& info) { return name(kernel_list()[static_cast<std::size_t>(info.param)]); });

}  // namespace
}  // namespace sluice::gpu_tests
