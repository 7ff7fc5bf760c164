// GPUs as data: those built in, those from files, and those that are refused.
#include "sluice/device.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "sluice/run.hpp"

namespace sluice {
namespace {

DeviceSpec device(const char* name) {
  const Result<DeviceSpec> found = find_device(name);
  EXPECT_TRUE(found.ok());
  return found.ok() ? *found : DeviceSpec{};
}

TEST(Device, BuiltIn) {
  EXPECT_EQ(device("h200").sm_count, 132);
  EXPECT_EQ(device("h100-sxm").sm_count, 132);
  EXPECT_EQ(device("h100-pcie").sm_count, 114);
  EXPECT_EQ(device("h20").sm_count, 78);
  EXPECT_EQ(device("h10").sm_count, 4);
  for (const DeviceSpec& d : builtin_devices()) {
    const Status status = validate(d);
    EXPECT_TRUE(status.ok()) << status.error().message;
  }
}

TEST(Device, AnUnknownNameListsTheKnown) {
  const Result<DeviceSpec> found = find_device("b200");
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().code, ErrorCode::not_found);
  for (const char* piece : {"'b200'", "h200", "h100-sxm", "h100-pcie", "h20", "h10"})
    EXPECT_NE(found.error().message.find(piece), std::string::npos) << found.error().message;
  EXPECT_FALSE(find_device("").ok());
  EXPECT_FALSE(find_device("H200").ok());
}

TEST(Device, ACurrentDeviceNeedsABuildWithCuda) {
  if (built_with_cuda()) return;  // what the GPU answers is for the GPU tests
  const Result<DeviceSpec> found = current_device();
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().code, ErrorCode::unsupported);
  EXPECT_NE(found.error().message.find("SLUICE_CUDA"), std::string::npos);
}

TEST(Device, WrongFiguresAreNamed) {
  const double nan = std::numeric_limits<double>::quiet_NaN(), infinity = std::numeric_limits<double>::infinity();
  struct Case {
    std::function<void(DeviceSpec&)> spoil;
    ErrorCode code;
    std::vector<std::string> pieces;
  };
  const std::vector<Case> cases = {
      {[](DeviceSpec& d) { d.compute_capability = 80; }, ErrorCode::wrong_device, {"8.0", "9.0", "Hopper"}},
      {[](DeviceSpec& d) { d.compute_capability = 100; }, ErrorCode::wrong_device, {"10.0", "9.0"}},
      {[](DeviceSpec& d) { d.sm_count = 0; }, ErrorCode::invalid_argument, {"sm_count = 0", "from 1"}},
      {[](DeviceSpec& d) { d.sm_count = -5; }, ErrorCode::invalid_argument, {"sm_count = -5"}},
      {[](DeviceSpec& d) { d.sm_count = std::numeric_limits<int>::max(); },
       ErrorCode::invalid_argument,
       {"sm_count = 2147483647", "1048576"}},
      {[](DeviceSpec& d) { d.clusters_of_2 = -1; }, ErrorCode::invalid_argument, {"clusters_of_2 = -1", "0 to"}},
      {[](DeviceSpec& d) { d.clusters_of_2 = d.sm_count; }, ErrorCode::invalid_argument, {"clusters_of_2 = 132", "66"}},
      {[](DeviceSpec& d) { d.shared_memory_per_cta_bytes = -1; }, ErrorCode::invalid_argument, {"shared_memory_per_cta_bytes = -1"}},
      {[](DeviceSpec& d) { d.l2_bytes = -1; }, ErrorCode::invalid_argument, {"l2_bytes = -1"}},
      {[](DeviceSpec& d) { d.clock_ghz = 0; }, ErrorCode::invalid_argument, {"clock_ghz = 0", "positive"}},
      {[=](DeviceSpec& d) { d.clock_ghz = nan; }, ErrorCode::invalid_argument, {"clock_ghz = ", "nan", "positive"}},
      {[=](DeviceSpec& d) { d.hbm_gb_per_s = infinity; }, ErrorCode::invalid_argument, {"hbm_gb_per_s = inf", "finite"}},
      {[](DeviceSpec& d) { d.l2_gb_per_s = -3; }, ErrorCode::invalid_argument, {"l2_gb_per_s = -3"}},
      {[](DeviceSpec& d) { d.flops_per_clk_per_sm = 0; }, ErrorCode::invalid_argument, {"flops_per_clk_per_sm = 0"}},
      {[](DeviceSpec& d) { d.sustained_fraction = 1.5; }, ErrorCode::invalid_argument, {"sustained_fraction = 1.5", "at most 1"}},
      {[=](DeviceSpec& d) { d.sustained_fraction = nan; }, ErrorCode::invalid_argument, {"sustained_fraction"}},
      {[](DeviceSpec& d) { d.launch_us = -1; }, ErrorCode::invalid_argument, {"launch_us = -1", "0 or more"}},
      {[=](DeviceSpec& d) { d.launch_us = nan; }, ErrorCode::invalid_argument, {"launch_us"}},
  };
  for (const Case& c : cases) {
    DeviceSpec spoiled = device("h200");
    c.spoil(spoiled);
    const Status status = validate(spoiled);
    ASSERT_FALSE(status.ok()) << c.pieces.front() << " was accepted";
    EXPECT_EQ(status.error().code, c.code) << status.error().message;
    EXPECT_NE(status.error().message.find("'h200'"), std::string::npos) << status.error().message;
    for (const std::string& piece : c.pieces)
      EXPECT_NE(status.error().message.find(piece), std::string::npos) << "'" << piece << "' is not in: " << status.error().message;
  }
}

TEST(Device, JsonRoundTrip) {
  for (DeviceSpec d : builtin_devices()) {
    d.clock_ghz = 1.0 / 3.0;  // needs all digits
    d.name += " \"quoted\" \\ \n ü";
    const Result<DeviceSpec> back = device_from_json(to_json(d));
    ASSERT_TRUE(back.ok()) << back.error().message;
    EXPECT_EQ(*back, d);
  }
}

TEST(Device, JsonIsCheckedLikeAnyDevice) {
  DeviceSpec d = device("h10");
  d.sm_count = -1;
  Result<DeviceSpec> back = device_from_json(to_json(d));
  ASSERT_FALSE(back.ok());
  EXPECT_EQ(back.error().code, ErrorCode::invalid_argument);
  d = device("h10");
  d.compute_capability = 75;
  back = device_from_json(to_json(d));
  ASSERT_FALSE(back.ok());
  EXPECT_EQ(back.error().code, ErrorCode::wrong_device);
}

TEST(Device, JsonOfAPlanIsNoDevice) {
  const Result<DeviceSpec> back = device_from_json(R"({"format": "sluice-plan", "version": 1})");
  ASSERT_FALSE(back.ok());
  EXPECT_EQ(back.error().code, ErrorCode::bad_format);
  EXPECT_NE(back.error().message.find("sluice-device"), std::string::npos) << back.error().message;
}

// A name that is not UTF-8 cannot be written as JSON as it is; it must not throw.
TEST(Device, JsonOfANameThatIsNotUtf8) {
  DeviceSpec d = device("h10");
  d.name = "bad\xff";
  const Result<DeviceSpec> back = device_from_json(to_json(d));
  ASSERT_TRUE(back.ok()) << back.error().message;
  EXPECT_EQ(back->name.substr(0, 3), "bad");
}

}  // namespace
}  // namespace sluice
