#include "launch/bind_places.hpp"

#include <utility>

#include "core/launched_clusters.hpp"
#include "scheduler/workspace.hpp"

namespace sluice {

void bind_places(const Plan& plan, void* workspace, PlacesOfSms places_of_sms, GemmParams& params) {
  if (!dealt_by_place(plan)) return;
  const std::optional<SmPlaces> of_sm = places_of_sms(plan.device.sm_count);
  if (!of_sm) return;
  params.places = {.of_sm = *of_sm,
                   .early_successor = std::exchange(params.early_successor, false),
                   .taken = static_cast<std::uint32_t*>(workspace) + kFirstPlaceFlag};
}

}  // namespace sluice
