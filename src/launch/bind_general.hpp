// From a plan for general groups (Grouping::general) to what its two kernels are passed: the one that prepares the groups, in a CTA each,
// and the product.
#pragma once

#include "sluice/error.hpp"
#include "sluice/plan_value.hpp"
#include "sluice/run.hpp"

#include "kernel/general/general_params.cuh"
#include "launch/bind.hpp"

namespace sluice {

// `workspace` is aligned to 256 bytes. Refuses a plan whose kernel or workspace is none for such groups.
Result<GeneralGemmParams> bind_general(const Plan& plan, const GemmArguments& arguments, void* workspace, EncodeTensorMap encode);

}  // namespace sluice
