// What the tests of results in FP8 multiply, on the emulator and on a GPU: problems, their memory, and how the result is judged. It must be
// within the bound, and what quantize() makes of the same product in fp32, to the bit.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "sluice/sluice.hpp"

namespace sluice::gpu_tests {

struct Fp8ResultCase {
  std::string what;
  GemmProblem problem;
  PlanOptions options;               // the kernel's name is filled in
  std::vector<std::int32_t> groups;  // GemmArguments::groups
  bool integers = false;             // the numbers of A and B, and powers of two as scales: nothing is rounded before D is
  int offset_d_bytes = 0;            // from a multiple of 16
};

// Around tiles and blocks of 128, every kind of scales, epilogues, batches, groups, and schedules, as far as the kernel has them.
// `small`: every third of them, others for each kernel.
std::vector<Fp8ResultCase> fp8_result_cases(const KernelConfig& kernel, int kernel_index, bool small = false);

// The kernels that can make them, as indices of the kernel list.
std::vector<int> fp8_kernels();

// Whether a warpgroup of the kernel holds 128 columns of its rows, in the words of the public interface.
bool finds_scales(const KernelConfig& kernel);

// Carries a plan out, with operands in host memory.
using RunPlan = std::function<Status(const Plan& plan, const GemmArguments& host_arguments)>;

// Runs the case on a kernel. Says what is wrong, or nothing.
std::string judge_fp8_result(const KernelConfig& kernel, const Fp8ResultCase& one, const DeviceSpec& device, const RunPlan& run);

// From the first to behind the last number or byte of an operand, for those who copy them.
struct OperandSizes {
  std::size_t a = 0, b = 0, d = 0, bias = 0, scale_a = 0, scale_b = 0, scale_d = 0, groups = 0;  // bytes
};
OperandSizes operand_sizes(const GemmProblem& problem);  // validated

}  // namespace sluice::gpu_tests
