// Whether L2 is told that lines of A or B may go first: where no other tile will ask for them, or all do at about the same time, so that
// later they are in the way of what is still needed. Results do not depend on it. (That lines go last is told of
// rows beside rings alone, which ask for them again and again, kernel/streaming/: others' rows were still there after 150 MB of weights had
// passed through, in the way of whatever else runs. docs/performance_log.md, 27 November 2026.)
#pragma once

#include "sluice/plan_value.hpp"

namespace sluice {

bool a_leaves_first(const Plan& plan);
bool b_leaves_first(const Plan& plan);

}  // namespace sluice
