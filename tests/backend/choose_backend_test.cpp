// choose_backend() with and without each machine.
#include <gtest/gtest.h>

#include <string>

#include "launch/backend.hpp"
#include "sluice/emulator.hpp"

namespace sluice {
namespace {

Plan plan_of(std::int64_t size, const PlanOptions& options = {}) {
  return *plan({.m = size, .n = size, .k = size}, *find_device("h200"), options);
}

const Machines kAll{.emulator = true};
const Machines kNoGpu{.no_gpu = Error{ErrorCode::cuda, "no usable GPU"}, .emulator = true};
const Machines kNothing{.no_gpu = Error{ErrorCode::cuda, "no usable GPU"}};

TEST(ChooseBackend, TheGpuWhateverTheSize) {
  for (const std::int64_t size : {1, 256, 8192}) EXPECT_EQ(choose_backend(plan_of(size), kAll).backend, Backend::cuda) << size;
}

TEST(ChooseBackend, TheEmulatorForWhatIsSmall) {
  for (const std::int64_t size : {0, 1, 64, 256}) {
    const BackendChoice choice = choose_backend(plan_of(size), kNoGpu);
    EXPECT_EQ(choice.backend, Backend::emulator) << size;
    EXPECT_EQ(choice.why, "no GPU: no usable GPU");
  }
}

TEST(ChooseBackend, TheReferenceForWhatIsNot) {
  for (const std::int64_t size : {4096, 65536}) {
    const BackendChoice choice = choose_backend(plan_of(size), kNoGpu);
    EXPECT_EQ(choice.backend, Backend::reference) << size;
    EXPECT_NE(choice.why.find("the emulator would take about"), std::string::npos) << choice.why;
  }
}

TEST(ChooseBackend, TheReferenceWhereNothingElseIs) {
  const BackendChoice choice = choose_backend(plan_of(64), kNothing);
  EXPECT_EQ(choice.backend, Backend::reference);
  EXPECT_EQ(choice.why, "no GPU: no usable GPU; and this build has no emulator");
}

TEST(EmulatedSeconds, GrowsWithTheWork) {
  double before = 0;
  for (const std::int64_t size : {64, 256, 1024, 4096, 16384}) {
    const double seconds = emulated_seconds(plan_of(size));
    EXPECT_GT(seconds, before) << size;
    before = seconds;
  }
}

}  // namespace
}  // namespace sluice
