// Every compiled kernel, forced, over edge shapes, layouts, types, epilogues, batches and placements; then replayed from a graph.
#include <gtest/gtest.h>

#include "gemm_harness.hpp"
#include "packed_weights.hpp"
#include "scaled_cases.hpp"
#include "summary.hpp"

namespace sluice::gpu_tests {
namespace {

GemmHarness& harness() {
  static GemmHarness* const shared = new GemmHarness;  // never freed: the driver may be gone before static destructors run
  return *shared;
}

class EveryKernel : public testing::TestWithParam<int> {
 protected:
  const KernelConfig& kernel() const { return kernel_list()[static_cast<std::size_t>(GetParam())]; }
};

TEST_P(EveryKernel, IsRight) {
  constexpr int kShown = 5;
  int failed = 0, cases = 0;
  for (const GemmCase& gemm_case : cases_for(kernel(), GetParam(), settings().small)) {
    ++cases;
    summary().begin(name(kernel()) + ", " + gemm_case.what + ", " + describe(problem_for(kernel(), gemm_case)));
    const std::string wrong = harness().try_case(kernel(), gemm_case);
    if (wrong.empty()) continue;
    if (++failed <= kShown) ADD_FAILURE() << wrong;
    if (cudaDeviceSynchronize() != cudaSuccess) {
      summary().add(
          {.kernel = name(kernel()), .cases = cases, .failed = failed, .note = "and the GPU is broken: what follows says nothing"});
      FAIL() << "the GPU no longer answers: " << cudaGetErrorString(cudaGetLastError());
    }
  }
  summary().add({.kernel = name(kernel()), .cases = cases, .failed = failed, .worst_ratio = harness().take_worst_ratio()});
  EXPECT_EQ(failed, 0) << failed << " of " << cases << " cases";
}

TEST_P(EveryKernel, GivesTheSameBitsInEachReplay) {
  const int replays = settings().small ? 3 : 1000;
  GemmCase gemm_case{.what = "replay"};
  gemm_case.problem.m = settings().small ? 130 : 301;
  gemm_case.problem.n = settings().small ? 140 : 523;
  gemm_case.problem.k = settings().small ? 72 : 1032;
  gemm_case = with_format(with_scales(gemm_case, kernel(), GetParam(), block_scale_kinds()), kernel(), GetParam());
  summary().begin(name(kernel()) + ", replays");
  GemmHarness& h = harness();
  const PlacedCase placed = h.place(kernel(), gemm_case);
  h.check().reset();
  h.run_and_check(placed, gemm_case);
  const bench::DeviceBuffer first(placed.d_region_bytes);
  bench::check(cudaMemcpyAsync(first.data(), placed.d_region, placed.d_region_bytes, cudaMemcpyDeviceToDevice, h.stream()), "keeping D");
  ASSERT_TRUE(h.check().fetch().ok());

  h.check().reset();
  const bench::Graph graph(h.stream(), [&] {
    h.poison_output(placed);
    h.run(placed);
    h.check().same_bytes(placed.d_region, first.data(), placed.d_region_bytes);
  });
  for (int i = 0; i < replays; ++i) graph.launch(h.stream());
  const bench::CheckReport report = h.check().fetch();
  EXPECT_EQ(report.wrong, 0u) << report.wrong << " bytes differed over " << replays << " replays; one at byte " << report.first[0].column
                              << " of the output and its guards";
}

INSTANTIATE_TEST_SUITE_P(KernelList, EveryKernel, testing::Range(0, static_cast<int>(kernel_list().size())),
                         [](const testing::TestParamInfo<int>& info) { return name(kernel_list()[static_cast<std::size_t>(info.param)]); });

}  // namespace
}  // namespace sluice::gpu_tests
