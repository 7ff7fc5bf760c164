// What kernels are told about where pieces of a tile meet.
#pragma once

#include "sluice/plan_value.hpp"

#include "kernel/gemm_params.cuh"

namespace sluice {

ReductionParams bind_pieces(const Plan& plan, void* workspace);

}  // namespace sluice
