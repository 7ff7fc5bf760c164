#include "launch/bind_places.hpp"

#include <utility>

#include "core/launched_clusters.hpp"
#include "scheduler/workspace.hpp"

namespace sluice {

void bind_places(const Plan& plan, void* workspace, const SmPlaces* of_sm, GemmParams& params) {
  if (of_sm == nullptr || !dealt_by_place(plan.problem, plan.device, plan.kernel, plan.scheduler)) return;
  params.places = {.of_sm = *of_sm,
                   .early_successor = std::exchange(params.early_successor, false),
                   .taken = static_cast<std::uint32_t*>(workspace) + kFirstPlaceFlag};
}

}  // namespace sluice
