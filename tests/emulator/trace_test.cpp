// Kernels with a recorder: they compute what the plain ones compute, and tell of every tile once, in the order in which things happen.
#include "sluice/trace.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <tuple>

#include <gtest/gtest.h>

namespace sluice {
namespace {

// Operands of small integers, of which no sum is rounded.
struct Product {
  Plan plan;
  std::vector<std::uint16_t> a, b, d;

  GemmArguments arguments() { return {.a = a.data(), .b = b.data(), .d = d.data()}; }
};

std::vector<std::uint16_t> small_integers(std::size_t count, std::size_t step) {
  constexpr std::array<std::uint16_t, 4> kBf16 = {0x0000, 0x3f80, 0xbf80, 0x4000};  // 0, 1, -1, 2
  std::vector<std::uint16_t> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = kBf16[i * step / 3 % kBf16.size()];
  return values;
}

Product product(std::int64_t m, std::int64_t n, std::int64_t k, const PlanOptions& options) {
  Product made{.plan = plan({.m = m, .n = n, .k = k}, find_device("h10").value(), options).value(), .a = {}, .b = {}, .d = {}};
  made.a = small_integers(static_cast<std::size_t>(m * k), 5);
  made.b = small_integers(static_cast<std::size_t>(n * k), 7);
  made.d.resize(static_cast<std::size_t>(m * n));
  return made;
}

struct Way {
  const char* kernel;
  SchedulerKind scheduler = SchedulerKind::data_parallel;
  int splits = 0;
  Reduction reduction = Reduction::workspace;
};
using enum SchedulerKind;
constexpr std::array kWays = {Way{"bf16_rc_coop_128x128x64_c1x1"},
                              Way{"bf16_rc_ping_64x64x64_c1x1"},
                              Way{"bf16_rc_coop_128x128x64_c1x1", split_k, 4},
                              Way{"bf16_rc_coop_128x128x64_c1x1", split_k, 2, Reduction::cluster},
                              Way{"bf16_rc_coop_128x128x64_c1x1", split_k, 4, Reduction::separate},
                              Way{"bf16_rc_coop_128x128x64_c1x1", stream_k},
                              Way{"bf16_rc_ping_64x64x64_c1x1", stream_k}};

// Those that every tile of a role has.
void expect_turning_points(const Trace& trace, const TracedTile& tile) {
  const bool consumer = trace.tracks[static_cast<std::size_t>(tile.track)].role >= TraceRole::consumer_0;
  EXPECT_TRUE(tile.at(TraceEvent::taken) && tile.at(TraceEvent::mainloop_end));
  EXPECT_EQ(tile.at(TraceEvent::turn) && tile.at(TraceEvent::first_data) && tile.at(TraceEvent::done), consumer);
}

class EveryWay : public testing::TestWithParam<Way> {
 protected:
  static Product made() {
    const Way& way = GetParam();
    PlanOptions options{.scheduler = way.scheduler, .splits = way.splits};
    if (way.scheduler == split_k) options.reduction = way.reduction;
    options.kernel_name = way.kernel;
    return product(200, 264, 512, options);
  }
};

TEST_P(EveryWay, TracedKernelsComputeTheSameBits) {
  Product p = made();
  ASSERT_TRUE(run_on_emulator(p.plan, p.arguments()));
  const std::vector<std::uint16_t> plain = p.d;
  std::fill(p.d.begin(), p.d.end(), std::uint16_t{0xffff});
  std::vector<std::byte> buffer(trace_bytes(p.plan));
  const Status done = run_traced_on_emulator(p.plan, p.arguments(), {buffer.data(), buffer.size()});
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(p.d, plain);
}

TEST_P(EveryWay, EveryPieceOfATileIsRecordedOnceByEachRole) {
  Product p = made();
  std::vector<std::byte> buffer(trace_bytes(p.plan));
  ASSERT_TRUE(run_traced_on_emulator(p.plan, p.arguments(), {buffer.data(), buffer.size()}, {.seed = 3}));
  const Result<Trace> trace = read_trace(p.plan, buffer.data(), buffer.size(), true);
  ASSERT_TRUE(trace) << trace.error().message;
  EXPECT_EQ(trace->lost_tiles, 0);
  // By role (of pingpong's consumers together): how often each k-tile of each tile.
  std::map<std::tuple<TraceRole, int, int>, std::map<int, int>> seen;
  for (const TracedTile& tile : trace->tiles) {
    TraceRole role = trace->tracks[static_cast<std::size_t>(tile.track)].role;
    if (trace->workers_per_cta > 1 && role == TraceRole::consumer_1) role = TraceRole::consumer_0;
    for (int k = tile.tile.k_begin; k < tile.tile.k_end; ++k) ++seen[{role, tile.tile.tile_m, tile.tile.tile_n}][k];
    expect_turning_points(*trace, tile);
    std::optional<double> before;
    for (const std::optional<double>& us : tile.us) {
      if (us && before) EXPECT_GE(*us, *before);
      before = us ? us : before;
    }
  }
  const std::size_t tiles = static_cast<std::size_t>(p.plan.scheduler.tiles_m) * static_cast<std::size_t>(p.plan.scheduler.tiles_n);
  EXPECT_EQ(seen.size(), tiles * (trace->workers_per_cta > 1 ? 3 : 4));  // two producers, and consumers
  for (const auto& [place, k_tiles] : seen) {
    EXPECT_EQ(k_tiles.size(), static_cast<std::size_t>(p.plan.scheduler.k_tiles));
    for (const auto& [k, times] : k_tiles) EXPECT_EQ(times, 1);
  }
}

TEST_P(EveryWay, WithoutRoomTilesAreCountedAndNothingElseChanges) {
  Product p = made();
  ASSERT_TRUE(run_on_emulator(p.plan, p.arguments()));
  const std::vector<std::uint16_t> plain = p.d;
  std::vector<std::byte> all(trace_bytes(p.plan)), few(static_cast<std::size_t>(p.plan.grid_ctas) * 6 * (48 + 96));
  ASSERT_TRUE(run_traced_on_emulator(p.plan, p.arguments(), {all.data(), all.size()}));
  ASSERT_TRUE(run_traced_on_emulator(p.plan, p.arguments(), {few.data(), few.size()}));
  EXPECT_EQ(p.d, plain);
  const Trace whole = read_trace(p.plan, all.data(), all.size(), true).value(),
              cut = read_trace(p.plan, few.data(), few.size(), true).value();
  EXPECT_EQ(cut.tiles.size() + static_cast<std::size_t>(cut.lost_tiles), whole.tiles.size());
  EXPECT_EQ(cut.tiles.size(), cut.tracks.size());  // one each
  for (const TracedTile& tile : cut.tiles) expect_turning_points(cut, tile);
}

INSTANTIATE_TEST_SUITE_P(Ways, EveryWay, testing::ValuesIn(kWays));

TEST(TracedKernels, AreAllInTheListOfKernels) {
  EXPECT_GE(traced_kernel_list().size(), 4u);
  for (const KernelConfig& traced : traced_kernel_list())
    EXPECT_NE(std::find(kernel_list().begin(), kernel_list().end(), traced), kernel_list().end()) << name(traced);
}

TEST(TracedKernels, SayWhatIsWrongWithABuffer) {
  Product p = product(128, 128, 128, {.kernel_name = "bf16_rc_coop_128x128x64_c1x1"});
  std::vector<std::byte> buffer(trace_bytes(p.plan));
  const auto message = [&](TraceBuffer wrong) { return run_traced_on_emulator(p.plan, p.arguments(), wrong).error().message; };
  EXPECT_NE(message({}).find("null or not aligned to 16 bytes"), std::string::npos);
  EXPECT_NE(message({buffer.data() + 8, buffer.size() - 8}).find("not aligned"), std::string::npos);
  EXPECT_NE(message({buffer.data(), 100}).find("has 100 bytes; one tile for each role of 1 CTAs needs 864"), std::string::npos);
  Product other = product(128, 128, 128, {.kernel_name = "bf16_rc_coop_128x128x64_c2x1"});
  EXPECT_NE(run_traced_on_emulator(other.plan, other.arguments(), {buffer.data(), buffer.size()})
                .error()
                .message.find("is not compiled with a recorder"),
            std::string::npos);
}

}  // namespace
}  // namespace sluice
