// What is made of a trace, on traces written by hand.
#include "sluice/trace.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>

#include <gtest/gtest.h>

#include "core/trace_layout.hpp"

namespace sluice {
namespace {

using enum TraceEvent;

constexpr double kNever = std::numeric_limits<double>::quiet_NaN();

// Of one tile: taken, turn, first data, main loop's end, wait's begin and end, epilogue's begin, done.
TracedTile tile_on(int track, int tile_m, const std::array<double, kTraceEvents>& us, WorkTile tile = {}) {
  TracedTile traced{.track = track, .tile = tile, .us = {}};
  traced.tile.tile_m = tile_m;
  for (std::size_t i = 0; i < kTraceEvents; ++i)
    if (us[i] == us[i]) traced.us[i] = us[i];
  return traced;
}

TracedTile whole(int track, int tile_m, double begin, double data, double end, double done) {
  return tile_on(track, tile_m, {begin, begin, data, end, kNever, kNever, end, done});
}

double share_of(const TraceSummary& summary, TracePhase phase) { return summary.share[static_cast<std::size_t>(phase)]; }
double critical_of(const TraceSummary& summary, TracePhase phase) { return summary.critical_us[static_cast<std::size_t>(phase)]; }
double sum(const std::array<double, kTracePhases>& values) { return std::accumulate(values.begin(), values.end(), 0.0); }

// Two consumers share tiles of 10 us and write out for 2, on SM 0; SM 1 has one tile.
Trace cooperative() {
  Trace trace{.sm_count = 2, .makespan_us = 25};
  trace.tracks = {{0, 0, TraceRole::producer_p, 0, 20},
                  {0, 0, TraceRole::consumer_0, 0, 25},
                  {0, 0, TraceRole::consumer_1, 0, 25},
                  {1, 1, TraceRole::consumer_0, 0, 13},
                  {1, 1, TraceRole::consumer_1, 0, 13}};
  for (const int consumer : {1, 2}) {
    trace.tiles.push_back(whole(consumer, 0, 0, 1, 11, 13));
    trace.tiles.push_back(whole(consumer, 1, 13, 13, 23, 25));
  }
  for (const int consumer : {3, 4}) trace.tiles.push_back(whole(consumer, 2, 0, 1, 11, 13));
  return trace;
}

TEST(TraceSummary, TheCooperativeScheduleStopsItsMainLoopsForEachEpilogue) {
  const TraceSummary summary = summarise(cooperative(), {}, 25);
  EXPECT_EQ(summary.tiles, 3);
  EXPECT_EQ(summary.most_tiles_per_cta, 2);
  EXPECT_DOUBLE_EQ(summary.gaps_per_sm, 0.5);  // one on SM 0, none on SM 1
  EXPECT_DOUBLE_EQ(summary.gap_us, 2);
  EXPECT_DOUBLE_EQ(share_of(summary, TracePhase::mainloop), 30.0 / 50);
  EXPECT_DOUBLE_EQ(share_of(summary, TracePhase::epilogue), 6.0 / 50);
  EXPECT_DOUBLE_EQ(share_of(summary, TracePhase::wait_for_data), 2.0 / 50);
  EXPECT_DOUBLE_EQ(share_of(summary, TracePhase::idle), 12.0 / 50);
  EXPECT_DOUBLE_EQ(sum(summary.share), 1);
  EXPECT_DOUBLE_EQ(summary.busy[5], 1);
  EXPECT_DOUBLE_EQ(summary.busy[11], 0);
  EXPECT_DOUBLE_EQ(summary.busy[15], 0.5);
}

TEST(TraceSummary, PingpongHidesEpilogues) {
  Trace trace{.sm_count = 1, .workers_per_cta = 2, .makespan_us = 33};
  trace.tracks = {{0, 0, TraceRole::consumer_0, 0, 33}, {0, 0, TraceRole::consumer_1, 0, 23}};
  trace.tiles = {whole(0, 0, 0, 1, 11, 13), tile_on(0, 2, {13, 21, 21, 31, kNever, kNever, 31, 33}),
                 tile_on(1, 1, {0, 11, 11, 21, kNever, kNever, 21, 23})};
  const TraceSummary summary = summarise(trace, {}, 33);
  EXPECT_DOUBLE_EQ(summary.gaps_per_sm, 0);
  EXPECT_EQ(summary.most_tiles_per_cta, 3);
  EXPECT_DOUBLE_EQ(share_of(summary, TracePhase::epilogue), 2.0 / 33);  // the last one alone
  // The way back from the end leads from one consumer to the other, and never through a wait for a turn.
  EXPECT_DOUBLE_EQ(critical_of(summary, TracePhase::mainloop), 30);
  EXPECT_DOUBLE_EQ(critical_of(summary, TracePhase::wait_for_turn), 0);
  EXPECT_DOUBLE_EQ(sum(summary.critical_us), 33);
}

// The last piece waits from 11 to 17, since the other's main loop ends at 16 only.
Trace two_pieces() {
  const WorkTile first{.k_begin = 0, .k_end = 4, .split_tile = 0, .peer = 0, .peers = 2},
      last{.k_begin = 4, .k_end = 8, .split_tile = 0, .peer = 1, .peers = 2};
  Trace trace{.sm_count = 2, .makespan_us = 20};
  trace.tracks = {{0, 0, TraceRole::consumer_0, 0, 17}, {1, 1, TraceRole::consumer_0, 0, 20}};
  trace.tiles = {tile_on(0, 0, {0, 0, 2, 16, kNever, kNever, kNever, 17}, first), tile_on(1, 0, {0, 0, 1, 11, 11, 17.5, 18, 20}, last)};
  return trace;
}

TEST(TraceSummary, TheCriticalPathLeadsToWhomTheLastPieceWaitedFor) {
  const Trace trace = two_pieces();
  const std::vector<TraceArrow> arrows = arrows_of(trace);
  ASSERT_EQ(arrows.size(), 1u);
  EXPECT_EQ(arrows[0].from, 0u);
  EXPECT_EQ(arrows[0].to, 1u);
  EXPECT_DOUBLE_EQ(arrows[0].left_us, 17);
  EXPECT_DOUBLE_EQ(arrows[0].taken_us, 17.5);
  const TraceSummary summary = summarise(trace, {});
  EXPECT_DOUBLE_EQ(critical_of(summary, TracePhase::mainloop), 14);  // the first piece's
  EXPECT_DOUBLE_EQ(critical_of(summary, TracePhase::wait_for_peers), 0.5);
  EXPECT_DOUBLE_EQ(critical_of(summary, TracePhase::reduction), 1.5);
  EXPECT_DOUBLE_EQ(critical_of(summary, TracePhase::epilogue), 2);
  EXPECT_DOUBLE_EQ(sum(summary.critical_us), 20);
  EXPECT_EQ(summary.critical_path.front().track, 0);
  EXPECT_EQ(summary.critical_path.back().track, 1);
}

TEST(TraceSummary, NamesThePartThatThePredictionIsOffBy) {
  Plan plan;
  plan.predicted = {.launch_us = 2, .ramp_us = 1, .exposed_epilogue_us = 4, .total_us = 27};  // main loops 20
  TraceSummary summary = summarise(cooperative(), plan);
  EXPECT_DOUBLE_EQ(summary.predicted_us, 25);
  EXPECT_EQ(summary.off, "");
  ASSERT_EQ(summary.parts.size(), 4u);
  EXPECT_EQ(summary.parts[1].name, "main loops");
  EXPECT_DOUBLE_EQ(summary.parts[1].measured_us, 20);
  plan.predicted.total_us = 37;
  EXPECT_EQ(summarise(cooperative(), plan).off, "main loops");
  plan.predicted = {.launch_us = 2, .ramp_us = 6, .exposed_epilogue_us = 4, .total_us = 32};
  EXPECT_EQ(summarise(cooperative(), plan).off, "ramp");
}

// A buffer as two SMs would write it, whose clocks stand 5000 cycles apart and tick twice in a nanosecond.
TEST(ReadTrace, LaysTheClocksOfSmsOverOneAnother) {
  const Plan plan =
      sluice::plan({.m = 256, .n = 128, .k = 128}, find_device("h10").value(), {.kernel_name = "bf16_rc_coop_128x128x64_c1x1"}).value();
  ASSERT_EQ(plan.grid_ctas, 2);
  std::vector<std::byte> buffer(trace_bytes(plan));
  auto* const tracks = reinterpret_cast<TraceTrack*>(buffer.data());
  auto* const records = reinterpret_cast<TraceRecord*>(buffer.data() + trace_records_offset(2));
  const int room = traced_tiles_per_track(2, buffer.size());
  for (const int cta : {0, 1}) {  // the second begins half a microsecond later
    const auto late_ns = static_cast<std::uint64_t>(500 * cta), cycles = 2000 + 2 * late_ns + static_cast<std::uint64_t>(5000 * cta);
    const int track = cta * kTracksPerCta + kTracedProducers;
    tracks[track] = {
        .sm = cta, .tiles = 1, .begin_ns = 1000 + late_ns, .begin_cycles = cycles, .end_ns = 3000 + late_ns, .end_cycles = cycles + 4000};
    records[track * room] = {.tile_m = cta, .k_end = 2, .peers = 1, .cycles = {cycles + 200, cycles + 200}};
  }
  const Result<Trace> trace = read_trace(plan, buffer.data(), buffer.size(), false);
  ASSERT_TRUE(trace) << trace.error().message;
  ASSERT_EQ(trace->tracks.size(), 2u);
  EXPECT_DOUBLE_EQ(trace->clock_ghz, 2);
  EXPECT_NEAR(trace->worst_clock_error_ns, 0, 1e-6);
  EXPECT_NEAR(trace->makespan_us, 2.5, 1e-9);
  EXPECT_NEAR(*trace->tiles[0].at(taken), 0.1, 1e-9);
  EXPECT_NEAR(*trace->tiles[1].at(taken), 0.6, 1e-9);
  EXPECT_FALSE(trace->tiles[0].at(done));
  EXPECT_EQ(trace->tiles[1].tile.tile_m, 1);
}

TEST(ReadTrace, CountsTilesForWhichThereWasNoRoom) {
  const Plan plan =
      sluice::plan({.m = 256, .n = 128, .k = 128}, find_device("h10").value(), {.kernel_name = "bf16_rc_coop_128x128x64_c1x1"}).value();
  std::vector<std::byte> buffer(trace_layout_bytes(plan.grid_ctas, 2));
  reinterpret_cast<TraceTrack*>(buffer.data())[0] = {.sm = 0, .tiles = 7, .begin_ns = 1, .begin_cycles = 1, .end_ns = 2, .end_cycles = 2};
  const Result<Trace> trace = read_trace(plan, buffer.data(), buffer.size(), false);
  ASSERT_TRUE(trace) << trace.error().message;
  EXPECT_EQ(trace->lost_tiles, 5);
  EXPECT_EQ(trace->tiles.size(), 2u);
  EXPECT_FALSE(read_trace(plan, buffer.data(), 64, false));
  std::fill(buffer.begin(), buffer.end(), std::byte{0});
  EXPECT_NE(read_trace(plan, buffer.data(), buffer.size(), false).error().message.find("no role has written its end"), std::string::npos);
}

}  // namespace
}  // namespace sluice
