// The same kernel on the GPU and on the emulator: integers to the bit, random numbers within rounding. Emulation takes most of the time, so
// all CPUs work for the tests to come while one waits for its own.
#include <algorithm>
#include <atomic>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "bench/device_check.hpp"
#include "gemm_harness.hpp"
#include "packed_weights.hpp"
#include "scaled_cases.hpp"
#include "sluice/emulator.hpp"
#include "sluice/verify.hpp"

namespace sluice::gpu_tests {
namespace {

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

// What one case has on the GPU, and what came of it there.
struct Fetched {
  Plan plan;
  Bytes a, b, scale_a, scale_b, d;
};

Fetched run_on_gpu(GemmHarness& harness, const KernelConfig& kernel, const GemmCase& c) {
  const PlacedCase placed = harness.place(kernel, c);
  harness.check().reset();
  harness.run_and_check(placed, c);
  const bench::CheckReport report = harness.check().fetch();
  if (!report.ok()) throw bench::DeviceFailure(describe_failure(c, placed.plan, report));
  const GemmProblem& p = placed.plan.problem;
  const DataType type_b = p.type_b == DataType::int4 ? DataType::e4m3 : p.type_b;  // packed weights are bytes
  return {.plan = placed.plan,
          .a = from_device(placed.arguments.a, span_a(p), p.type_a),
          .b = from_device(placed.arguments.b, span_b(p), type_b),
          .scale_a = from_device(placed.arguments.scale_a, scale_elems_a(p), DataType::fp32),
          .scale_b = from_device(placed.arguments.scale_b, scale_elems_b(p), DataType::fp32),
          .d = from_device(placed.arguments.d, span_d(p), p.type_d)};
}

// What is wrong, or nothing.
std::string compare_with_emulator(const Fetched& gpu, bench::Exactness exactness, std::uint64_t seed) {
  Bytes emulated(gpu.d.size(), std::byte{0xff});
  const GemmArguments arguments{.a = gpu.a.data(),
                                .b = gpu.b.data(),
                                .d = emulated.data(),
                                .scale_a = reinterpret_cast<const float*>(gpu.scale_a.data()),
                                .scale_b = reinterpret_cast<const float*>(gpu.scale_b.data())};
  const Status status = run_on_emulator(gpu.plan, arguments, {.seed = seed});
  if (!status.ok()) return status.error().message;
  if (exactness == bench::Exactness::exact)
    return gpu.d == emulated ? "" : describe(gpu.plan.problem) + ": the GPU's bits are not the emulator's";
  const Result<VerifyReport> verdict = verify(gpu.plan.problem, arguments, nullptr);
  if (!verdict) return verdict.error().message;
  return verdict->ok() ? "" : describe(gpu.plan.problem) + ": " + to_string(*verdict);
}

std::string compare_kernel(GemmHarness& harness, std::mutex& gpu, int kernel_index) {
  const KernelConfig& kernel = kernel_list()[static_cast<std::size_t>(kernel_index)];
  std::string wrong;
  for (const auto exactness : {bench::Exactness::exact, bench::Exactness::bounded})
    for (GemmCase c : cases(kernel, kernel_index)) {
      c.exactness = exactness;
      const Fetched fetched = [&] {
        const std::lock_guard lock(gpu);
        return run_on_gpu(harness, kernel, c);
      }();
      wrong += compare_with_emulator(fetched, exactness, static_cast<std::uint64_t>(kernel_index));
    }
  return wrong;
}

// The kernels whose tests the filter leaves, compared by as many threads as there are CPUs.
class Comparisons {
 public:
  explicit Comparisons(const std::vector<int>& kernels) {
    for (const int kernel : kernels)
      results_[kernel] = tasks_.emplace_back([this, kernel] { return compare_kernel(harness_, gpu_, kernel); }).get_future();
    for (unsigned i = 0; i < std::max(1u, std::thread::hardware_concurrency()); ++i) threads_.emplace_back([this] { work(); });
  }
  ~Comparisons() {
    for (std::thread& thread : threads_) thread.join();
  }
  Comparisons(const Comparisons&) = delete;
  Comparisons& operator=(const Comparisons&) = delete;

  std::string result(int kernel) { return results_.at(kernel).get(); }

 private:
  void work() {
    for (std::size_t i; (i = next_++) < tasks_.size();) tasks_[i]();
  }

  GemmHarness harness_;
  std::mutex gpu_;                                        // the harness has one set of buffers
  std::vector<std::packaged_task<std::string()>> tasks_;  // one for each kernel
  std::map<int, std::future<std::string>> results_;       // by kernel
  std::atomic<std::size_t> next_ = 0;
  std::vector<std::thread> threads_;
};

class EmulatorAgrees : public testing::TestWithParam<int> {
 protected:
  static void SetUpTestSuite() {
    std::vector<int> kernels;
    const testing::TestSuite& suite = *testing::UnitTest::GetInstance()->current_test_suite();
    for (int i = 0; i < suite.total_test_count(); ++i)
      if (const testing::TestInfo& test = *suite.GetTestInfo(i); test.should_run()) kernels.push_back(std::stoi(test.value_param()));
    comparisons_ = std::make_unique<Comparisons>(kernels);
  }
  static void TearDownTestSuite() { comparisons_.reset(); }
  static std::unique_ptr<Comparisons> comparisons_;
};
std::unique_ptr<Comparisons> EmulatorAgrees::comparisons_;

TEST_P(EmulatorAgrees, ToTheBitOnIntegersAndWithinRoundingElsewhere) { EXPECT_EQ(comparisons_->result(GetParam()), ""); }

INSTANTIATE_TEST_SUITE_P(KernelList, EmulatorAgrees, testing::Range(0, static_cast<int>(kernel_list().size())),
                         [](const testing::TestParamInfo<int>& info) { return name(kernel_list()[static_cast<std::size_t>(info.param)]); });

}  // namespace
}  // namespace sluice::gpu_tests
