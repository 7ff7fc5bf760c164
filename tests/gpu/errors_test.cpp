// What run() refuses, before anything is launched.
#include <gtest/gtest.h>

#include <functional>

#include "gemm_harness.hpp"

namespace sluice::gpu_tests {
namespace {

struct Refusal {
  const char* what;
  ErrorCode code;
  const char* named;  // a word that the message must hold
  std::function<void(Plan&, GemmArguments&)> spoil;
};

template <class Pointer>
void shift(Pointer& pointer, int bytes) {
  pointer = const_cast<char*>(static_cast<const char*>(pointer)) + bytes;
}

const std::vector<Refusal>& refusals() {
  using enum ErrorCode;
  static const std::vector<Refusal> all = {
      {"null A", invalid_argument, "a", [](Plan&, GemmArguments& args) { args.a = nullptr; }},
      {"null B", invalid_argument, "b", [](Plan&, GemmArguments& args) { args.b = nullptr; }},
      {"null C", invalid_argument, "c", [](Plan&, GemmArguments& args) { args.c = nullptr; }},
      {"null D", invalid_argument, "d", [](Plan&, GemmArguments& args) { args.d = nullptr; }},
      {"null bias", invalid_argument, "bias", [](Plan&, GemmArguments& args) { args.bias = nullptr; }},
      {"misaligned A", misaligned, "16", [](Plan&, GemmArguments& args) { shift(args.a, 2); }},
      {"misaligned B", misaligned, "16", [](Plan&, GemmArguments& args) { shift(args.b, 8); }},
      {"misaligned C", misaligned, "16", [](Plan&, GemmArguments& args) { shift(args.c, 4); }},
      {"misaligned D", misaligned, "16", [](Plan&, GemmArguments& args) { shift(args.d, 2); }},
      {"misaligned bias", misaligned, "16", [](Plan&, GemmArguments& args) { shift(args.bias, 1); }},
      {"C is D, with another leading dimension", invalid_argument, "ldc", [](Plan&, GemmArguments& args) { args.c = args.d; }},
      {"workspace too small", workspace_too_small, "4096", [](Plan& plan, GemmArguments&) { plan.workspace_bytes = 4096; }},
      {"a device with more multiprocessors", wrong_device, "1000", [](Plan& plan, GemmArguments&) { plan.device.sm_count = 1000; }},
      {"a kernel of another build", unsupported, "sluice list", [](Plan& plan, GemmArguments&) { plan.kernel.tile_n = 248; }},
  };
  return all;
}

class Refuses : public testing::TestWithParam<std::size_t> {};

TEST_P(Refuses, AndWritesNothing) {
  const Refusal& refusal = refusals()[GetParam()];
  static GemmHarness* const harness = new GemmHarness;
  GemmCase gemm_case{.what = refusal.what};
  gemm_case.problem.m = 130;
  gemm_case.problem.n = 72;
  gemm_case.problem.k = 128;
  gemm_case.problem.epilogue = {.alpha = 1, .beta = 1, .bias = Bias::per_column, .activation = Activation::relu};
  gemm_case.pad_c_elems = 8;
  PlacedCase placed = harness->place(kernel_list().front(), gemm_case);
  harness->poison_output(placed);
  GemmArguments arguments = placed.arguments;
  refusal.spoil(placed.plan, arguments);
  const Status status = run(placed.plan, arguments, nullptr, 0, harness->stream());
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, refusal.code) << to_string(status.error().code) << ": " << status.error().message;
  EXPECT_NE(status.error().message.find(refusal.named), std::string::npos) << status.error().message;
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);

  GemmProblem none = placed.plan.problem;
  none.m = 0;  // so that every byte of the region lies outside of D
  harness->check().reset();
  harness->check().outside_untouched(none, nullptr, placed.arguments.d, placed.d_region, placed.d_region_bytes);
  EXPECT_EQ(harness->check().fetch().written_outside, 0u);
}

INSTANTIATE_TEST_SUITE_P(Errors, Refuses, testing::Range(std::size_t{0}, refusals().size()));

}  // namespace
}  // namespace sluice::gpu_tests
