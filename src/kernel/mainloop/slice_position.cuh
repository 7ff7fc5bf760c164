// Where in the ring a consumer warpgroup is: under KernelSchedule::sliced_k each takes every so manyth stage.
#pragma once

#include <type_traits>

#include "kernel/pipeline.cuh"

namespace sluice {

// The stages of one warpgroup are always the same: if others had them in between, whoever is ahead of a stage's last fill would take the
// phase before it for the one after. (That hung one launch in thousands, where rings were no multiple: one H200, 24 November 2026.)
template <int stages, int stride>
struct StridingPosition : RingPosition<stages> {
  SLUICE_DEVICE explicit StridingPosition(const RingPosition<stages>& at) : RingPosition<stages>(at) {}

  SLUICE_DEVICE void advance() {
    const bool wraps = this->stage + stride >= stages;
    this->stage += wraps ? stride - stages : stride;
    this->parity ^= wraps ? 1 : 0;
  }
  static_assert(stages % stride == 0);
};

template <KernelConfig config>
using ConsumerPosition = std::conditional_t<(k_slices(config) > 1), StridingPosition<shared_memory_layout(config).stages, k_slices(config)>,
                                            typename Pipeline<config>::Position>;

}  // namespace sluice
