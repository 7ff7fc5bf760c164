// Many streams, many threads, no waiting in between; and the planner's own choices, unforced.
#include <gtest/gtest.h>

#include <memory>
#include <mutex>
#include <thread>

#include "gemm_harness.hpp"
#include "packed_weights.hpp"
#include "scaled_cases.hpp"

namespace sluice::gpu_tests {
namespace {

GemmCase case_of(std::int64_t m, std::int64_t n, std::int64_t k) {
  GemmCase gemm_case{.what = "concurrent"};
  gemm_case.problem.m = m;
  gemm_case.problem.n = n;
  gemm_case.problem.k = k;
  return gemm_case;
}

TEST(Concurrency, ThreadsWithStreamsOfTheirOwn) {
  const int thread_count = 4, cases_each = settings().small ? 2 : 60;
  std::mutex lock;
  std::vector<std::string> wrong;
  std::vector<std::thread> threads;
  for (int t = 0; t < thread_count; ++t)
    threads.emplace_back([&, t] {
      GemmHarness harness;
      for (int i = 0; i < cases_each; ++i) {
        const auto& kernels = kernel_list();
        const KernelConfig& kernel = kernels[static_cast<std::size_t>(t + i * thread_count) % kernels.size()];
        const std::string failure = harness.try_case(
            kernel, with_format(with_scales(case_of(200 + 61 * t, 300 + 17 * i % 190, 264 + 8 * i), kernel, i), kernel, i));
        const std::lock_guard<std::mutex> guard(lock);
        if (!failure.empty()) wrong.push_back(name(kernel) + ": " + failure);
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(wrong.empty()) << wrong.size() << " wrong, e.g. " << wrong.front();
}

TEST(Concurrency, KernelsSideBySideOnOneGpu) {
  const int stream_count = settings().small ? 2 : 6, rounds = settings().small ? 2 : 40;
  const auto& kernels = kernel_list();
  std::vector<std::unique_ptr<GemmHarness>> harnesses;
  std::vector<PlacedCase> placed;
  std::vector<GemmCase> cases;
  for (int s = 0; s < stream_count; ++s) {
    harnesses.push_back(std::make_unique<GemmHarness>());
    const KernelConfig& kernel = kernels[static_cast<std::size_t>(s * 19) % kernels.size()];
    cases.push_back(with_format(with_scales(case_of(333 + 100 * s, 777 - 50 * s, 520), kernel, s), kernel, s));
    placed.push_back(harnesses.back()->place(kernel, cases.back()));
  }
  for (int round = 0; round < rounds; ++round)
    for (std::size_t s = 0; s < harnesses.size(); ++s) harnesses[s]->run_and_check(placed[s], cases[s]);
  for (std::size_t s = 0; s < harnesses.size(); ++s) {
    const bench::CheckReport report = harnesses[s]->check().fetch();
    EXPECT_TRUE(report.ok()) << describe_failure(cases[s], placed[s].plan, report);
  }
}

// All types and layouts through plan(), with operands that the tensor memory accelerator can and cannot address.
TEST(PlannersChoice, IsRightForEveryTypeAndLayout) {
  GemmHarness harness;
  for (const DataType type : {DataType::bf16, DataType::fp16})
    for (const Layout layout_a : {Layout::row_major, Layout::column_major})
      for (const Layout layout_b : {Layout::row_major, Layout::column_major})
        for (const bool aligned : {true, false})
          for (const std::int64_t m : {1, 16, 129, 700}) {
            if (settings().small && m > 129) continue;
            GemmProblem p{
                .m = m, .n = 200, .k = 136, .type_a = type, .type_b = type, .type_d = type, .layout_a = layout_a, .layout_b = layout_b};
            const auto leading = [&](std::int64_t length) { return aligned ? (length + 7) / 8 * 8 : length | 1; };
            p.lda = leading(layout_a == Layout::row_major ? p.k : p.m);
            p.ldb = leading(layout_b == Layout::row_major ? p.n : p.k);
            const Result<Plan> chosen = plan(p, settings().device);
            ASSERT_TRUE(chosen.ok()) << describe(p) << ": " << chosen.error().message;
            EXPECT_EQ(chosen->kernel.load, aligned ? LoadPath::tma : LoadPath::threads) << describe(p);
            GemmCase gemm_case = case_of(p.m, p.n, p.k);
            gemm_case.problem.type_d = type;
            EXPECT_EQ(harness.try_case(chosen->kernel, gemm_case), "");
          }
}

TEST(PlannersChoice, IsRightForEveryPairOfFp8TypesAndEveryKindOfScales) {
  GemmHarness harness;
  for (const DataType type_a : {DataType::e4m3, DataType::e5m2})
    for (const DataType type_b : {DataType::e4m3, DataType::e5m2})
      for (int kind = 0; kind < static_cast<int>(scale_kinds().size()); ++kind)
        for (const std::int64_t m : {1, 16, 129, 700}) {
          if (settings().small && (m > 129 || kind > 2)) continue;
          GemmProblem p{.m = m, .n = 520, .k = 1040, .type_a = type_a, .type_b = type_b};
          p.scaling_a = scale_kinds()[static_cast<std::size_t>(kind)].a;
          p.scaling_b = scale_kinds()[static_cast<std::size_t>(kind)].b;
          const Result<Plan> chosen = plan(p, settings().device);
          ASSERT_TRUE(chosen.ok()) << describe(p) << ": " << chosen.error().message;
          EXPECT_TRUE(chosen->kernel.type_a == type_a && chosen->kernel.type_b == type_b) << describe(p);
          EXPECT_EQ(harness.try_case(chosen->kernel, with_scales(case_of(p.m, p.n, p.k), chosen->kernel, kind)), "");
        }
}

}  // namespace
}  // namespace sluice::gpu_tests
