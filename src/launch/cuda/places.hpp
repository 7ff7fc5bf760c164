// The places of the current GPU's SMs (core/gpc_places.hpp).
#pragma once

#include <optional>

#include "core/gpc_places.hpp"

namespace sluice {

// Asked of the driver once for each GPU, without a launch. Nothing where its GPCs cannot be told, or it has not this many SMs.
std::optional<SmPlaces> places_of_current_device(int sm_count);

}  // namespace sluice
