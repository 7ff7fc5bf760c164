// Tiles dealt by place (core/launched_clusters.hpp), for a launch.
#pragma once

#include <optional>

#include "sluice/plan_value.hpp"

#include "core/gpc_places.hpp"
#include "kernel/gemm_params.cuh"

namespace sluice {

// A machine's places, if it has this many SMs and they are known; else items go by a CTA's number.
using PlacesOfSms = std::optional<SmPlaces> (*)(int sm_count);

// Asks for them if the plan is so dealt. `workspace`: the plan's.
void bind_places(const Plan& plan, void* workspace, PlacesOfSms places_of_sms, GemmParams& params);

}  // namespace sluice
