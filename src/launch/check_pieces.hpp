// Whether a plan that cuts tiles can be carried out by its kernel, in the workspace that it asks for: plans are plain values.
#pragma once

#include "sluice/error.hpp"
#include "sluice/plan_value.hpp"

namespace sluice {

Status check_pieces(const Plan& plan);

}  // namespace sluice
