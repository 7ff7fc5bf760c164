#include "trace/parts.hpp"

#include <map>
#include <tuple>
#include <utility>

namespace sluice {
namespace {

// What a consumer does between two events that follow one another.
TracePhase phase_between(TraceEvent from, TraceEvent to) {
  switch (from) {
    case TraceEvent::taken:
      return TracePhase::wait_for_turn;
    case TraceEvent::turn:
      return TracePhase::wait_for_data;
    case TraceEvent::first_data:
      return TracePhase::mainloop;
    case TraceEvent::mainloop_end:  // of a whole tile: the last scales are applied
      return to == TraceEvent::epilogue_begin ? TracePhase::epilogue : TracePhase::reduction;
    case TraceEvent::wait_begin:
      return TracePhase::wait_for_peers;
    case TraceEvent::wait_end:
      return TracePhase::reduction;
    case TraceEvent::epilogue_begin:
      return TracePhase::epilogue;
    case TraceEvent::done:
      break;
  }
  return TracePhase::idle;
}

// The pieces that are added up together: those of one tile, and in the cooperative schedule of one consumer's part of it.
using Meeting = std::tuple<int, int, int, int, TraceRole>;
Meeting meeting_of(const Trace& trace, const TracedTile& tile) {
  const TraceRole role = trace.workers_per_cta > 1 ? TraceRole::consumer_0 : trace.tracks[static_cast<std::size_t>(tile.track)].role;
  return {tile.tile.split_tile, tile.tile.tile_m, tile.tile.tile_n, tile.tile.group, role};
}

}  // namespace

std::vector<TracePart> parts_of(const Trace& trace, const TracedTile& tile) {
  std::vector<TracePart> parts;
  std::optional<TraceEvent> last;
  for (std::size_t i = 0; i < kTraceEvents; ++i) {
    if (!tile.us[i]) continue;
    const auto event = static_cast<TraceEvent>(i);
    if (last) {
      const TracePhase phase = is_consumer(trace, tile) ? phase_between(*last, event) : TracePhase::loading;
      parts.push_back({phase, *tile.at(*last), *tile.us[i]});
    }
    last = event;
  }
  return parts;
}

std::vector<TraceArrow> arrows_of(const Trace& trace) {
  std::map<Meeting, std::vector<std::size_t>> meetings;
  for (std::size_t i = 0; i < trace.tiles.size(); ++i)
    if (trace.tiles[i].tile.peers > 1 && is_consumer(trace, trace.tiles[i])) meetings[meeting_of(trace, trace.tiles[i])].push_back(i);
  std::vector<TraceArrow> arrows;
  for (const auto& [meeting, pieces] : meetings)
    for (const std::size_t to : pieces) {
      if (!trace.tiles[to].at(TraceEvent::epilogue_begin) || !trace.tiles[to].at(TraceEvent::wait_end)) continue;
      for (const std::size_t from : pieces) {
        const TracedTile& piece = trace.tiles[from];
        const std::optional<double> left = piece.at(piece.at(TraceEvent::epilogue_begin) ? TraceEvent::wait_begin : TraceEvent::done);
        if (from != to && left) arrows.push_back({from, to, *left, *trace.tiles[to].at(TraceEvent::wait_end)});
      }
    }
  return arrows;
}

const char* to_string(TracePhase phase) {
  switch (phase) {
    case TracePhase::mainloop:
      return "main loop";
    case TracePhase::reduction:
      return "reduction";
    case TracePhase::epilogue:
      return "epilogue";
    case TracePhase::wait_for_peers:
      return "waiting for peers";
    case TracePhase::wait_for_data:
      return "waiting for data";
    case TracePhase::wait_for_turn:
      return "waiting for its turn";
    case TracePhase::idle:
      return "no work";
    case TracePhase::loading:
      return "loading";
  }
  return "unknown";
}

}  // namespace sluice
