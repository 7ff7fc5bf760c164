// What KernelSchedule::sliced_k adds to a kernel's layout.
#pragma once

#include "sluice/kernel_config.hpp"

namespace sluice {

// Consumer warpgroups that multiply a share of their tile's k-tiles each, instead of a share of its rows. A stage is always the same one's:
// see kernel/mainloop/slice_position.cuh.
constexpr int k_slices(const KernelConfig& c) { return c.schedule == KernelSchedule::sliced_k ? 3 : 1; }
constexpr int in_whole_slices(const KernelConfig& c, int stages) { return stages / k_slices(c) * k_slices(c); }

}  // namespace sluice
