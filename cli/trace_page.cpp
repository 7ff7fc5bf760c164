#include "trace_page.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "pages/page.hpp"
#include "session.hpp"

namespace sluice::cli {
namespace {

constexpr std::array<const char*, kTracePhases> kColours = {"#3b7dbd", "#8d5fc0", "#e8913a", "#d64545", "#f2d479", "#dcdcdc", "#f1f1f1"};

double rounded(double us) { return std::round(us * 1e4) / 1e4; }

std::string title(const WorkTile& tile, int tile_m, int tile_n) {
  std::string text = fmt::format("tile ({},{})", tile_m, tile_n);
  if (tile.group > 0) text += fmt::format("#{}", tile.group);
  if (tile.peers > 1) text += fmt::format(", piece {} of {}", tile.peer + 1, tile.peers);
  return text + fmt::format(", k-tiles {} to {}", tile.k_begin, tile.k_end);
}

// The lanes of each SM: its consumers.
Json lanes_of(const Trace& trace) {
  std::map<int, Json> sms;
  std::map<int, std::pair<int, std::size_t>> place;  // of a track: its SM, its lane
  for (std::size_t i = 0; i < trace.tracks.size(); ++i) {
    const TraceTrackInfo& track = trace.tracks[i];
    if (track.role < TraceRole::consumer_0) continue;
    Json& sm = sms[track.sm];
    if (sm.is_null()) sm = {{"sm", track.sm}, {"lanes", Json::array()}};
    place[static_cast<int>(i)] = {track.sm, sm["lanes"].size()};
    sm["lanes"].push_back({{"track", i}, {"cta", track.cta}, {"role", to_string(track.role)}, {"tiles", Json::array()}});
  }
  for (const TracedTile& tile : trace.tiles) {
    const auto found = place.find(tile.track);
    if (found == place.end()) continue;
    Json parts = Json::array();
    for (const TracePart& part : parts_of(trace, tile))
      parts.push_back({static_cast<int>(part.phase), rounded(part.begin_us), rounded(part.end_us)});
    sms[found->second.first]["lanes"][found->second.second]["tiles"].push_back(
        {{"name", title(tile.tile, tile.tile.tile_m, tile.tile.tile_n)}, {"parts", std::move(parts)}});
  }
  Json all = Json::array();
  for (auto& [number, sm] : sms) all.push_back(std::move(sm));
  return all;
}

// The simulator's time is in main loops of a tile: what the plan predicts for all of them together says how long one is.
struct Predicted {
  Json pieces = Json::array();
  std::vector<double> busy;
};
Predicted predicted_of(const std::optional<Simulation>& simulation, const TraceSummary& summary, double end_us) {
  Predicted predicted{.busy = std::vector<double>(summary.busy.size())};
  if (!simulation || simulation->makespan <= 0 || summary.parts.size() < 2) return predicted;
  const double ramp_us = summary.parts[0].predicted_us, tile_us = summary.parts[1].predicted_us / simulation->makespan;
  const double step_us = end_us / static_cast<double>(std::max<std::size_t>(predicted.busy.size(), 1));
  for (const SimulatedPiece& piece : simulation->pieces)
    for (int cta = 0; cta < simulation->cluster_m * simulation->cluster_n; ++cta) {
      const double begin = ramp_us + piece.begin * tile_us, end = ramp_us + piece.end * tile_us;
      const int m = piece.tile.tile_m + cta % simulation->cluster_m, n = piece.tile.tile_n + cta / simulation->cluster_m;
      predicted.pieces.push_back({{"sm", piece.sm + cta},
                                  {"name", title(piece.tile, m, n)},
                                  {"begin", rounded(begin)},
                                  {"end", rounded(end)},
                                  {"done", rounded(ramp_us + piece.done * tile_us)}});
      for (std::size_t i = 0; i < predicted.busy.size(); ++i) {
        const double from = static_cast<double>(i) * step_us;
        predicted.busy[i] +=
            std::max(0.0, std::min(end, from + step_us) - std::max(begin, from)) / step_us / std::max(simulation->sm_count, 1);
      }
    }
  return predicted;
}

Json page_data(const Trace& trace, const TraceSummary& summary, const std::optional<Simulation>& simulation) {
  Json phases = Json::array(), arrows = Json::array(), critical = Json::array();
  for (int phase = 0; phase < kTracePhases; ++phase) phases.push_back(to_string(static_cast<TracePhase>(phase)));
  for (const TraceArrow& arrow : arrows_of(trace))
    arrows.push_back({trace.tiles[arrow.from].track, rounded(arrow.left_us), trace.tiles[arrow.to].track, rounded(arrow.taken_us)});
  for (const CriticalStep& step : summary.critical_path)
    critical.push_back({step.track, static_cast<int>(step.part.phase), rounded(step.part.begin_us), rounded(step.part.end_us)});
  const double end_us = std::max(trace.makespan_us, trace.emulated ? 0 : summary.predicted_us);
  Predicted predicted = predicted_of(trace.emulated ? std::nullopt : simulation, summary, trace.makespan_us);
  const auto shares = [](const std::vector<double>& all) {
    Json json = Json::array();
    for (const double share : all) json.push_back(rounded(share));
    return json;
  };
  return {{"predicted_sms", trace.emulated || !simulation ? 0 : simulation->sm_count},
          {"makespan_us", trace.makespan_us},
          {"end_us", end_us},
          {"phases", std::move(phases)},
          {"busy_step_us", trace.makespan_us / static_cast<double>(std::max<std::size_t>(summary.busy.size(), 1))},
          {"busy", shares(summary.busy)},
          {"predicted_busy", trace.emulated ? Json::array() : shares(predicted.busy)},
          {"predicted", std::move(predicted.pieces)},
          {"sms", lanes_of(trace)},
          {"arrows", std::move(arrows)},
          {"critical", std::move(critical)}};
}

std::string shares_table(const TraceSummary& summary) {
  std::string html =
      "<div><h2>Where the time went</h2>\n<table id=\"shares\"><tr><th>an SM is in</th><th>of all SMs' time</th><th>critical path, "
      "us</th></tr>\n";
  double most_us = 0;
  for (const double us : summary.critical_us) most_us = std::max(most_us, us);
  for (std::size_t i = 0; i < kTracePhases; ++i) {
    if (summary.share[i] <= 0 && summary.critical_us[i] <= 0) continue;
    html += fmt::format("<tr><td>{}</td>{}{}</tr>\n", to_string(static_cast<TracePhase>(i)),
                        pages::bar_cell(summary.share[i], 1, fmt::format("{:.1f}%", 100 * summary.share[i]), kColours[i]),
                        pages::bar_cell(summary.critical_us[i], most_us, fmt::format("{:.2f}", summary.critical_us[i]), kColours[i]));
  }
  return html + "</table></div>\n";
}

std::string comparison_table(const Trace& trace, const TraceSummary& summary) {
  if (trace.emulated) return "<div><h2>Predicted and measured</h2>\n<p>The emulator knows an order of events, and no time.</p></div>\n";
  std::string html =
      "<div><h2>Predicted and measured</h2>\n<table id=\"parts\"><tr><th>part</th><th>predicted us</th><th>measured us</th></tr>\n";
  const auto row = [](const std::string& name, double predicted, double measured, bool off) {
    return fmt::format("<tr{}><td>{}</td><td class=\"number\">{:.2f}</td><td class=\"number\">{:.2f}</td></tr>\n",
                       off ? " class=\"off\"" : "", name, predicted, measured);
  };
  for (const PartCompared& part : summary.parts) html += row(part.name, part.predicted_us, part.measured_us, part.name == summary.off);
  html += row("makespan", summary.predicted_us, trace.makespan_us, false) + "</table>\n";
  const double by = trace.makespan_us > 0 ? 100 * (summary.predicted_us / trace.makespan_us - 1) : 0;
  html += summary.off.empty() ? fmt::format("<p>Within 5%: {:+.1f}%.</p>", by)
                              : fmt::format("<p class=\"off\">{:+.1f}%: most of it is {}.</p>", by, pages::escape(summary.off));
  return html + "</div>\n";
}

std::string facts(const Trace& trace, const TraceSummary& summary) {
  std::string html = fmt::format(
      "<p id=\"facts\">{} work tiles, at most {} on a CTA; the main loops of an SM pause {:.2f} times between its first and its last, for "
      "{:.3f} us in the mean.</p>\n",
      summary.tiles, summary.most_tiles_per_cta, summary.gaps_per_sm, summary.gap_us);
  if (trace.lost_tiles > 0)
    html += fmt::format("<p class=\"off\">{} tiles are missing: the trace buffer was too small for them.</p>\n", trace.lost_tiles);
  return html;
}

}  // namespace

Json to_json(const Trace& trace, const TraceSummary& summary) {
  Json share = Json::object(), critical = Json::object(), parts = Json::object();
  for (std::size_t i = 0; i < kTracePhases; ++i) {
    share[to_string(static_cast<TracePhase>(i))] = summary.share[i];
    critical[to_string(static_cast<TracePhase>(i))] = summary.critical_us[i];
  }
  for (const PartCompared& part : summary.parts)
    parts[part.name] = {{"predicted_us", part.predicted_us}, {"measured_us", part.measured_us}};
  return {{"problem", trace.what},
          {"schedule", trace.how},
          {"emulated", trace.emulated},
          {"makespan_us", trace.makespan_us},
          {"predicted_us", summary.predicted_us},
          {"off", summary.off},
          {"tracks", trace.tracks.size()},
          {"tiles", summary.tiles},
          {"most_tiles_per_cta", summary.most_tiles_per_cta},
          {"lost_tiles", trace.lost_tiles},
          {"gaps_per_sm", summary.gaps_per_sm},
          {"gap_us", summary.gap_us},
          {"share", share},
          {"critical_us", critical},
          {"parts", parts},
          {"clock_ghz", trace.clock_ghz},
          {"worst_clock_error_ns", trace.worst_clock_error_ns}};
}

std::string trace_page(const Trace& trace, const TraceSummary& summary, const std::optional<Simulation>& simulation,
                       const std::vector<std::string>& lines) {
  std::string body = fmt::format("<h1>{}</h1>\n<p class=\"faint\">{}</p>\n", pages::escape(trace.what), pages::escape(trace.how));
  for (const std::string& line : lines) body += "<p class=\"faint\">" + pages::escape(line) + "</p>\n";
  body += facts(trace, summary) + "<div class=\"columns\">\n" + shares_table(summary) + comparison_table(trace, summary) + "</div>\n";
  body +=
      "<h2>Share of the SMs whose tensor cores are in a main loop <span class=\"faint\">(grey: predicted)</span></h2>\n<canvas "
      "id=\"busy\"></canvas>\n";
  body +=
      "<p><button id=\"all\">Show all</button> <span id=\"range\"></span> <span class=\"faint\">Wheel: zoom. Drag: move. Black line: the "
      "critical path.</span>";
  for (std::size_t i = 0; i < kTracePhases; ++i)
    body += fmt::format(" <span class=\"key\"><span class=\"swatch\" style=\"background:{}\"></span>{}</span>", kColours[i],
                        to_string(static_cast<TracePhase>(i)));
  body += "</p>\n";
  const bool shows_predicted = simulation && !trace.emulated;
  body += fmt::format(
      "<h2{0}>Predicted</h2>\n<canvas id=\"predicted\"{0}></canvas>\n<h2>Measured</h2>\n<canvas id=\"measured\"></canvas>\n<div "
      "id=\"tip\"></div>\n",
      shows_predicted ? "" : " hidden");
  return pages::to_html({.title = "sluice trace: " + trace.what,
                         .body = body,
                         .data = page_data(trace, summary, simulation).dump(),
                         .script = pages::kTraceScript});
}

}  // namespace sluice::cli
