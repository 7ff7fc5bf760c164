// What a launch tells the kernel about weights of 4 bits.
#pragma once

#include "sluice/plan.hpp"
#include "sluice/run.hpp"

#include "kernel/gemm_params.cuh"

namespace sluice {

void bind_packed(const Plan& plan, const GemmArguments& arguments, MainloopParams& params);

}  // namespace sluice
