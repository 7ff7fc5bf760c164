// The places of the current GPU's SMs (core/gpc_places.hpp).
#pragma once

#include "sluice/plan_value.hpp"

#include "core/gpc_places.hpp"

namespace sluice {

struct GemmParams;

// Asked of the driver once for each GPU, without a launch. Null where its GPCs cannot be told, or it has not this many SMs.
const SmPlaces* places_of_current_device(int sm_count);

void bind_places_of_current_device(const Plan& plan, void* workspace, GemmParams& params);

}  // namespace sluice
