// While something else holds SMs: every schedule gets done, and right; and gives the same bits while others come and go.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <random>
#include <thread>

#include "gemm_harness.hpp"
#include "occupier.hpp"
#include "schedule_ways.hpp"
#include "summary.hpp"

namespace sluice::gpu_tests {
namespace {

GemmHarness& harness() {
  static GemmHarness* const shared = new GemmHarness;  // never freed: the driver may be gone before static destructors run
  return *shared;
}

// Whether it has come within so many seconds.
bool comes_within(double seconds, const bench::DeviceEvent& event) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (!event.has_come()) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
  return true;
}

constexpr int kLaunches = 4;

void enqueue(GemmHarness& h, const PlacedCase& placed, const bench::DeviceEvent& begin, const bench::DeviceEvent& end) {
  begin.record(h.stream());
  for (int i = 0; i < kLaunches; ++i) h.run(placed);
  end.record(h.stream());
}

// The longest that the pieces of work below can take, with all that may go wrong: the SMs are held for longer.
constexpr double kEnoughSeconds = 2;
static_assert(kEnoughSeconds < Occupier::kMostSeconds);

TEST(CoResident, EverySchedulesWorkGetsDone) {
  GemmHarness& h = harness();
  Occupier occupier;
  const bench::DeviceEvent begin, end;
  const int sms = settings().device.sm_count;
  std::printf("%-84s %5s %10s %13s %10s\n", "SMs held by others", "held", "us alone", "proportional", "us");
  for (const Way& way : all_ways(settings().small)) {
    summary().begin(way.title() + " beside a kernel that holds SMs");
    // Alone first: for its time, and so that everything is loaded before SMs are held (loading may wait for all that runs).
    const PlacedCase placed = h.place(way.kernel, way.gemm_case);
    h.check().reset();
    h.run_and_check(placed, way.gemm_case);
    enqueue(h, placed, begin, end);
    ASSERT_TRUE(h.check().fetch().ok()) << way.title() << ": wrong even alone";
    const double alone_us = begin.us_until(end) / kLaunches;

    for (const int held : {8, 32, 64}) {
      if (held >= sms) continue;
      h.check().reset();
      h.poison_output(placed);
      bench::check(cudaStreamSynchronize(h.stream()), "poisoning");
      ASSERT_TRUE(occupier.hold(held)) << "the CTAs that hold SMs have not come";
      enqueue(h, placed, begin, end);
      const bool done = comes_within(kEnoughSeconds, end);
      EXPECT_TRUE(occupier.release()) << way.title() << ": ended only when the held SMs came free by themselves";
      ASSERT_TRUE(done) << way.title() << ": not done after " << kEnoughSeconds << " s beside a kernel on " << held << " SMs";
      h.check().against_reference(placed.plan.problem, placed.arguments, nullptr, way.gemm_case.exactness);
      h.check().outside_untouched(placed.plan.problem, placed.arguments.groups, placed.arguments.d, placed.d_region, placed.d_region_bytes);
      const bench::CheckReport report = h.check().fetch();
      EXPECT_TRUE(report.ok()) << held << " SMs held: " << describe_failure(way.gemm_case, placed.plan, report);
      std::printf("%-84s %5d %10.1f %13.1f %10.1f\n", way.title().c_str(), held, alone_us, alone_us * sms / (sms - held),
                  begin.us_until(end) / kLaunches);
    }
  }
}

TEST(CoResident, TheSameBitsInTenThousandReplays) {
  const int graphs = settings().small ? 2 : 1000, each = settings().small ? 3 : 10;
  GemmHarness& h = harness();
  Occupier passers_by;
  std::mt19937 random(1);
  for (const Way& way : all_ways(true)) {
    summary().begin(way.title() + ", replays beside kernels that come and go");
    const PlacedCase placed = h.place(way.kernel, way.gemm_case);
    h.check().reset();
    h.run_and_check(placed, way.gemm_case);
    const bench::DeviceBuffer first(placed.d_region_bytes);
    bench::check(cudaMemcpyAsync(first.data(), placed.d_region, placed.d_region_bytes, cudaMemcpyDeviceToDevice, h.stream()), "keeping D");
    ASSERT_TRUE(h.check().fetch().ok()) << way.title();

    h.check().reset();
    const bench::Graph graph(h.stream(), [&] {
      for (int i = 0; i < each; ++i) {
        h.poison_output(placed);
        h.run(placed);
        h.check().same_bytes(placed.d_region, first.data(), placed.d_region_bytes);
      }
    });
    for (int i = 0; i < graphs; ++i) {
      passers_by.pass_by(1 + static_cast<int>(random() % 100), 5 + static_cast<int>(random() % 100));
      graph.launch(h.stream());
      if (i % 50 == 49) passers_by.wait();  // so that neither runs far ahead of the other
    }
    const bench::CheckReport report = h.check().fetch();
    passers_by.wait();
    EXPECT_EQ(report.wrong, 0u) << way.title() << ": " << report.wrong << " bytes differed over " << graphs * each << " replays";
  }
}

}  // namespace
}  // namespace sluice::gpu_tests
