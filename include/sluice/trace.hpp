// What every SM did: kernels that record it, and what their records say. docs/trace.md shows pictures.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sluice/emulator.hpp"
#include "sluice/error.hpp"
#include "sluice/plan.hpp"
#include "sluice/run.hpp"
#include "sluice/simulate.hpp"
#include "sluice/trace_event.hpp"

namespace sluice {

// The kernels that are compiled a second time with a recorder in them, in the order of kernel_list.def.
const std::vector<KernelConfig>& traced_kernel_list();

// Where a traced kernel writes: device memory for run_traced(), host memory for run_traced_on_emulator(). Aligned to 16 bytes, zero
// before each run. Tiles that do not fit are counted, and otherwise lost.
struct TraceBuffer {
  void* data = nullptr;
  std::size_t bytes = 0;
};
// With room for each role's share of the plan's tiles; where tiles are claimed by ticket, for eight times that.
std::size_t trace_bytes(const Plan& plan);

// As run(), by the traced kernel. Errors beside those of run(): ErrorCode::unsupported if the plan's kernel has none in this build.
Status run_traced(const Plan& plan, const GemmArguments& arguments, void* workspace, std::size_t workspace_bytes, TraceBuffer trace,
                  Stream stream);
Status run_traced_on_emulator(const Plan& plan, const GemmArguments& host_arguments, TraceBuffer trace, const EmulatorOptions& options = {},
                              const Progress& progress = {});

enum class TraceRole : std::uint8_t { producer_p, producer_q, scale_producer, consumer_0, consumer_1, consumer_2 };
const char* to_string(TraceRole role);  // "producer P", "producer Q", "scales", "consumer 0", ...

// One role of one CTA. Times are in microseconds from the first CTA's beginning.
struct TraceTrackInfo {
  int cta = 0;
  int sm = 0;
  TraceRole role = TraceRole::producer_p;
  double begin_us = 0;
  double end_us = 0;
};

struct TracedTile {
  int track = 0;  // index into Trace::tracks
  WorkTile tile;
  std::array<std::optional<double>, kTraceEvents> us;

  std::optional<double> at(TraceEvent event) const { return us[static_cast<std::size_t>(event)]; }
};

struct Trace {
  std::string what;                    // the problem and the device, one line
  std::string how;                     // the kernel and the schedule, one line
  bool emulated = false;               // then a microsecond is 1000 steps of the emulator: an order of events, and no time
  std::vector<TraceTrackInfo> tracks;  // by CTA, then by role
  std::vector<TracedTile> tiles;       // by track, then by time
  int sm_count = 0;                    // of the device
  int workers_per_cta = 1;             // 2 in pingpong
  double makespan_us = 0;
  std::int64_t lost_tiles = 0;      // for which there was no room
  double clock_ghz = 0;             // of the SMs, as the two clocks of each role say
  double worst_clock_error_ns = 0;  // of any sample of the two clocks, against the line laid through those of its SM
};

// `data`: the buffer, copied to host memory.
Result<Trace> read_trace(const Plan& plan, const void* data, std::size_t bytes, bool emulated);

// What a consumer does at one moment, and an SM: the first of these that any of its consumers does. Producers are always loading.
enum class TracePhase : std::uint8_t { mainloop, reduction, epilogue, wait_for_peers, wait_for_data, wait_for_turn, idle, loading };
inline constexpr int kTracePhases = 7;    // of an SM
const char* to_string(TracePhase phase);  // "main loop", "reduction", "epilogue", "waiting for peers", "waiting for data", ...

struct TracePart {
  TracePhase phase = TracePhase::idle;
  double begin_us = 0;
  double end_us = 0;
};
// Of one tile of one role, end to end.
std::vector<TracePart> parts_of(const Trace& trace, const TracedTile& tile);

// From a piece of a tile to one that adds its sums, as indices into Trace::tiles.
struct TraceArrow {
  std::size_t from = 0;
  std::size_t to = 0;
  double left_us = 0;   // when the sums were ready for the other,
  double taken_us = 0;  // and when that one went on
};
std::vector<TraceArrow> arrows_of(const Trace& trace);

// A link of the critical path: what kept the kernel from ending earlier, from its end back to its beginning.
struct CriticalStep {
  int track = 0;
  TracePart part;
};

// One part of the makespan, on the SM that ends last.
struct PartCompared {
  std::string name;  // "ramp", "main loops", "reduction", "epilogue"
  double predicted_us = 0;
  double measured_us = 0;
};

struct TraceSummary {
  std::vector<std::vector<TracePart>> sms;         // for each SM of the device: its parts, end to end over the makespan
  std::array<double, kTracePhases> share{};        // of the time of all SMs
  std::int64_t tiles = 0;                          // work tiles and pieces of them
  int most_tiles_per_cta = 0;                      // the waves
  double gaps_per_sm = 0;                          // times at which the main loops of an SM pause between its first and its last
  double gap_us = 0;                               // the mean length of such a pause
  std::vector<double> busy;                        // share of SMs in a main loop, in equal steps of time
  std::vector<CriticalStep> critical_path;         // in order of time
  std::array<double, kTracePhases> critical_us{};  // how long it spends in each
  double predicted_us = 0;                         // the plan's, less what a launch takes before the first CTA begins
  std::vector<PartCompared> parts;
  std::string off;  // which part the prediction is off by, where it is off by more than 5%; else empty
};
TraceSummary summarise(const Trace& trace, const Plan& plan, int busy_steps = 240);

// Chrome's trace format: a process for each SM and a thread for each role, a slice for each phase of each tile, an arrow from each piece of
// a tile to the one that finishes it. ui.perfetto.dev and chrome://tracing open it.
std::string to_chrome_json(const Trace& trace);

}  // namespace sluice
