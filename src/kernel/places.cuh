// Tiles dealt by place: a CTA's unit is the place of its SM, so that neighbouring tiles lie on one GPC whatever the order in which CTAs
// started. Where something else holds SMs one SM may run two CTAs of a launch: whoever comes second takes any place that is free. There
// are as many CTAs as places, and none waits for another, so that it does not matter who has which.
#pragma once

#include "arch/arch.cuh"
#include "core/tile_parts.hpp"
#include "kernel/place_params.cuh"

namespace sluice {

template <KernelConfig config>
class Places {
 public:
  // By the whole warp, first of all: the item is that of the CTA's place, where tiles are dealt so.
  static SLUICE_DEVICE void claim(const PlaceParams& params, int& item) {
    if (given(params)) item = arch::from_lane(arch::lane() == 0 ? take(params) : 0, 0);
  }

  // By one thread, when the place has been claimed. The last one leaves the words as they were; only then may the next launch claim any.
  static SLUICE_DEVICE void count(const PlaceParams& params) {
    if (!given(params)) return;
    const auto ctas = static_cast<std::uint32_t>(arch::ctas_in_grid());
    if (arch::atomic_add_acq_rel(params.taken + kPlaceWords, 1) == ctas - 1) {
      for (int word = 0; word <= kPlaceWords; ++word) arch::store_relaxed(params.taken + word, 0);
      arch::fence_global();
    }
    if (params.early_successor) arch::allow_successor();
  }

 private:
  static SLUICE_DEVICE bool given(const PlaceParams& params) { return claims_places(config) && params.taken != nullptr; }

  static SLUICE_DEVICE int take(const PlaceParams& params) {
    const int places = arch::ctas_in_grid();
    const int sm = arch::sm_number();
    int place = sm < kMostPlaces ? params.of_sm[sm] : 0;
    for (;;) {
      const int word = place / kPlacesPerWord, first = word * kPlacesPerWord;
      const std::uint32_t bit = 1u << (place - first), before = arch::atomic_or_relaxed(params.taken + word, bit);
      if ((before & bit) == 0) return place;
      const std::uint32_t there = places - first < kPlacesPerWord ? (1u << (places - first)) - 1 : ~0u, left = there & ~before;
      place = left != 0 ? first + arch::lowest_bit(left) : first + kPlacesPerWord < places ? first + kPlacesPerWord : 0;
    }
  }
};

}  // namespace sluice
