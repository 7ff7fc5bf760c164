// attention() on the GPU beside the CPU's plain loops.
#include <gtest/gtest.h>

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <thread>
#include <vector>

#include "attention_case.hpp"
#include "bench/device_memory.hpp"
#include "sluice/verify.hpp"

namespace sluice::gpu_tests {
namespace {

using bench::check;

bench::DeviceBuffer on_gpu(const void* host, std::size_t bytes) {
  bench::DeviceBuffer buffer(std::max<std::size_t>(bytes, 16));
  if (bytes > 0) check(cudaMemcpy(buffer.data(), host, bytes, cudaMemcpyHostToDevice), "copying to the GPU");
  check(cudaDeviceSynchronize(), "copying to the GPU");  // the copy may return before the last bytes have come
  return buffer;
}
template <class T>
bench::DeviceBuffer on_gpu(const std::vector<T>& host) {
  return on_gpu(host.data(), host.size() * sizeof(T));
}
template <class T>
void fetch(std::vector<T>& host, const bench::DeviceBuffer& buffer) {
  check(cudaMemcpy(host.data(), buffer.data(), host.size() * sizeof(T), cudaMemcpyDeviceToHost), "copying from the GPU");
}

// A case's operands in the GPU's memory.
class AttentionOnGpu {
 public:
  explicit AttentionOnGpu(const AttentionOperands& x)
      : problem_(x.problem),
        q_(on_gpu(x.q)),
        k_(on_gpu(x.k)),
        v_(on_gpu(x.v)),
        o_(on_gpu(x.o)),
        lse_(on_gpu(x.lse)),
        lengths_(on_gpu(x.lengths)),
        table_(on_gpu(x.block_table)),
        k_scales_(on_gpu(x.k_scales)),
        v_scales_(on_gpu(x.v_scales)),
        fault_(on_gpu(&x.fault, sizeof x.fault)),
        table_stride_(x.block_table_stride),
        plan_(*plan_attention(x.problem, *current_device())),
        workspace_(plan_.workspace_bytes) {
    EXPECT_TRUE(prepare_attention_workspace(workspace_.data(), workspace_.size_bytes(), nullptr).ok());
  }

  // `back`: what was the result asks, and what asked becomes the result.
  Status enqueue(cudaStream_t stream, bool back = false) const {
    const AttentionArguments arguments{.q = (back ? o_ : q_).data(),
                                       .k = k_.data(),
                                       .v = v_.data(),
                                       .o = (back ? q_ : o_).data(),
                                       .lse = reinterpret_cast<float*>(lse_.data()),
                                       .lengths = reinterpret_cast<const std::int32_t*>(lengths_.data()),
                                       .block_table = reinterpret_cast<const std::int32_t*>(table_.data()),
                                       .block_table_stride = table_stride_,
                                       .k_scales = reinterpret_cast<const float*>(k_scales_.data()),
                                       .v_scales = reinterpret_cast<const float*>(v_scales_.data()),
                                       .fault = reinterpret_cast<std::uint32_t*>(fault_.data())};
    return attention(plan_, arguments, workspace_.data(), workspace_.size_bytes(), stream);
  }
  void set_lengths(const std::vector<std::int32_t>& lengths) const {
    check(cudaMemcpy(lengths_.data(), lengths.data(), lengths.size() * 4, cudaMemcpyHostToDevice), "copying lengths");
    check(cudaDeviceSynchronize(), "copying lengths");
  }
  void read_back(AttentionOperands& x) const {
    fetch(x.o, o_);
    fetch(x.lse, lse_);
    check(cudaMemcpy(&x.fault, fault_.data(), sizeof x.fault, cudaMemcpyDeviceToHost), "copying the fault");
  }

 private:
  AttentionProblem problem_;
  bench::DeviceBuffer q_, k_, v_, o_, lse_, lengths_, table_, k_scales_, v_scales_, fault_;
  std::int64_t table_stride_;
  AttentionPlan plan_;
  bench::DeviceBuffer workspace_;
};

TEST(Attention, AgreesWithTheCpu) {
  std::uint64_t seed = 0;
  for (const AttentionCase& each : attention_cases(false)) {
    ++seed;
    AttentionOperands got = make_operands(each, seed), expected = make_operands(each, seed);
    ASSERT_TRUE(attention_on_cpu(expected.problem, expected.arguments()).ok());
    const AttentionOnGpu gpu(got);
    const Status status = gpu.enqueue(nullptr);
    ASSERT_TRUE(status.ok()) << describe(each) << ": " << status.error().message;
    gpu.read_back(got);
    ASSERT_EQ(differences(got, expected), "");
  }
}

// A graph is replayed, with other lengths in between and the first ones again: the same bits.
TEST(Attention, GraphsMayBeReplayedWithOtherLengths) {
  const AttentionCase each{{.query_len = 2, .heads_q = 16, .heads_kv = 4, .page_size = 16, .lse = true}, {5000, 100, 0, 9000}, 0};
  AttentionOperands got = make_operands(each, 3), expected = make_operands(each, 3);
  ASSERT_TRUE(attention_on_cpu(expected.problem, expected.arguments()).ok());
  const AttentionOnGpu gpu(got);
  const bench::DeviceStream stream;
  const bench::Graph graph(stream, [&] {
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(gpu.enqueue(stream).ok());
  });
  std::vector<std::uint16_t> first;
  for (const bool same : {true, false, true, true}) {
    gpu.set_lengths(same ? each.lengths : std::vector<std::int32_t>{1, 4000, 77, 0});
    graph.launch(stream);
    stream.synchronize("attending");
    if (!same) continue;
    gpu.read_back(got);
    ASSERT_EQ(differences(got, expected), "");
    if (first.empty()) first = got.o;
    EXPECT_EQ(got.o, first);
  }
}

// A launch attends with what the one before it leaves in O, and says that the cache is constant: whoever fetched too much before its
// predecessor had ended would find NaN. With a cache that is not constant the bits are the same.
TEST(Attention, ConstantCachesWaitForTheirQueries) {
  AttentionCase each{{.heads_q = 32, .heads_kv = 8, .lse = true}, {3000, 700, 1, 9000}, 0};
  std::vector<std::uint16_t> without;
  for (const bool constant : {false, true, true, true, true}) {
    each.problem.constant_cache = constant;
    AttentionOperands operands = make_operands(each, 6);
    const AttentionOnGpu gpu(operands);
    const bench::DeviceStream stream;
    const bench::Graph graph(stream, [&] {
      ASSERT_TRUE(gpu.enqueue(stream).ok());
      ASSERT_TRUE(gpu.enqueue(stream, true).ok());
      ASSERT_TRUE(gpu.enqueue(stream).ok());
    });
    graph.launch(stream);
    stream.synchronize("attending");
    gpu.read_back(operands);
    if (without.empty()) without = operands.o;
    EXPECT_EQ(operands.o, without);
    EXPECT_EQ(std::count_if(operands.o.begin(), operands.o.end(), [](std::uint16_t x) { return std::isnan(from_bf16_bits(x)); }), 0);
  }
}

// A thread that has called nothing of CUDA has no context until somebody makes one for it.
TEST(Attention, AFreshThreadMayLaunch) {
  const AttentionCase each{{.query_len = 1, .heads_q = 4, .heads_kv = 1, .lse = true}, {900, 30}, 0};
  AttentionOperands got = make_operands(each, 4), expected = make_operands(each, 4);
  ASSERT_TRUE(attention_on_cpu(expected.problem, expected.arguments()).ok());
  const AttentionOnGpu on_gpu(got);
  std::string failure;
  std::thread([&] {
    if (const Status s = on_gpu.enqueue(nullptr); !s.ok()) failure = s.error().message;
  }).join();
  ASSERT_EQ(failure, "");
  check(cudaDeviceSynchronize(), "attending");
  on_gpu.read_back(got);
  EXPECT_EQ(differences(got, expected), "");
}

}  // namespace
}  // namespace sluice::gpu_tests
