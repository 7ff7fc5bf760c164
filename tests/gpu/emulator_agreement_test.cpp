// The same kernel on the GPU and on the emulator: integers to the bit, random numbers within rounding.
#include <cstring>
#include <vector>

#include <gtest/gtest.h>

#include "bench/device_check.hpp"
#include "gemm_harness.hpp"
#include "packed_weights.hpp"
#include "scaled_cases.hpp"
#include "sluice/emulator.hpp"
#include "sluice/verify.hpp"
#include "summary.hpp"

namespace sluice::gpu_tests {
namespace {

class EmulatorAgrees : public testing::TestWithParam<int> {
 protected:
  static void SetUpTestSuite() { harness_ = new GemmHarness; }  // never freed: the driver may be gone before static destructors run
  const KernelConfig& kernel() const { return kernel_list()[static_cast<std::size_t>(GetParam())]; }
  static GemmHarness* harness_;
};
GemmHarness* EmulatorAgrees::harness_ = nullptr;

using Bytes = std::vector<std::byte>;

Bytes from_device(const void* device, std::int64_t elems, DataType type) {
  Bytes host(static_cast<std::size_t>(elems * size_bytes(type)));
  if (!host.empty()) bench::check(cudaMemcpy(host.data(), device, host.size(), cudaMemcpyDeviceToHost), "fetching an operand");
  return host;
}

// Full and ragged tiles, several of them, k that ends inside a k-tile.
std::vector<GemmCase> cases(const KernelConfig& kernel, int kernel_index) {
  const DataType type_d = is_fp8(kernel.type_a) ? DataType::bf16 : kernel.type_a;
  std::vector<GemmCase> all;
  const auto add = [&](std::int64_t m, std::int64_t n, std::int64_t k, DataType type_d) {
    GemmCase c{.what = "agreement"};
    c.problem.m = m;
    c.problem.n = n;
    c.problem.k = k;
    c.problem.type_d = type_d;
    const int turn = 3 * kernel_index + static_cast<int>(all.size());
    all.push_back(with_format(with_scales(c, kernel, turn), kernel, turn));
  };
  const std::int64_t rows = kernel.tile_m * kernel.cluster_m, columns = kernel.tile_n * kernel.cluster_n;
  add(rows, columns, 192, type_d);
  add(2 * rows + 1, columns + 8, 328, DataType::fp32);
  add(rows - 1, 2 * columns + 9, 72, type_d);
  return all;
}

TEST_P(EmulatorAgrees, ToTheBitOnIntegersAndWithinRoundingElsewhere) {
  for (const auto exactness : {bench::Exactness::exact, bench::Exactness::bounded})
    for (GemmCase c : cases(kernel(), GetParam())) {
      c.exactness = exactness;
      summary().begin(name(kernel()) + ", emulator, " + describe(problem_for(kernel(), c)));
      const PlacedCase placed = harness_->place(kernel(), c);
      harness_->check().reset();
      harness_->run_and_check(placed, c);
      ASSERT_TRUE(harness_->check().fetch().ok());
      const GemmProblem& p = placed.plan.problem;
      const DataType type_b = p.type_b == DataType::int4 ? DataType::e4m3 : p.type_b;  // packed weights are bytes
      const Bytes a = from_device(placed.arguments.a, span_a(p), p.type_a), b = from_device(placed.arguments.b, span_b(p), type_b);
      const Bytes scale_a = from_device(placed.arguments.scale_a, scale_elems_a(p), DataType::fp32);
      const Bytes scale_b = from_device(placed.arguments.scale_b, scale_elems_b(p), DataType::fp32);
      const Bytes gpu = from_device(placed.arguments.d, span_d(p), p.type_d);
      Bytes emulated(gpu.size(), std::byte{0xff});
      const GemmArguments arguments{.a = a.data(),
                                    .b = b.data(),
                                    .d = emulated.data(),
                                    .scale_a = reinterpret_cast<const float*>(scale_a.data()),
                                    .scale_b = reinterpret_cast<const float*>(scale_b.data())};
      const Status status = run_on_emulator(placed.plan, arguments, {.seed = static_cast<std::uint64_t>(GetParam())});
      ASSERT_TRUE(status.ok()) << status.error().message;
      if (exactness == bench::Exactness::exact) {
        EXPECT_EQ(std::memcmp(gpu.data(), emulated.data(), gpu.size()), 0) << describe(p);
      } else {
        const Result<VerifyReport> verdict = verify(p, arguments, nullptr);
        ASSERT_TRUE(verdict.ok());
        EXPECT_TRUE(verdict->ok()) << describe(p);
      }
    }
}

INSTANTIATE_TEST_SUITE_P(KernelList, EmulatorAgrees, testing::Range(0, static_cast<int>(kernel_list().size())),
                         [](const testing::TestParamInfo<int>& info) { return name(kernel_list()[static_cast<std::size_t>(info.param)]); });

}  // namespace
}  // namespace sluice::gpu_tests
