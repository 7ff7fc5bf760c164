#include "trace/critical_path.hpp"

#include <algorithm>
#include <map>
#include <optional>

#include "trace/parts.hpp"

namespace sluice {
namespace {

class WayBack {
 public:
  explicit WayBack(const Trace& trace) : trace_(trace), by_track_(trace.tracks.size()) {
    for (std::size_t i = 0; i < trace.tiles.size(); ++i)
      if (is_consumer(trace, trace.tiles[i])) by_track_[static_cast<std::size_t>(trace.tiles[i].track)].push_back(i);
    for (const TraceArrow& arrow : arrows_of(trace)) {
      const auto [found, is_new] = latest_.try_emplace(arrow.to, arrow);
      if (!is_new && arrow.left_us > found->second.left_us) found->second = arrow;
    }
    for (std::size_t i = 0; i < trace.tracks.size(); ++i) siblings_[trace.tracks[i].cta].push_back(i);
  }

  std::vector<CriticalStep> walk() {
    std::optional<std::size_t> tile = last_tile();
    if (!tile) return {};
    now_ = trace_.makespan_us;
    step_to(trace_.tiles[*tile].track, TracePhase::idle, end_of(*tile));
    while (tile) tile = back_through(*tile);
    std::reverse(steps_.begin(), steps_.end());
    return steps_;
  }

 private:
  double end_of(std::size_t tile) const {
    const std::vector<TracePart> parts = parts_of(trace_, trace_.tiles[tile]);
    return parts.empty() ? 0 : parts.back().end_us;
  }

  std::optional<std::size_t> last_tile() const {
    std::optional<std::size_t> last;
    for (const auto& tiles : by_track_)
      for (const std::size_t tile : tiles)
        if (!last || end_of(tile) > end_of(*last)) last = tile;
    return last;
  }

  // Time runs backwards: from now to `us`.
  void step_to(int track, TracePhase phase, double us) {
    if (us >= now_) return;
    steps_.push_back({track, {phase, us, now_}});
    now_ = us;
  }

  // Through a tile's parts; the tile before it on the way, or none.
  std::optional<std::size_t> back_through(std::size_t index) {
    const TracedTile& tile = trace_.tiles[index];
    std::vector<TracePart> parts = parts_of(trace_, tile);
    for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
      if (part->begin_us >= now_) continue;
      if (part->phase == TracePhase::wait_for_peers) {
        const auto arrow = latest_.find(index);
        if (arrow != latest_.end() && arrow->second.left_us > part->begin_us && arrow->second.left_us < now_) {
          step_to(tile.track, part->phase, arrow->second.left_us);
          return arrow->second.from;
        }
      }
      if (part->phase == TracePhase::wait_for_turn)
        if (const std::optional<std::size_t> other = computing_beside(tile.track, part->begin_us)) return other;
      step_to(tile.track, part->phase, part->begin_us);
    }
    return before(tile.track, index);
  }

  // Pingpong: whose main loop the turn was waited for.
  std::optional<std::size_t> computing_beside(int track, double waited_since_us) const {
    std::optional<std::size_t> found;
    for (const std::size_t sibling : siblings_.at(trace_.tracks[static_cast<std::size_t>(track)].cta)) {
      if (static_cast<int>(sibling) == track) continue;
      for (const std::size_t tile : by_track_[sibling]) {
        const auto begin = trace_.tiles[tile].at(TraceEvent::first_data), end = trace_.tiles[tile].at(TraceEvent::mainloop_end);
        if (begin && end && *begin<now_&& * end> waited_since_us && (!found || *begin > *trace_.tiles[*found].at(TraceEvent::first_data)))
          found = tile;
      }
    }
    return found;
  }

  // The tile before on the same track: between the two it had no work. Without one, the role's beginning.
  std::optional<std::size_t> before(int track, std::size_t index) {
    const std::vector<std::size_t>& tiles = by_track_[static_cast<std::size_t>(track)];
    const auto found = std::find(tiles.begin(), tiles.end(), index);
    if (found == tiles.begin()) {
      step_to(track, TracePhase::idle, 0);
      return std::nullopt;
    }
    step_to(track, TracePhase::idle, end_of(*(found - 1)));
    return *(found - 1);
  }

  const Trace& trace_;
  std::vector<std::vector<std::size_t>> by_track_;  // consumers' tiles, in order of time
  std::map<std::size_t, TraceArrow> latest_;        // into a tile: the piece that came last
  std::map<int, std::vector<std::size_t>> siblings_;
  std::vector<CriticalStep> steps_;
  double now_ = 0;
};

}  // namespace

std::vector<CriticalStep> critical_path(const Trace& trace) { return WayBack(trace).walk(); }

}  // namespace sluice
