// How many clusters of a kernel the current GPU runs at once.
#pragma once

#include "sluice/error.hpp"

namespace sluice {

// As the driver says, without a launch. Clusters of more than eight CTAs need the kernel's leave.
Result<int> clusters_at_once(const void* kernel, int ctas, int threads_per_cta, int shared_memory_bytes);

}  // namespace sluice
