// A row of D depends on its row of A alone, whatever kernel a plan for some M takes: all kernels that `batch_invariant` admits give the
// same bits, also where others round weights, or multiply by scales in another order. (Of 16-bit operands tests/gpu/levels_test.cpp sees to
// it.)
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "gpu/packed_weights.hpp"
#include "sluice/sluice.hpp"
#include "sluice/verify.hpp"
#include "sluice/w4.hpp"

namespace sluice::test {
namespace {

constexpr std::int64_t kRows = 70, kColumns = 200, kDepth = 640;

// Scales have 8 bits, so that hardly a weight is a number of bf16.
gpu_tests::PackedMatrix packed_weights(const W4Format& format) {
  std::mt19937 random(5);
  const std::int64_t group = format.group_size == 0 ? kDepth : format.group_size, groups = kColumns * ((kDepth + group - 1) / group);
  std::vector<std::uint8_t> codes(kColumns * kDepth / 2), zeros(static_cast<std::size_t>(groups));
  std::vector<float> scales(static_cast<std::size_t>(groups));
  for (std::uint8_t& two : codes) two = static_cast<std::uint8_t>(random() >> 24);
  for (std::uint8_t& zero : zeros) zero = static_cast<std::uint8_t>(random() % 17);
  for (float& scale : scales) scale = from_bf16_bits(to_bf16_bits(0.01f + 1e-4f * static_cast<float>(random() % 500)));
  gpu_tests::PackedMatrix packed(packed_w4_bytes(kColumns, kDepth, format));
  const PackW4Problem packing{.n = kColumns, .k = kDepth, .format = format, .type_scales = DataType::fp32};
  const Status status = pack_w4_on_cpu(
      packing,
      {.codes = codes.data(), .scales = scales.data(), .zeros = format.zero_points ? zeros.data() : nullptr, .packed = packed.data()});
  EXPECT_TRUE(status.ok()) << status.error().message;
  return packed;
}

// What the kernels for the problem's types that the level admits make of it.
struct Results {
  std::map<std::string, std::vector<float>> of;
  int refused = 0;
};
Results results_of_kernels(const GemmProblem& problem, GemmArguments arguments) {
  Results results;
  for (const KernelConfig& kernel : kernel_list()) {
    if (kernel.type_a != problem.type_a || kernel.type_b != problem.type_b) continue;
    const Result<Plan> made =
        plan(problem, find_device("h10").value(), {.determinism = Determinism::batch_invariant, .kernel_name = name(kernel)});
    if (!made) {
      ++results.refused;
      continue;
    }
    std::vector<float>& d = results.of[name(kernel)];
    d.resize(kRows * kColumns);
    arguments.d = d.data();
    const Status status = run_on_emulator(*made, arguments);
    EXPECT_TRUE(status.ok()) << name(kernel) << ": " << status.error().message;
  }
  return results;
}

void expect_the_same_bits(const Results& results, const std::string& what) {
  for (const auto& [kernel, d] : results.of)
    EXPECT_EQ(std::memcmp(d.data(), results.of.begin()->second.data(), d.size() * sizeof(float)), 0)
        << kernel << " and " << results.of.begin()->first << ", " << what;
}

TEST(BatchInvariance, OfWeightsOf4Bits) {
  std::mt19937 random(6);
  std::vector<std::uint16_t> a(kRows * kDepth);
  for (std::uint16_t& x : a) x = to_bf16_bits(static_cast<float>(random() % 2001) / 1000.0f - 1.0f);
  for (const W4Format& format :
       {W4Format{.group_size = 128}, W4Format{.group_size = 0, .zero_points = true}, W4Format{.group_size = 32, .zero_points = true}}) {
    gpu_tests::PackedMatrix b = packed_weights(format);
    GemmProblem problem{.m = kRows, .n = kColumns, .k = kDepth, .type_b = DataType::int4, .type_d = DataType::fp32};
    problem.w4 = format;
    const Results results = results_of_kernels(problem, {.a = a.data(), .b = b.data()});
    const bool slabs = format.group_size != 32;
    EXPECT_GE(results.of.size(), slabs ? 6u : 9u) << "kernels that are admitted";
    EXPECT_GE(results.refused, slabs ? 3 : 1) << "those that round weights where others do not, sliced and streaming ones";
    expect_the_same_bits(results, "groups of " + std::to_string(format.group_size));
  }
}

TEST(BatchInvariance, OfFp8) {
  std::mt19937 random(7);
  const auto bytes = [&](std::int64_t count) {  // all but NaN
    std::vector<std::uint8_t> numbers(static_cast<std::size_t>(count));
    for (std::uint8_t& x : numbers) x = static_cast<std::uint8_t>((random() >> 31) << 7 | random() % 0x7f);
    return numbers;
  };
  const std::vector<std::uint8_t> a = bytes(kRows * kDepth), b = bytes(kColumns * kDepth);
  for (const auto& [scaling_a, scaling_b] : {std::pair{Scaling::per_vector_128, Scaling::per_block_128},
                                             {Scaling::per_vector_128, Scaling::per_vector_128},
                                             {Scaling::per_vector, Scaling::per_vector},
                                             {Scaling::per_tensor, Scaling::per_tensor},
                                             {Scaling::none, Scaling::none}}) {
    GemmProblem problem{
        .m = kRows, .n = kColumns, .k = kDepth, .type_a = DataType::e4m3, .type_b = DataType::e4m3, .type_d = DataType::fp32};
    problem.scaling_a = scaling_a, problem.scaling_b = scaling_b;
    std::vector<float> scales(kColumns * kDepth);
    for (float& scale : scales) scale = 0.01f + 1e-5f * static_cast<float>(random() % 5000);
    const Results results = results_of_kernels(problem, {.a = a.data(), .b = b.data(), .scale_a = scales.data(), .scale_b = scales.data()});
    EXPECT_GE(results.of.size(), 6u);
    EXPECT_EQ(results.refused > 0, scaling_a == Scaling::per_vector_128) << to_string(scaling_a);
    expect_the_same_bits(results, std::string(to_string(scaling_a)) + " and " + to_string(scaling_b));
  }
}

}  // namespace
}  // namespace sluice::test
