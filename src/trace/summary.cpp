// Where the time went: the parts of every SM end to end, how busy the tensor cores were, and how the prediction compares.
#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sluice/trace.hpp"

#include "trace/critical_path.hpp"
#include "trace/parts.hpp"

namespace sluice {
namespace {

// All consumers of an SM, laid over one another.
class SmParts {
 public:
  void add(const TracePart& part) {
    if (part.end_us <= part.begin_us) return;
    changes_.push_back({part.begin_us, part.phase, 1});
    changes_.push_back({part.end_us, part.phase, -1});
  }

  std::vector<TracePart> end_to_end(double makespan_us) {
    std::sort(changes_.begin(), changes_.end(), [](const Change& x, const Change& y) { return x.us < y.us; });
    std::vector<TracePart> parts;
    std::array<int, kTracePhases> doing{};
    double now = 0;
    const auto until = [&](double us) {
      if (us <= now) return;
      const TracePhase phase = first_of(doing);
      if (!parts.empty() && parts.back().phase == phase)
        parts.back().end_us = us;
      else
        parts.push_back({phase, now, us});
      now = us;
    };
    for (const Change& change : changes_) {
      until(std::min(change.us, makespan_us));
      doing[static_cast<std::size_t>(change.phase)] += change.by;
    }
    until(makespan_us);
    return parts;
  }

 private:
  struct Change {
    double us;
    TracePhase phase;
    int by;
  };
  static TracePhase first_of(const std::array<int, kTracePhases>& doing) {
    const auto found = std::find_if(doing.begin(), doing.end(), [](int count) { return count > 0; });
    return found == doing.end() ? TracePhase::idle : static_cast<TracePhase>(found - doing.begin());
  }
  std::vector<Change> changes_;
};

std::vector<std::vector<TracePart>> parts_of_sms(const Trace& trace) {
  std::vector<SmParts> sms(static_cast<std::size_t>(std::max(trace.sm_count, 0)));
  for (const TracedTile& tile : trace.tiles)
    if (is_consumer(trace, tile))
      for (const TracePart& part : parts_of(trace, tile))
        sms[static_cast<std::size_t>(trace.tracks[static_cast<std::size_t>(tile.track)].sm)].add(part);
  std::vector<std::vector<TracePart>> all;
  all.reserve(sms.size());
  for (SmParts& sm : sms) all.push_back(sm.end_to_end(trace.makespan_us));
  return all;
}

void count_gaps(const std::vector<std::vector<TracePart>>& sms, TraceSummary& summary) {
  std::int64_t gaps = 0, used = 0;
  double length_us = 0;
  for (const std::vector<TracePart>& parts : sms) {
    double since = -1;  // the last main loop's end
    for (const TracePart& part : parts) {
      if (part.phase != TracePhase::mainloop) continue;
      if (since < 0) {
        ++used;
      } else {
        ++gaps;
        length_us += part.begin_us - since;
      }
      since = part.end_us;
    }
  }
  summary.gaps_per_sm = used > 0 ? static_cast<double>(gaps) / static_cast<double>(used) : 0;
  summary.gap_us = gaps > 0 ? length_us / static_cast<double>(gaps) : 0;
}

std::vector<double> busy_over_time(const Trace& trace, const std::vector<std::vector<TracePart>>& sms, int steps) {
  std::vector<double> busy(static_cast<std::size_t>(std::max(steps, 1)));
  const double step_us = trace.makespan_us / static_cast<double>(busy.size());
  if (step_us <= 0 || sms.empty()) return busy;
  for (const std::vector<TracePart>& parts : sms)
    for (const TracePart& part : parts) {
      if (part.phase != TracePhase::mainloop) continue;
      for (auto i = static_cast<std::size_t>(part.begin_us / step_us); i < busy.size() && static_cast<double>(i) * step_us < part.end_us;
           ++i) {
        const double begin = static_cast<double>(i) * step_us;
        busy[i] += std::max(0.0, std::min(part.end_us, begin + step_us) - std::max(part.begin_us, begin)) / step_us;
      }
    }
  for (double& share : busy) share /= static_cast<double>(sms.size());
  return busy;
}

// On a CTA's first consumer of those that share tiles, and on both where each has its own.
int most_tiles_per_cta(const Trace& trace) {
  std::map<int, int> tiles;
  int most = 0;
  for (const TracedTile& tile : trace.tiles) {
    const TraceTrackInfo& track = trace.tracks[static_cast<std::size_t>(tile.track)];
    if (track.role == TraceRole::consumer_0 || (track.role == TraceRole::consumer_1 && trace.workers_per_cta > 1))
      most = std::max(most, ++tiles[track.cta]);
  }
  return most;
}

// What the prediction and the critical path have in common.
void compare(const Trace& trace, const PredictedTime& t, TraceSummary& summary) {
  const auto critical = [&](TracePhase phase) { return summary.critical_us[static_cast<std::size_t>(phase)]; };
  double ramp_us = 0;
  for (const CriticalStep& step : summary.critical_path) {
    if (step.part.phase == TracePhase::mainloop) break;
    ramp_us = step.part.end_us;
  }
  const double mainloops_us = t.total_us - t.launch_us - t.ramp_us - t.reduction_us - t.exposed_epilogue_us;
  const double reduction_us = critical(TracePhase::reduction) + critical(TracePhase::wait_for_peers),
               epilogue_us = critical(TracePhase::epilogue);
  summary.predicted_us = t.total_us - t.launch_us;
  summary.parts = {{"ramp", t.ramp_us, ramp_us},
                   {"main loops", mainloops_us, trace.makespan_us - ramp_us - reduction_us - epilogue_us},
                   {"reduction", t.reduction_us, reduction_us},
                   {"epilogue", t.exposed_epilogue_us, epilogue_us}};
  constexpr double kTolerance = 0.05;
  if (trace.emulated || trace.makespan_us <= 0 || std::abs(summary.predicted_us / trace.makespan_us - 1) <= kTolerance) return;
  const auto most = std::max_element(summary.parts.begin(), summary.parts.end(), [](const PartCompared& x, const PartCompared& y) {
    return std::abs(x.predicted_us - x.measured_us) < std::abs(y.predicted_us - y.measured_us);
  });
  summary.off = most->name;
}

}  // namespace

TraceSummary summarise(const Trace& trace, const Plan& plan, int busy_steps) {
  TraceSummary summary;
  summary.sms = parts_of_sms(trace);
  double all_us = 0;
  for (const std::vector<TracePart>& parts : summary.sms)
    for (const TracePart& part : parts) {
      summary.share[static_cast<std::size_t>(part.phase)] += part.end_us - part.begin_us;
      all_us += part.end_us - part.begin_us;
    }
  for (double& share : summary.share) share = all_us > 0 ? share / all_us : 0;
  summary.most_tiles_per_cta = most_tiles_per_cta(trace);
  for (const TracedTile& tile : trace.tiles) {
    const TraceRole role = trace.tracks[static_cast<std::size_t>(tile.track)].role;
    if (role == TraceRole::consumer_0 || (role == TraceRole::consumer_1 && trace.workers_per_cta > 1)) ++summary.tiles;
  }
  count_gaps(summary.sms, summary);
  summary.busy = busy_over_time(trace, summary.sms, busy_steps);
  summary.critical_path = critical_path(trace);
  for (const CriticalStep& step : summary.critical_path)
    summary.critical_us[static_cast<std::size_t>(step.part.phase)] += step.part.end_us - step.part.begin_us;
  compare(trace, plan.predicted, summary);
  return summary;
}

}  // namespace sluice
