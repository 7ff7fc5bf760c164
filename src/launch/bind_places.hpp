// Tiles dealt by place (core/launched_clusters.hpp), for a launch.
#pragma once

#include "sluice/plan_value.hpp"

#include "core/gpc_places.hpp"
#include "kernel/gemm_params.cuh"

namespace sluice {

// `of_sm`: the machine's; null where it is not known, and then items go by a CTA's number. `workspace`: the plan's.
void bind_places(const Plan& plan, void* workspace, const SmPlaces* of_sm, GemmParams& params);

}  // namespace sluice
