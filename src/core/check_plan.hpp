// Plans are plain values: they are read from files and edited by hand. Whether one still fits together.
#pragma once

#include "sluice/error.hpp"
#include "sluice/plan_value.hpp"

namespace sluice {

// That the schedule covers the plan's problem with the plan's kernel. A plan for an empty problem needs nothing.
Status check_plan(const Plan& plan);

}  // namespace sluice
