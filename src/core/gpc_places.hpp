// Which SMs lie side by side: a GPC's requests for the same line count as one on their way to L2 (docs/h200.md, "What SMs share").
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>

namespace sluice {

inline constexpr int kMostPlaces = 144;  // SMs of a Hopper GPU with nothing fused off
inline constexpr int kPlacesTogether = 16;
inline constexpr int kPlacesPerWord = 32;  // of a bit for each that is taken
inline constexpr int kPlaceWords = (kMostPlaces + kPlacesPerWord - 1) / kPlacesPerWord;

// A place for each SM (%smid), from 0 to sm_count - 1, so that each run of kPlacesTogether places lies in one GPC as long as GPCs have so
// many SMs; then those of smaller ones, then what is left over.
using SmPlaces = std::array<std::uint8_t, kMostPlaces>;

// Nothing tells the GPC of an SM. How many clusters fit tells how many GPCs have how many TPCs (two SMs each), and the TPCs of a GPU are
// numbered round by round: one of each GPC that has another, the smallest GPC first; TPCs that no larger cluster can use come last.
// (That is how two H200s and an H100 are, November 2026; the GPU test PlacesTest asks the GPU. Elsewhere it may be one order of many.)
// clusters(n): how many clusters of n CTAs run at once, with an SM for each CTA. Nothing, if its answers fit no such GPU.
std::optional<SmPlaces> places_by_gpc(int sm_count, const std::function<int(int)>& clusters);

}  // namespace sluice
