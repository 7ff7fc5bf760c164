// The places of the current GPU's SMs (core/gpc_places.hpp).
#pragma once

#include "core/gpc_places.hpp"

namespace sluice {

// Asked of the driver once for each GPU, without a launch. Null where its GPCs cannot be told, or it has not this many SMs.
const SmPlaces* places_of_current_device(int sm_count);

}  // namespace sluice
