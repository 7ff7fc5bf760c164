#include <cstdint>
#include <cstdio>
#include <vector>

#include <sluice/sluice.hpp>

// On a Hopper GPU: the caller owns the stream, the matrices and the workspace (once cleared by sluice::prepare_workspace).
sluice::Status enqueue(const sluice::Plan& plan, const void* a, const void* b, void* d, void* workspace, sluice::Stream stream) {
  return sluice::run(plan, {.a = a, .b = b, .d = d}, workspace, plan.workspace_bytes, stream);
}

int failed(const sluice::Error& error) {
  std::fprintf(stderr, "%s\n", error.message.c_str());
  return 1;
}

int main() {
  const sluice::GemmProblem problem{.m = 96, .n = 160, .k = 256, .type_d = sluice::DataType::fp32};
  const auto device = sluice::find_device("h200");  // on the GPU itself: sluice::current_device()
  const auto plan = sluice::plan(problem, *device);
  if (!plan) return failed(plan.error());
  std::printf("%s\n", sluice::explain(*plan, 3).c_str());

  // Anywhere: the same plan on the CPU, and an elementwise check of what comes out.
  const std::vector<std::uint16_t> a(96 * 256, sluice::to_bf16_bits(0.5f)), b(256 * 160, sluice::to_bf16_bits(2.0f));
  std::vector<float> d(96 * 160);
  const sluice::GemmArguments arguments{.a = a.data(), .b = b.data(), .d = d.data()};
  if (const auto status = sluice::run_on_cpu(*plan, arguments); !status) return failed(status.error());
  const auto report = sluice::verify(problem, arguments, nullptr);
  if (!report || !report->ok()) return 1;
  std::printf("d[0] = %g, %s\n", d[0], sluice::to_string(*report).c_str());
  return d[0] == 256.0f ? 0 : 1;
}
