// For how long L2 should keep the lines of A and B: `now` where no other tile will ask for them, or all do at about the same time, so that
// later they are in the way of what is still needed; else `again`.
#pragma once

#include "sluice/plan_value.hpp"

namespace sluice {

enum class LineUse { now, again };
LineUse line_use_of_a(const Plan& plan);  // results do not depend on it
LineUse line_use_of_b(const Plan& plan);

}  // namespace sluice
