// Where the kernel finds the scales of FP8 operands, and where those of D are.
#pragma once

#include "sluice/problem.hpp"
#include "sluice/run.hpp"

#include "kernel/gemm_params.cuh"

namespace sluice {

// Of a validated problem. swap: B is P (OperandOrder::columns_of_b).
void bind_scales(const GemmProblem& problem, const GemmArguments& arguments, bool swap, GemmParams& params);

}  // namespace sluice
