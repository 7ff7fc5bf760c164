// Which SMs lie side by side (core/gpc_places.hpp). That a GPU is so is for the GPU test PlacesTest to find.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>
#include <vector>

#include "core/gpc_places.hpp"

namespace sluice {
namespace {

// A GPU of GPCs with so many SMs each.
std::function<int(int)> gpu_of(std::vector<int> sms) {
  return [sms = std::move(sms)](int ctas) {
    int clusters = 0;
    for (const int n : sms) clusters += n / ctas;
    return clusters;
  };
}

// The SMs of a run of places, in ascending order.
std::vector<int> sms_at(const SmPlaces& places, int first, int count, int sm_count) {
  std::vector<int> sms;
  for (int sm = 0; sm < sm_count; ++sm)
    if (places[static_cast<std::size_t>(sm)] >= first && places[static_cast<std::size_t>(sm)] < first + count) sms.push_back(sm);
  return sms;
}

// Found by clusters that told where they were: one H200, 27 November 2026.
TEST(GpcPlaces, AreThoseOfAnH200) {
  const auto places = places_by_gpc(132, gpu_of({8, 16, 16, 16, 16, 16, 18, 18, 2, 2, 2, 2}));
  ASSERT_TRUE(places);
  std::set<std::vector<int>> runs;
  for (int run = 0; run < 7; ++run) runs.insert(sms_at(*places, run * kPlacesTogether, kPlacesTogether, 132));
  EXPECT_TRUE(runs.count({2, 3, 18, 19, 34, 35, 50, 51, 64, 65, 78, 79, 92, 93, 106, 107}));
  EXPECT_TRUE(runs.count({10, 11, 26, 27, 42, 43, 58, 59, 72, 73, 86, 87, 100, 101, 114, 115}));
  EXPECT_TRUE(runs.count({14, 15, 30, 31, 46, 47, 62, 63, 76, 77, 90, 91, 104, 105, 118, 119})) << "of 18 the first 16";
  EXPECT_EQ(sms_at(*places, 112, 8, 132), (std::vector<int>{0, 1, 16, 17, 32, 33, 48, 49})) << "the small one";
  EXPECT_EQ(sms_at(*places, 120, 8, 132), (std::vector<int>{124, 125, 126, 127, 128, 129, 130, 131}))
      << "those that no cluster of four can use";
  EXPECT_EQ(sms_at(*places, 128, 4, 132), (std::vector<int>{120, 121, 122, 123})) << "what the large ones have more";
}

TEST(GpcPlaces, EverySmHasOne) {
  for (const auto& sms :
       {std::vector<int>{16, 16, 16, 16, 16, 16, 18, 18}, {10, 14, 14, 16, 18, 18, 18, 18}, {4, 16, 16, 16, 18, 18}, {18}}) {
    int count = 0;
    for (const int n : sms) count += n;
    const auto places = places_by_gpc(count, gpu_of(sms));
    ASSERT_TRUE(places);
    std::vector<int> taken(places->begin(), places->begin() + count);
    std::sort(taken.begin(), taken.end());
    for (int place = 0; place < count; ++place) EXPECT_EQ(taken[static_cast<std::size_t>(place)], place);
  }
}

TEST(GpcPlaces, AreUnknownWhereTheAnswersFitNoGpu) {
  EXPECT_FALSE(places_by_gpc(132, [](int) { return 0; })) << "the driver does not say";
  EXPECT_FALSE(places_by_gpc(132, [](int ctas) { return ctas; }));
  EXPECT_FALSE(places_by_gpc(100, gpu_of({16, 16, 16, 16, 16, 16, 18, 18}))) << "more SMs than there are";
  EXPECT_FALSE(places_by_gpc(148, gpu_of({16, 16, 16, 16, 16, 16, 18, 18}))) << "more than there are places";
}

}  // namespace
}  // namespace sluice
