// The timeline as a picture that needs nothing but itself: no scripts, no fonts, no style sheets from elsewhere.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "sluice/simulate.hpp"

#include "simulator/lanes.hpp"

namespace sluice {
namespace {

// In pixels.
constexpr double kWidth = 1200, kLeft = 64, kRight = 28, kTop = 84, kAxisHeight = 50, kLegendHeight = 28;
constexpr double kPlotWidth = kWidth - kLeft - kRight;
constexpr double kNarrowest = 2;          // narrower pieces are drawn together with those that follow
constexpr std::size_t kMostThreads = 24;  // from piece to piece of a tile: more hide the picture
constexpr std::size_t kMostHints = 4000;  // pieces that say what they are under the mouse: beyond, the file grows too large

// Light enough for dark writing, told apart by turns of hue and lightness.
constexpr std::array<std::string_view, 8> kColours = {"#86b6d9", "#f6cf7d", "#9fd3a8", "#eaa59b",
                                                      "#c3b4e3", "#8fd3cf", "#dcc0a0", "#cfdc86"};
constexpr std::string_view kIdle = "#e9e9e9", kInk = "#222222", kFaint = "#666666";

std::string px(double value) { return fixed(value, std::abs(value - std::round(value)) < 0.005 ? 0 : 2); }

std::string escape(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    switch (c) {
      case '&':
        safe += "&amp;";
        break;
      case '<':
        safe += "&lt;";
        break;
      case '>':
        safe += "&gt;";
        break;
      default:
        safe += c;
    }
  }
  return safe;
}

std::string rectangle(double x, double y, double width, double height, std::string_view colour) {
  return "<rect x=\"" + px(x) + "\" y=\"" + px(y) + "\" width=\"" + px(width) + "\" height=\"" + px(height) + "\" fill=\"" +
         std::string(colour) + "\"";
}

std::string text(double x, double y, double size, std::string_view anchor, std::string_view colour, std::string_view content) {
  return "<text x=\"" + px(x) + "\" y=\"" + px(y) + "\" font-size=\"" + px(size) + "\" text-anchor=\"" + std::string(anchor) +
         "\" fill=\"" + std::string(colour) + "\">" + escape(content) + "</text>\n";
}

// Of a lane and of the gap below it: few SMs get tall lanes, many must fit on a page.
struct LaneSize {
  double pitch, gap;
  double height() const { return pitch - gap; }
  double font() const { return std::min(13.0, height() - 2); }
};
LaneSize lane_size(int sm_count) {
  if (sm_count <= 8) return {44, 6};
  if (sm_count <= 24) return {26, 3};
  if (sm_count <= 48) return {18, 2};
  return {12, 1};
}

// Lanes with a number beside them: all where there is room, else every fourth or twentieth.
int lane_label_step(int sm_count) { return sm_count <= 48 ? 1 : sm_count <= 200 ? 4 : 20; }

class Picture {
 public:
  explicit Picture(const Simulation& simulation)
      : simulation_(simulation), size_(lane_size(simulation.sm_count)), scale_(kPlotWidth / std::max(simulation.makespan, 1e-9)) {
    for (const SimulatedPiece& piece : simulation.pieces) {
      any_partial_ = any_partial_ || is_partial(simulation, piece);
      if (is_handed_on(piece)) ++handed_on_;
    }
  }

  std::string draw() const {
    const double bottom = kTop + size_.pitch * simulation_.sm_count;
    const double height = bottom + kAxisHeight + kLegendHeight;
    std::string svg = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + px(kWidth) + "\" height=\"" + px(height) +
                      "\" viewBox=\"0 0 " + px(kWidth) + " " + px(height) +
                      "\" font-family=\"Helvetica, Arial, 'DejaVu Sans', sans-serif\">\n";
    svg += "<title>" + escape(simulation_.what) + "</title>\n";
    svg += rectangle(0, 0, kWidth, height, "#ffffff") + "/>\n";
    svg += text(kLeft, 26, 16, "start", kInk, simulation_.what);
    svg += text(kLeft, 47, 13, "start", kFaint, simulation_.how);
    svg += text(kLeft, 67, 13, "start", kInk, summary(simulation_));
    const std::vector<Lane> all = lanes(simulation_);
    std::size_t count = 0;
    for (const Lane& lane : all) count += lane.size();
    for (int sm = 0; sm < simulation_.sm_count; ++sm) svg += draw_lane(all[static_cast<std::size_t>(sm)], sm, count <= kMostHints);
    if (handed_on_ <= kMostThreads) svg += draw_threads();
    if (!simulation_.pieces.empty()) svg += draw_axis(bottom);
    svg += draw_legend(bottom + kAxisHeight + 8);
    return svg + "</svg>\n";
  }

 private:
  double x(double time) const { return kLeft + time * scale_; }

  // By turn, so that a wave has one colour; by tile where tiles are split, so that the pieces of one find each other.
  std::string_view colour(const LanePiece& piece) const {
    const WorkTile& tile = piece.piece->tile;
    const int number = any_partial_ ? 3 * tile.tile_m + tile.tile_n + 5 * tile.group : piece.turn;
    return kColours[static_cast<std::size_t>(number) % kColours.size()];
  }

  std::string draw_lane(const Lane& lane, int sm, bool hints) const {
    const double y = kTop + size_.pitch * sm;
    std::string svg;
    if (sm % lane_label_step(simulation_.sm_count) == 0)
      svg += text(kLeft - 8, y + size_.height() / 2 + 4, std::min(12.0, size_.pitch), "end", kInk, "SM " + std::to_string(sm));
    svg += rectangle(kLeft, y, kPlotWidth, size_.height(), kIdle) + "/>\n";
    for (std::size_t i = 0; i < lane.size();) {
      const double left = x(lane[i].piece->begin);
      std::size_t last = i;
      while (x(lane[last].piece->end) - left < kNarrowest && last + 1 < lane.size() && lane[last + 1].piece->begin <= lane[last].piece->end)
        ++last;
      svg += draw_piece(lane[i], left, x(lane[last].piece->end) - left, y, hints);
      i = last + 1;
    }
    return svg;
  }

  std::string draw_piece(const LanePiece& piece, double left, double width, double y, bool hints) const {
    const double gap = width > 4 ? 1 : 0;
    const std::string name = label(simulation_, piece);
    std::string svg;
    if (piece.piece->done > piece.piece->end)
      svg += rectangle(x(piece.piece->end), y + size_.height() / 3, (piece.piece->done - piece.piece->end) * scale_, size_.height() / 3,
                       colour(piece)) +
             " fill-opacity=\"0.6\"/>\n";
    svg += rectangle(left, y, width - gap, size_.height(), colour(piece));
    if (is_handed_on(*piece.piece)) svg += " fill-opacity=\"0.45\"";
    svg += hints ? "><title>" + hint(piece, name) + "</title></rect>\n" : "/>\n";
    if (simulation_.workers_per_cta == 2) svg += draw_band(piece, left, width - gap, y);
    constexpr double kWidthOfLetter = 0.6;  // of the font's size
    if (static_cast<double>(name.size()) * size_.font() * kWidthOfLetter + 4 < width)
      svg += text(left + (width - gap) / 2, y + size_.height() / 2 + size_.font() * 0.35, size_.font(), "middle", kInk, name);
    return svg;
  }

  // From each piece of a tile to the one that adds its sums.
  std::string draw_threads() const {
    std::map<std::pair<std::int32_t, std::int32_t>, const SimulatedPiece*> by_peer;
    for (const SimulatedPiece& piece : simulation_.pieces)
      if (piece.tile.peers > 1) by_peer[{piece.tile.split_tile, piece.tile.peer}] = &piece;
    const auto middle = [&](const SimulatedPiece& piece) { return px(kTop + size_.pitch * piece.sm + size_.height() / 2); };
    std::string svg;
    for (const auto& [key, piece] : by_peer) {
      const auto last = by_peer.find({key.first, piece->tile.peers - 1});
      if (last == by_peer.end() || last->second == piece) continue;
      const SimulatedPiece& heir = *last->second;
      svg += "<path d=\"M" + px(x(piece->done)) + " " + middle(*piece) + "L" + px(x(std::max(heir.end, piece->done))) + " " + middle(heir) +
             "\" stroke=\"" + std::string(kFaint) + "\" stroke-dasharray=\"4 3\"/>\n";
    }
    return svg;
  }

  // Which of pingpong's two consumer warpgroups has the piece: a band along its upper or its lower edge.
  std::string draw_band(const LanePiece& piece, double left, double width, double y) const {
    const bool second = piece.piece->worker >= simulation_.worker_count / 2;
    const double height = std::max(1.5, size_.height() / 8);
    return rectangle(left, second ? y + size_.height() - height : y, width, height, kInk) + " fill-opacity=\"0.55\"/>\n";
  }

  std::string hint(const LanePiece& piece, const std::string& name) const {
    const WorkTile& tile = piece.piece->tile;
    return "tile " + name + ", k-tiles [" + std::to_string(tile.k_begin) + ", " + std::to_string(tile.k_end) + "), worker " +
           std::to_string(piece.piece->worker) + ", time " + fixed(piece.piece->begin, 2) + " to " + fixed(piece.piece->end, 2);
  }

  std::string draw_axis(double bottom) const {
    std::string svg;
    const auto mark = [&](double time, int digits) {
      svg += "<path d=\"M" + px(x(time)) + " " + px(bottom) + "v5\" stroke=\"" + std::string(kInk) + "\"/>\n";
      svg += text(x(time), bottom + 19, 12, "middle", kInk, fixed(time, digits));
    };
    const double distance = tick_distance(simulation_.makespan, 20), end = simulation_.makespan;
    int tick = 0;
    for (; tick * distance <= end + 1e-9; ++tick) mark(tick * distance, 0);
    const double since_last = end - (tick - 1) * distance;
    constexpr double kWidthOfMark = 36;
    if (since_last * scale_ > kWidthOfMark) mark(end, std::abs(end - std::round(end)) < 0.005 ? 0 : 2);
    svg += "<path d=\"M" + px(kLeft) + " " + px(bottom) + "h" + px(kPlotWidth) + "\" stroke=\"" + std::string(kInk) + "\"/>\n";
    return svg + text(kLeft + kPlotWidth / 2, bottom + 38, 12, "middle", kFaint, "time in tiles (1 = the whole main loop of one tile)");
  }

  std::string draw_legend(double y) const {
    std::string svg = rectangle(kLeft, y - 10, 12, 12, kIdle) + "/>\n" + text(kLeft + 18, y, 12, "start", kFaint, "idle");
    const char* colours = any_partial_ ? "colour: the output tile" : "colour: first, second, ... tile of the SM";
    svg += text(kLeft + 60, y, 12, "start", kFaint, colours);
    if (handed_on_ > 0) svg += text(kLeft + 210, y, 12, "start", kFaint, "pale: its sums go on to the tile's next piece");
    if (simulation_.workers_per_cta == 2)
      svg += text(kLeft + (handed_on_ > 0 ? 490 : 330), y, 12, "start", kFaint,
                  "dark band: the first consumer warpgroup's tile (above), the second's (below)");
    if (simulation_.cluster_m * simulation_.cluster_n > 1)
      svg += text(
          kWidth - kRight, y, 12, "end", kFaint,
          "clusters of " + std::to_string(simulation_.cluster_m) + " x " + std::to_string(simulation_.cluster_n) + " neighbouring SMs");
    return svg;
  }

  const Simulation& simulation_;
  LaneSize size_;
  double scale_;
  bool any_partial_ = false;
  std::size_t handed_on_ = 0;  // pieces whose sums another one takes over
};

}  // namespace

std::string to_svg(const Simulation& simulation) { return Picture(simulation).draw(); }

}  // namespace sluice
