// What kept the kernel from ending earlier.
#pragma once

#include <vector>

#include "sluice/trace.hpp"

namespace sluice {

// From the tile that was done last back to the first CTA's beginning: along its consumer's tiles, and wherever that one waited, over to
// whom it waited for. In order of time, end to end over the makespan.
std::vector<CriticalStep> critical_path(const Trace& trace);

}  // namespace sluice
