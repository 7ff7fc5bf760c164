#pragma once

#include <string>

#include "sluice/schedule.hpp"

namespace sluice {

// The kind with the numbers that belong to it: "data-parallel", "split-k 4", "hybrid 5 in 4 ranges, by ticket".
std::string describe_kind(const SchedulerParams& params);

}  // namespace sluice
