// histogram() on the GPU beside the CPU's plain loops.
#include <gtest/gtest.h>

#include <cuda_runtime_api.h>

#include "bench/device_memory.hpp"
#include "histogram_case.hpp"

namespace sluice::gpu_tests {
namespace {

using bench::check;

void run_on_gpu(const HistogramCase& each, HistogramOperands& operands) {
  const bench::DeviceBuffer samples(operands.samples.size()), counts(operands.counts.size());
  check(cudaMemcpy(samples.data(), operands.samples.data(), operands.samples.size(), cudaMemcpyHostToDevice), "copying samples");
  check(cudaMemcpy(counts.data(), operands.counts.data(), operands.counts.size(), cudaMemcpyHostToDevice), "copying counts");
  const auto offset = static_cast<const std::byte*>(operands.arguments().counts) - operands.counts.data();
  // `first` is where samples begin at the offset that the case asks for, if their memory is aligned as the host's was.
  const std::size_t first = operands.first % 256;
  check(cudaMemcpy(samples.data() + first, operands.samples.data() + operands.first, operands.samples.size() - operands.first,
                   cudaMemcpyHostToDevice),
        "copying samples");
  const HistogramArguments arguments{.samples = samples.data() + first, .counts = counts.data() + offset};
  HistogramPlan plan = plan_of(each);
  const Status status = histogram(plan, arguments, nullptr);
  ASSERT_TRUE(status.ok()) << describe(each) << ": " << status.error().message;
  check(cudaMemcpy(operands.counts.data(), counts.data(), operands.counts.size(), cudaMemcpyDeviceToHost), "copying counts");
}

TEST(Histogram, CountsAsTheCpuDoes) {
  std::uint64_t seed = 0;
  for (const HistogramCase& each : histogram_cases(false)) {
    ++seed;
    HistogramOperands got = make_operands(each, seed), expected = make_operands(each, seed);
    ASSERT_TRUE(histogram_on_cpu(each.problem, expected.arguments()).ok());
    run_on_gpu(each, got);
    ASSERT_EQ(differences(each, got, expected), "");
  }
}

// Two launches behind one another, the second adding, in a graph that is replayed: nothing of the first run is left.
TEST(Histogram, GraphsMayBeReplayed) {
  HistogramCase each{.problem = {.n = 1 << 20, .bins = 5000}, .way = {}, .samples = Samples::skewed};
  HistogramOperands operands = make_operands(each, 3), expected = make_operands(each, 3);
  ASSERT_TRUE(histogram_on_cpu(each.problem, expected.arguments()).ok());
  each.problem.accumulate = true;
  ASSERT_TRUE(histogram_on_cpu(each.problem, expected.arguments()).ok());
  const bench::DeviceBuffer samples(operands.samples.size()), counts(5000 * 4);
  check(cudaMemcpy(samples.data(), operands.arguments().samples, (1 << 20) * 4, cudaMemcpyHostToDevice), "copying samples");
  const bench::DeviceStream stream;
  const bench::Graph graph(stream, [&] {
    HistogramProblem problem = each.problem;
    for (const bool adds : {false, true}) {
      problem.accumulate = adds;
      ASSERT_TRUE(histogram(problem, {.samples = samples.data(), .counts = counts.data()}, stream).ok());
    }
  });
  for (int replay = 0; replay < 3; ++replay) graph.launch(stream);
  stream.synchronize("counting");
  check(cudaMemcpy(operands.arguments().counts, counts.data(), 5000 * 4, cudaMemcpyDeviceToHost), "copying counts");
  EXPECT_EQ(differences(each, operands, expected), "");
}

}  // namespace
}  // namespace sluice::gpu_tests
