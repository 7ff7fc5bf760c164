#include "launch/bind_pieces.hpp"

#include <cstddef>
#include <cstdint>

#include "core/tile_parts.hpp"
#include "scheduler/workspace.hpp"

namespace sluice {

ReductionParams bind_pieces(const Plan& plan, void* workspace) {
  const SchedulerParams& s = plan.scheduler;
  ReductionParams params{};
  params.flags = static_cast<std::uint32_t*>(workspace);
  params.counter = params.flags + kCounterFlag;
  params.sums = reinterpret_cast<float*>(static_cast<std::byte*>(workspace) + kFlagBytes);
  params.deposit_step = deposit_step(s);
  if (s.reduction == Reduction::separate) params.parts = tile_parts(plan.kernel, slices_of_tile(plan.kernel, s.splits));
  if (s.reduction == Reduction::cluster) params.parts = tile_parts(plan.kernel, s.splits);
  return params;
}

}  // namespace sluice
