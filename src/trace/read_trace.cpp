// From the bytes that a traced kernel wrote to events in microseconds: which clock of an SM stands where against the one that all share.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "sluice/trace.hpp"

#include "core/check_plan.hpp"
#include "core/describe_scheduler.hpp"
#include "core/kernel_layout.hpp"
#include "core/trace_layout.hpp"
#include "scheduler/single_items.hpp"

namespace sluice {
namespace {

// ns = at_ns + (cycles - at_cycles) * ns_per_cycle, on one SM. The shared clock ticks coarsely (every 32 ns on an H200), an SM's own every
// cycle: all samples of an SM together place the one against the other more finely than a tick.
struct SmClock {
  double at_ns = 0;
  std::uint64_t at_cycles = 0;
};

class Clocks {
 public:
  explicit Clocks(const std::vector<TraceTrack>& tracks) {
    double ns = 0, cycles = 0;
    for (const TraceTrack& track : tracks) {
      ns += static_cast<double>(track.end_ns - track.begin_ns);
      cycles += static_cast<double>(track.end_cycles - track.begin_cycles);
    }
    ns_per_cycle_ = cycles > 0 && ns > 0 ? ns / cycles : 1;
    origin_ns_ = ~std::uint64_t{0};
    for (const TraceTrack& track : tracks) origin_ns_ = std::min(origin_ns_, track.begin_ns);
    place(tracks);
  }

  double ns_per_cycle() const { return ns_per_cycle_; }
  double worst_error_ns() const { return worst_error_ns_; }
  // From an arbitrary origin, the same for all SMs.
  double ns(int sm, std::uint64_t cycles) const {
    const SmClock& clock = sms_.at(sm);
    return clock.at_ns + static_cast<double>(static_cast<std::int64_t>(cycles - clock.at_cycles)) * ns_per_cycle_;
  }

 private:
  void place(const std::vector<TraceTrack>& tracks) {
    std::map<int, int> samples;
    const auto each_sample = [&](const auto& use) {
      for (const TraceTrack& track : tracks) {
        use(track.sm, static_cast<double>(track.begin_ns - origin_ns_), track.begin_cycles);
        use(track.sm, static_cast<double>(track.end_ns - origin_ns_), track.end_cycles);
      }
    };
    each_sample([&](int sm, double, std::uint64_t cycles) { sms_.try_emplace(sm, SmClock{0, cycles}); });
    std::map<int, double> sums;
    each_sample([&](int sm, double at, std::uint64_t cycles) {
      sums[sm] += at - ns(sm, cycles);
      ++samples[sm];
    });
    for (auto& [sm, clock] : sms_) clock.at_ns = sums[sm] / samples[sm];
    each_sample(
        [&](int sm, double at, std::uint64_t cycles) { worst_error_ns_ = std::max(worst_error_ns_, std::abs(at - ns(sm, cycles))); });
  }

  double ns_per_cycle_ = 1;
  double worst_error_ns_ = 0;
  std::uint64_t origin_ns_ = 0;
  std::map<int, SmClock> sms_;
};

std::string describe_schedule(const Plan& plan) { return name(plan.kernel) + ", " + describe_kind(plan.scheduler); }

TracedTile to_tile(const TraceRecord& record, int track) {
  return {.track = track,
          .tile = {.tile_m = record.tile_m,
                   .tile_n = record.tile_n,
                   .group = record.group,
                   .k_begin = record.k_begin,
                   .k_end = record.k_end,
                   .split_tile = record.split_tile,
                   .peer = record.peer,
                   .peers = record.peers},
          .us = {}};
}

// All of the buffer but its records.
struct Tracks {
  std::vector<TraceTrack> used;
  std::vector<int> slots;  // of the buffer
};
Tracks tracks_in(const std::byte* bytes, int ctas) {
  Tracks tracks;
  for (int slot = 0; slot < ctas * kTracksPerCta; ++slot) {
    TraceTrack track;
    std::memcpy(&track, bytes + static_cast<std::size_t>(slot) * sizeof track, sizeof track);
    if (track.end_cycles == 0) continue;  // a role that this kernel does not have
    tracks.used.push_back(track);
    tracks.slots.push_back(slot);
  }
  return tracks;
}

}  // namespace

std::size_t trace_bytes(const Plan& plan) {
  constexpr int kUnevenly = 8;
  if (plan.grid_ctas <= 0) return 0;
  const int units = plan.grid_ctas / cluster_size(plan.kernel), items = item_count(plan.scheduler);
  const int share = (items + units - 1) / units * (plan.scheduler.claim == WorkClaim::ticket ? kUnevenly : 1) + 1;
  return trace_layout_bytes(plan.grid_ctas, std::min(share, kMostTracedTiles));
}

Result<Trace> read_trace(const Plan& plan, const void* data, std::size_t bytes, bool emulated) {
  if (Status s = check_plan(plan); !s) return s.error();
  Trace trace{.what = describe(plan.problem) + " on " + plan.device.name,
              .how = "nothing to compute",
              .emulated = emulated,
              .sm_count = plan.device.sm_count};
  if (plan.grid_ctas <= 0) return trace;
  const int room = traced_tiles_per_track(plan.grid_ctas, bytes);
  if (data == nullptr || room < 1)
    return Error{ErrorCode::bad_format, "the trace has " + std::to_string(data == nullptr ? 0 : bytes) +
                                            " bytes; one tile for each role of " + std::to_string(plan.grid_ctas) + " CTAs takes " +
                                            std::to_string(trace_layout_bytes(plan.grid_ctas, 1)) + "; pass the buffer of run_traced()"};
  const auto* const from = static_cast<const std::byte*>(data);
  const Tracks tracks = tracks_in(from, plan.grid_ctas);
  if (tracks.used.empty())
    return Error{ErrorCode::bad_format, "the trace is empty: no role has written its end; wait for the kernel, and copy the buffer then"};
  trace.how = describe_schedule(plan);
  trace.workers_per_cta = workers_per_cta(plan.kernel);
  const Clocks clocks(tracks.used);
  trace.clock_ghz = 1 / clocks.ns_per_cycle();
  trace.worst_clock_error_ns = clocks.worst_error_ns();
  double origin_ns = clocks.ns(tracks.used.front().sm, tracks.used.front().begin_cycles);
  for (const TraceTrack& track : tracks.used) origin_ns = std::min(origin_ns, clocks.ns(track.sm, track.begin_cycles));
  const auto us = [&](int sm, std::uint64_t cycles) { return (clocks.ns(sm, cycles) - origin_ns) * 1e-3; };
  for (std::size_t i = 0; i < tracks.used.size(); ++i) {
    const TraceTrack& track = tracks.used[i];
    trace.tracks.push_back({.cta = tracks.slots[i] / kTracksPerCta,
                            .sm = track.sm,
                            .role = static_cast<TraceRole>(tracks.slots[i] % kTracksPerCta),
                            .begin_us = us(track.sm, track.begin_cycles),
                            .end_us = us(track.sm, track.end_cycles)});
    trace.makespan_us = std::max(trace.makespan_us, trace.tracks.back().end_us);
    trace.sm_count = std::max(trace.sm_count, track.sm + 1);
    trace.lost_tiles += std::max(track.tiles - room, 0);
    for (int tile = 0; tile < std::min(track.tiles, room); ++tile) {
      TraceRecord record;
      const std::size_t place = static_cast<std::size_t>(tracks.slots[i]) * static_cast<std::size_t>(room) + static_cast<std::size_t>(tile);
      std::memcpy(&record, from + trace_records_offset(plan.grid_ctas) + place * sizeof record, sizeof record);
      trace.tiles.push_back(to_tile(record, static_cast<int>(i)));
      for (std::size_t event = 0; event < kTraceEvents; ++event)
        if (record.cycles[event] != 0) trace.tiles.back().us[event] = us(track.sm, record.cycles[event]);
    }
  }
  return trace;
}

const char* to_string(TraceRole role) {
  switch (role) {
    case TraceRole::producer_p:
      return "producer P";
    case TraceRole::producer_q:
      return "producer Q";
    case TraceRole::scale_producer:
      return "scales";
    case TraceRole::consumer_0:
      return "consumer 0";
    case TraceRole::consumer_1:
      return "consumer 1";
    case TraceRole::consumer_2:
      return "consumer 2";
  }
  return "unknown";
}

}  // namespace sluice
