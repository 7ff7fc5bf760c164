// quantize() on the GPU beside the CPU's plain loops: to the bit, but where exp() has a part in it.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "bench/device_memory.hpp"
#include "gemm_harness.hpp"
#include "quantize_case.hpp"
#include "sluice/quantize.hpp"
#include "sluice/verify.hpp"

namespace sluice::gpu_tests {
namespace {

using bench::check;

// The buffers of host operands, guards and all, in the GPU's memory.
class OnDevice {
 public:
  explicit OnDevice(const QuantizeOperands& host)
      : x_(copy(host.x)), y_(copy(host.y)), q_(copy(host.q)), scale_(copy(host.scale)), arguments_{at(x_, host.x), at(y_, host.y)} {
    arguments_.q = at(q_, host.q);
    arguments_.scale = reinterpret_cast<float*>(at(scale_, host.scale));
  }

  const QuantizeArguments& arguments() const { return arguments_; }
  void fetch_results(QuantizeOperands& host) const {
    fetch(q_, host.q);
    fetch(scale_, host.scale);
  }
  void restore_results(const QuantizeOperands& host) {
    put(host.q, q_);
    put(host.scale, scale_);
  }

 private:
  static bench::DeviceBuffer copy(const GuardedBytes& from) {
    if (from.empty()) return {};
    bench::DeviceBuffer to(from.all().size());
    put(from, to);
    return to;
  }
  static void put(const GuardedBytes& from, bench::DeviceBuffer& to) {
    check(cudaMemcpy(to.data(), from.all().data(), from.all().size(), cudaMemcpyHostToDevice), "copying to the GPU");
    check(cudaDeviceSynchronize(), "copying to the GPU");  // the copy may return before the last bytes have come
  }
  static void fetch(const bench::DeviceBuffer& from, GuardedBytes& to) {
    check(cudaMemcpy(to.all().data(), from.data(), to.all().size(), cudaMemcpyDeviceToHost), "copying from the GPU");
  }
  static std::byte* at(const bench::DeviceBuffer& buffer, const GuardedBytes& host) {
    return host.empty() ? nullptr : buffer.data() + host.first();
  }

  bench::DeviceBuffer x_, y_, q_, scale_;
  QuantizeArguments arguments_;
};

QuantizeOperands on_cpu(const QuantizeCase& each, std::uint64_t seed) {
  QuantizeOperands expected = make_operands(each, seed);
  const Status status = quantize_on_cpu(each.problem, expected.arguments());
  EXPECT_TRUE(status.ok()) << status.error().message;
  return expected;
}

TEST(Quantize, IsWhatTheCpuMakesOfEveryCase) {
  const bench::DeviceStream stream;
  std::uint64_t seed = 0;
  int wrong = 0;
  for (const QuantizeCase& each : quantize_cases(settings().small)) {
    ++seed;
    QuantizeOperands got = make_operands(each, seed);
    const OnDevice device(got);
    const Status status = quantize(each.problem, device.arguments(), stream);
    ASSERT_TRUE(status.ok()) << describe(each) << ": " << status.error().message;
    stream.synchronize("quantising " + describe(each));
    device.fetch_results(got);
    const std::string difference = differences(each, got, on_cpu(each, seed));
    EXPECT_EQ(difference, "");
    if (!difference.empty() && ++wrong == 20) FAIL() << "and more";
  }
}

// A graph of two launches, the second of which reads what the first one writes: however early it starts, it may not read old numbers.
TEST(Quantize, GivesTheSameWhenReplayed) {
  const bench::DeviceStream stream;
  for (const Scaling scaling : {Scaling::per_vector, Scaling::per_vector_128, Scaling::per_block_128}) {
    const QuantizeCase each{.problem = *validate(QuantizeProblem{.m = 1111, .k = 2000, .scaling = scaling})};
    const QuantizeCase again{.problem = *validate(QuantizeProblem{.m = 1111, .k = 1000, .type_q = DataType::e5m2, .scaling = scaling})};
    QuantizeOperands first = make_operands(each, 1), second = make_operands(again, 2);
    OnDevice first_device(first), second_device(second);
    QuantizeArguments chained = second_device.arguments();
    chained.x = first_device.arguments().q;  // bytes in place of bf16: what they mean does not matter
    const bench::Graph graph(stream, [&] {
      for (const Status& s : {quantize(each.problem, first_device.arguments(), stream), quantize(again.problem, chained, stream)})
        if (!s) throw bench::DeviceFailure(s.error().message);
    });
    QuantizeOperands expected = on_cpu(each, 1), expected_again = make_operands(again, 2);
    QuantizeArguments on_host = expected_again.arguments();
    on_host.x = expected.q.data();
    ASSERT_TRUE(quantize_on_cpu(again.problem, on_host).ok());
    for (int replay = 0; replay < (settings().small ? 2 : 50); ++replay) {
      first_device.restore_results(make_operands(each, 1));
      second_device.restore_results(make_operands(again, 2));
      graph.launch(stream);
      stream.synchronize("replaying");
      first_device.fetch_results(first);
      second_device.fetch_results(second);
      ASSERT_EQ(differences(each, first, expected), "") << "replay " << replay;
      ASSERT_EQ(differences(again, second, expected_again), "") << "replay " << replay;
    }
  }
}

// Ready for a product: A in strips, B in blocks, and the product of what they stand for within the verifier's bounds.
TEST(Quantize, FeedsAProduct) {
  const bench::DeviceStream stream;
  const QuantizeCase a_case{.problem = *validate(QuantizeProblem{.m = 200, .k = 768, .scale_layout = Layout::column_major})};
  const QuantizeCase b_case{.problem = *validate(QuantizeProblem{.m = 320, .k = 768, .scaling = Scaling::per_block_128})};
  QuantizeOperands a = make_operands(a_case, 1), b = make_operands(b_case, 2);
  const OnDevice a_device(a), b_device(b);
  ASSERT_TRUE(quantize(a_case.problem, a_device.arguments(), stream).ok());
  ASSERT_TRUE(quantize(b_case.problem, b_device.arguments(), stream).ok());
  const GemmProblem product{.m = 200,
                            .n = 320,
                            .k = 768,
                            .type_a = DataType::e4m3,
                            .type_b = DataType::e4m3,
                            .scaling_a = a_case.problem.scaling,
                            .scaling_b = b_case.problem.scaling,
                            .scale_layout_a = a_case.problem.scale_layout,
                            .scale_layout_b = b_case.problem.scale_layout};
  const Result<Plan> made = plan(product, settings().device);
  ASSERT_TRUE(made.ok()) << made.error().message;
  bench::DeviceBuffer d(std::size_t{200} * 320 * 2), workspace(made->workspace_bytes);
  ASSERT_TRUE(prepare_workspace(workspace.data(), made->workspace_bytes, stream).ok());
  GemmArguments arguments{.a = a_device.arguments().q, .b = b_device.arguments().q, .d = d.data()};
  arguments.scale_a = a_device.arguments().scale;
  arguments.scale_b = b_device.arguments().scale;
  const Status status = run(*made, arguments, workspace.data(), made->workspace_bytes, stream);
  ASSERT_TRUE(status.ok()) << status.error().message;
  std::vector<std::uint16_t> result(std::size_t{200} * 320);
  stream.synchronize("multiplying");
  check(cudaMemcpy(result.data(), d.data(), d.size_bytes(), cudaMemcpyDeviceToHost), "copying D");

  QuantizeOperands a_expected = on_cpu(a_case, 1), b_expected = on_cpu(b_case, 2);
  const GemmArguments host{.a = a_expected.q.data(),
                           .b = b_expected.q.data(),
                           .d = result.data(),
                           .scale_a = a_expected.arguments().scale,
                           .scale_b = b_expected.arguments().scale};
  const Result<VerifyReport> report = verify(made->problem, host, nullptr);
  ASSERT_TRUE(report.ok()) << report.error().message;
  EXPECT_TRUE(report->ok()) << to_string(*report);
}

}  // namespace
}  // namespace sluice::gpu_tests
