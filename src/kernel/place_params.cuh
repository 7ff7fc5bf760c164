// Where tiles are dealt by place: see dealt_by_place() in core/launched_clusters.hpp.
#pragma once

#include <cstdint>

#include "core/gpc_places.hpp"

namespace sluice {

struct PlaceParams {
  SmPlaces of_sm;
  bool early_successor;  // as of GemmParams, which leaves it to those who claim
  std::uint32_t* taken;  // a bit for each place, then how many are taken; zeros between launches. Null: items go by the CTA's number
};

}  // namespace sluice
