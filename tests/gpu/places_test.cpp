// Whether the places of SMs are what core/gpc_places.hpp takes them for: the GPU puts the CTAs of a cluster on one GPC.
#include <gtest/gtest.h>

#include <set>

#include "cluster_sms.hpp"
#include "launch/cuda/places.hpp"
#include "sluice/device.hpp"

namespace sluice::gpu_tests {
namespace {

class PlacesTest : public testing::TestWithParam<int> {};

TEST_P(PlacesTest, OfACluster) {
  const DeviceSpec device = current_device().value();
  const auto places = places_of_current_device(device.sm_count);
  ASSERT_TRUE(places) << "the driver's answers fit no GPU that is known";
  const int rest = device.sm_count / kPlacesTogether * kPlacesTogether;  // behind whole runs are single SMs
  const auto clusters = sms_of_clusters(GetParam());
  ASSERT_FALSE(clusters.empty());
  for (const auto& sms : clusters) {
    std::set<int> runs;
    for (const int sm : sms) {
      const int place = (*places)[static_cast<std::size_t>(sm)];
      if (place < rest) runs.insert(place / kPlacesTogether);
    }
    EXPECT_LE(runs.size(), 1u) << "the cluster with SM " << sms.front() << " of " << clusters.size() << " clusters";
  }
}

INSTANTIATE_TEST_SUITE_P(All, PlacesTest, testing::Values(16, 8));

}  // namespace
}  // namespace sluice::gpu_tests
