// The Trace Event Format of Chromium, as ui.perfetto.dev reads it: a process for each SM, a thread for each role of each CTA on it.
#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "sluice/trace.hpp"

#include "trace/parts.hpp"

namespace sluice {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kRoles = 6;

int thread_of(const TraceTrackInfo& track) { return track.cta * kRoles + static_cast<int>(track.role); }
double to_ns(double us) { return std::round(us * 1000) / 1000; }  // a slice may not reach beyond the one around it by a rounding error

std::string title(const WorkTile& tile) {
  std::string text = "tile (";
  text.append(std::to_string(tile.tile_m)).append(",").append(std::to_string(tile.tile_n)).append(")");
  if (tile.group > 0) text.append("#").append(std::to_string(tile.group));
  if (tile.peers > 1) text.append(" piece ").append(std::to_string(tile.peer + 1)).append("/").append(std::to_string(tile.peers));
  return text;
}

Json slice(const std::string& name, const char* category, const TraceTrackInfo& track, double begin_us, double end_us) {
  const double begin = to_ns(begin_us), end = to_ns(end_us);
  return {{"name", name},    {"cat", category},        {"ph", "X"}, {"ts", begin}, {"dur", to_ns(end - begin)},
          {"pid", track.sm}, {"tid", thread_of(track)}};
}

void add_names(const Trace& trace, Json& events) {
  const auto name = [&](const char* what, int pid, int tid, const Json& args) {
    events.push_back({{"name", what}, {"ph", "M"}, {"pid", pid}, {"tid", tid}, {"args", args}});
  };
  std::set<int> sms;
  for (const TraceTrackInfo& track : trace.tracks) {
    if (sms.insert(track.sm).second) {
      name("process_name", track.sm, 0, {{"name", "SM " + std::to_string(track.sm)}});
      name("process_sort_index", track.sm, 0, {{"sort_index", track.sm}});
    }
    name("thread_name", track.sm, thread_of(track), {{"name", "CTA " + std::to_string(track.cta) + " " + to_string(track.role)}});
    name("thread_sort_index", track.sm, thread_of(track), {{"sort_index", thread_of(track)}});
  }
}

void add_tile(const Trace& trace, const TracedTile& tile, Json& events) {
  const std::vector<TracePart> parts = parts_of(trace, tile);
  if (parts.empty()) return;
  const TraceTrackInfo& track = trace.tracks[static_cast<std::size_t>(tile.track)];
  Json whole = slice(title(tile.tile), "tile", track, parts.front().begin_us, parts.back().end_us);
  whole["args"] = {{"tile_m", tile.tile.tile_m}, {"tile_n", tile.tile.tile_n}, {"group", tile.tile.group}, {"k_begin", tile.tile.k_begin},
                   {"k_end", tile.tile.k_end},   {"peer", tile.tile.peer},     {"peers", tile.tile.peers}};
  events.push_back(std::move(whole));
  for (const TracePart& part : parts) events.push_back(slice(to_string(part.phase), "phase", track, part.begin_us, part.end_us));
}

// An arrow's end must lie inside a slice: just before the moment that it stands for.
void add_arrow(const Trace& trace, const TraceArrow& arrow, std::size_t id, Json& events) {
  constexpr double kBeforeUs = 0.001;
  const auto end = [&](const char* kind, std::size_t tile, double us) {
    const TraceTrackInfo& track = trace.tracks[static_cast<std::size_t>(trace.tiles[tile].track)];
    Json json = {{"name", "partial sums"}, {"cat", "fix-up"},        {"ph", kind}, {"id", id}, {"ts", to_ns(us - kBeforeUs)},
                 {"pid", track.sm},        {"tid", thread_of(track)}};
    if (*kind == 'f') json["bp"] = "e";
    events.push_back(std::move(json));
  };
  end("s", arrow.from, arrow.left_us);
  end("f", arrow.to, std::max(arrow.taken_us, arrow.left_us));
}

}  // namespace

std::string to_chrome_json(const Trace& trace) {
  Json events = Json::array();
  add_names(trace, events);
  for (const TracedTile& tile : trace.tiles) add_tile(trace, tile, events);
  std::size_t id = 0;
  for (const TraceArrow& arrow : arrows_of(trace)) add_arrow(trace, arrow, ++id, events);
  const Json all = {{"displayTimeUnit", "ns"},
                    {"otherData",
                     {{"problem", trace.what},
                      {"schedule", trace.how},
                      {"clock", trace.emulated ? "steps of the emulator, 1000 to a microsecond" : "the GPU's"},
                      {"makespan_us", trace.makespan_us},
                      {"lost_tiles", trace.lost_tiles},
                      {"clock_ghz", trace.clock_ghz},
                      {"worst_clock_error_ns", trace.worst_clock_error_ns}}},
                    {"traceEvents", std::move(events)}};
  return all.dump() + "\n";
}

}  // namespace sluice
