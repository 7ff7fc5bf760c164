#include "core/gpc_places.hpp"

#include <algorithm>
#include <vector>

namespace sluice {
namespace {

constexpr int kMostTpcs = 9, kSmsPerTpc = 2;

// [k]: how many GPCs have k TPCs or more. A GPC of n SMs holds n / s clusters of s CTAs, without what is left over.
std::array<int, kMostTpcs + 1> gpcs_by_tpcs(const std::function<int(int)>& clusters) {
  std::array<int, kMostTpcs + 1> at_least{};
  at_least[9] = clusters(9) - clusters(10);
  for (int tpcs = 8; tpcs >= 5; --tpcs) at_least[tpcs] = clusters(kSmsPerTpc * tpcs);
  at_least[4] = clusters(8) - at_least[8];
  at_least[3] = clusters(6) - at_least[6] - at_least[9];
  at_least[2] = clusters(4) - at_least[4] - at_least[6] - at_least[8];
  at_least[1] = at_least[2];
  return at_least;
}

}  // namespace

std::optional<SmPlaces> places_by_gpc(int sm_count, const std::function<int(int)>& clusters) {
  const auto at_least = gpcs_by_tpcs(clusters);
  const int gpcs = at_least[1];
  if (sm_count > kMostPlaces || gpcs <= 0 || at_least[kMostTpcs] < 0 || !std::is_sorted(at_least.rbegin(), at_least.rend() - 1)) return {};
  std::vector<std::vector<int>> sms(static_cast<std::size_t>(gpcs));
  int sm = 0;
  for (int tpc = 1; tpc <= kMostTpcs; ++tpc)
    for (int gpc = gpcs - at_least[tpc]; gpc < gpcs; ++gpc)
      for (int i = 0; i < kSmsPerTpc; ++i) sms[static_cast<std::size_t>(gpc)].push_back(sm++);
  if (sm > sm_count) return {};

  std::vector<int> first, rest;  // whole runs, and what is left over
  std::reverse(sms.begin(), sms.end());
  for (const auto& of_gpc : sms)
    for (std::size_t i = 0; i < of_gpc.size(); ++i) (i < kPlacesTogether ? first : rest).push_back(of_gpc[i]);
  while (sm < sm_count) first.push_back(sm++);
  first.insert(first.end(), rest.begin(), rest.end());
  SmPlaces places{};
  for (std::size_t place = 0; place < first.size(); ++place)
    places[static_cast<std::size_t>(first[place])] = static_cast<std::uint8_t>(place);
  return places;
}

}  // namespace sluice
