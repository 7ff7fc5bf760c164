// Batch invariance: a row of D has the same bits however many rows there are. Operands declared constant, in a chain of products. And
// rings, whatever memory has been busy with.
#include <gtest/gtest.h>

#include <set>

#include "bench/device_random.hpp"
#include "bench/stream.hpp"
#include "gemm_harness.hpp"
#include "summary.hpp"

namespace sluice::gpu_tests {
namespace {

using bench::DeviceBuffer;
using bench::Distribution;

void fill(const DeviceBuffer& buffer, std::int64_t elements, Distribution distribution, std::uint64_t seed, cudaStream_t stream) {
  bench::fill_random(buffer.data(), DataType::bf16, {.vectors = 1, .length = elements, .pitch = elements}, distribution, seed, stream);
}

TEST(BatchInvariance, ARowOfDDependsOnItsRowOfAAlone) {
  constexpr std::int64_t kMostRows = 512;
  struct Weights {
    std::int64_t n, k;
    DataType type_d;
  };
  const bench::DeviceStream stream;
  bench::DeviceCheck check(stream);
  DeviceBuffer workspace(std::size_t{64} << 20);
  ASSERT_TRUE(prepare_workspace(workspace.data(), workspace.size_bytes(), stream));
  std::set<std::string> kernels;
  for (const Weights& w :
       {Weights{512, 1024, DataType::bf16}, {200, 328, DataType::fp32}, {4096, 4096, DataType::bf16}, {1536, 7168, DataType::fp32}}) {
    if (settings().small && w.n * w.k > 1 << 20) continue;
    const auto d_bytes = static_cast<std::size_t>(kMostRows * w.n * size_bytes(w.type_d));
    const DeviceBuffer a(static_cast<std::size_t>(kMostRows * w.k * 2)), b(static_cast<std::size_t>(w.n * w.k * 2)), all(d_bytes),
        some(d_bytes);
    fill(a, kMostRows * w.k, Distribution::normal, 1, stream);
    fill(b, w.n * w.k, Distribution::normal, 2, stream);
    const auto run_rows = [&](std::int64_t m, const DeviceBuffer& d) {
      const GemmProblem problem{.m = m, .n = w.n, .k = w.k, .type_d = w.type_d};
      const Result<Plan> made = plan(problem, settings().device, {.determinism = Determinism::batch_invariant, .keep_candidates = false});
      ASSERT_TRUE(made) << made.error().message;
      kernels.insert(name(made->kernel));
      summary().begin("batch invariance, " + describe(problem));
      bench::check(cudaMemsetAsync(d.data(), bench::kPoisonByte, d_bytes, stream), "poisoning D");
      const Status status = run(*made, {.a = a.data(), .b = b.data(), .d = d.data()}, workspace.data(), workspace.size_bytes(), stream);
      ASSERT_TRUE(status) << status.error().message;
    };
    run_rows(kMostRows, all);
    for (const std::int64_t m : {1, 2, 3, 7, 8, 9, 15, 16, 17, 32, 33, 64, 65, 127, 128, 129, 200, 256, 300, 384, 511, 512}) {
      run_rows(m, some);
      check.reset();
      check.same_bytes(some.data(), all.data(), static_cast<std::size_t>(m * w.n * size_bytes(w.type_d)));
      const bench::CheckReport report = check.fetch();
      EXPECT_EQ(report.wrong, 0u) << report.wrong << " bytes of the first " << m << " rows differ from those of " << kMostRows << ", n "
                                  << w.n << ", k " << w.k;
    }
  }
  EXPECT_GE(kernels.size(), 3u) << "one kernel is invariant by itself";
}

// D = (A B) B, again and again, with no wait between: what the second product takes from the first must be new, what is declared constant
// may be fetched while the one before still runs.
TEST(Constants, InAChainOfProducts) {
  constexpr std::int64_t kRows = 72, kWidth = 1024;
  const int rounds = settings().small ? 2 : 500;
  const bench::DeviceStream stream;
  bench::DeviceCheck check(stream);
  const DeviceBuffer workspace(std::size_t{64} << 20);
  ASSERT_TRUE(prepare_workspace(workspace.data(), workspace.size_bytes(), stream));
  constexpr auto kActivations = static_cast<std::size_t>(kRows * kWidth * 2);
  const DeviceBuffer b(static_cast<std::size_t>(kWidth * kWidth * 2)), middle(kActivations), last(kActivations);
  const DeviceBuffer inputs[2] = {DeviceBuffer(kActivations), DeviceBuffer(kActivations)};
  const DeviceBuffer expected[2] = {DeviceBuffer(kActivations), DeviceBuffer(kActivations)};
  fill(b, kWidth * kWidth, Distribution::normal, 1, stream);
  fill(inputs[0], kRows * kWidth, Distribution::normal, 2, stream);
  fill(inputs[1], kRows * kWidth, Distribution::normal, 3, stream);
  stream.synchronize("filling");

  for (const KernelConfig& kernel : kernel_list()) {
    if (kernel.type_a != DataType::bf16 || kernel.layout_a != Layout::row_major || kernel.layout_b != Layout::column_major) continue;
    if (settings().small && kernel.tile_m > 64) continue;
    summary().begin(name(kernel) + ", a chain with a constant operand");
    const std::int64_t rows = kernel.schedule == KernelSchedule::streaming ? kernel.tile_m : kRows;
    const GemmProblem problem{
        .m = rows, .n = kWidth, .k = kWidth, .type_b = kernel.type_b, .constant_b = true, .epilogue = {.alpha = 0.03125f}};
    const Plan made = plan(problem, settings().device, {.kernel_name = name(kernel), .keep_candidates = false}).value();
    const auto product = [&](const DeviceBuffer& a, const DeviceBuffer& d) {
      const Status status = run(made, {.a = a.data(), .b = b.data(), .d = d.data()}, workspace.data(), workspace.size_bytes(), stream);
      ASSERT_TRUE(status) << status.error().message;
    };
    // By the same plan (another one might add pieces up in another order), each by itself.
    for (int i = 0; i < 2; ++i) {
      product(inputs[i], middle);
      stream.synchronize("the first product");
      product(middle, expected[i]);
      stream.synchronize("the second product");
    }
    check.reset();
    for (int round = 0; round < rounds; ++round) {
      product(inputs[round % 2], middle);
      product(middle, last);
      check.same_bytes(last.data(), expected[round % 2].data(), static_cast<std::size_t>(rows * kWidth * 2));
    }
    const bench::CheckReport report = check.fetch();
    EXPECT_EQ(report.wrong, 0u) << name(kernel) << ": " << report.wrong << " bytes differed over " << rounds << " rounds";
  }
}

// Each product behind a kernel that passes over more memory than L2 holds. Loads of shared memory are late then, the copy engine is not: a
// stage that it fills again before it has been read shows in one of a hundred products or two, and in none whose operands lie in L2.
TEST(Rings, RightBehindAStream) {
  constexpr std::int64_t kColumns = 7168, kDepth = 2048;
  constexpr int kMatrices = 6;
  const int rounds = settings().small ? 1 : 100;
  const bench::DeviceStream stream;
  bench::DeviceCheck check(stream);
  const DeviceBuffer workspace(std::size_t{64} << 20);
  ASSERT_TRUE(prepare_workspace(workspace.data(), workspace.size_bytes(), stream));
  const DeviceBuffer b(static_cast<std::size_t>(kMatrices * kColumns * kDepth * 2));
  fill(b, kMatrices * kColumns * kDepth, Distribution::small_integers, 1, stream);
  int kernels = 0;
  for (const KernelConfig& kernel : kernel_list()) {
    if (kernel.schedule != KernelSchedule::streaming || kernel.type_a != DataType::bf16 || kernel.type_b != DataType::bf16) continue;
    ++kernels;
    // One row, or nine: rows that are there take time.
    const GemmProblem problem{.m = kernel.tile_m - 7, .n = kColumns, .k = kDepth, .type_d = DataType::fp32};
    summary().begin(name(kernel) + ", behind a stream");
    const auto d_bytes = static_cast<std::size_t>(problem.m * kColumns * 4);
    const DeviceBuffer a(static_cast<std::size_t>(problem.m * kDepth * 2)), d(d_bytes), expected(d_bytes * kMatrices);
    fill(a, problem.m * kDepth, Distribution::small_integers, 2, stream);
    const auto plan_for = [&](const std::string& kernel_name) {
      return plan(problem, settings().device, {.kernel_name = kernel_name, .keep_candidates = false}).value();
    };
    const Plan ring = plan_for(name(kernel)), other = plan_for("bf16_rc_coop_128x128x64_c1x1");
    const auto product = [&](const Plan& made, int matrix, std::byte* to) {
      const std::byte* const weights = b.data() + static_cast<std::size_t>(matrix * kColumns * kDepth * 2);
      const Status status = run(made, {.a = a.data(), .b = weights, .d = to}, workspace.data(), workspace.size_bytes(), stream);
      ASSERT_TRUE(status) << status.error().message;
    };
    // Sums of integers are exact, so that a kernel of another kind says what they are.
    for (int i = 0; i < kMatrices; ++i) product(other, i, expected.data() + static_cast<std::size_t>(i) * d_bytes);
    check.reset();
    for (int round = 0; round < rounds; ++round)
      for (int i = 0; i < kMatrices; ++i) {
        bench::stream_through(b.data(), b.size_bytes(), stream);
        product(ring, i, d.data());
        check.same_bytes(d.data(), expected.data() + static_cast<std::size_t>(i) * d_bytes, d_bytes);
      }
    const bench::CheckReport report = check.fetch();
    EXPECT_EQ(report.wrong, 0u) << name(kernel) << ": " << report.wrong << " bytes of " << rounds * kMatrices << " products are wrong";
  }
  EXPECT_EQ(kernels, 2);
}

}  // namespace
}  // namespace sluice::gpu_tests
