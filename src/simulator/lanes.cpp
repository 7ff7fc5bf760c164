#include "simulator/lanes.hpp"

#include <algorithm>
#include <charconv>
#include <system_error>

namespace sluice {

std::vector<Lane> lanes(const Simulation& simulation) {
  std::vector<Lane> all(static_cast<std::size_t>(std::max(simulation.sm_count, 0)));
  for (const SimulatedPiece& piece : simulation.pieces)
    for (int cta = 0; cta < simulation.cluster_m * simulation.cluster_n; ++cta) {
      const int sm = piece.sm + cta;
      if (sm < 0 || sm >= simulation.sm_count) continue;
      const int m = cta % simulation.cluster_m, n = cta / simulation.cluster_m;
      all[static_cast<std::size_t>(sm)].push_back({&piece, piece.tile.tile_m + m, piece.tile.tile_n + n, 0});
    }
  for (Lane& lane : all) {
    std::stable_sort(lane.begin(), lane.end(), [](const LanePiece& x, const LanePiece& y) { return x.piece->begin < y.piece->begin; });
    int turn = 0;
    for (LanePiece& piece : lane) piece.turn = turn++;
  }
  return all;
}

bool is_partial(const Simulation& simulation, const SimulatedPiece& piece) {
  return piece.tile.k_begin > 0 || piece.tile.k_end < simulation.k_tiles;
}

std::string label(const Simulation& simulation, const LanePiece& lane_piece) {
  const WorkTile& tile = lane_piece.piece->tile;
  std::string text = "(";
  text.append(std::to_string(lane_piece.tile_m)).append(",").append(std::to_string(lane_piece.tile_n)).append(")");
  if (tile.group > 0) text.append("#").append(std::to_string(tile.group));
  if (!is_partial(simulation, *lane_piece.piece)) return text;
  text.append(" k").append(std::to_string(tile.k_begin));
  if (tile.k_end > tile.k_begin + 1) text.append("-").append(std::to_string(tile.k_end - 1));
  if (tile.peers > 1) text.append(" ").append(std::to_string(tile.peer + 1)).append("/").append(std::to_string(tile.peers));
  return text;
}

bool is_handed_on(const SimulatedPiece& piece) { return piece.tile.peer + 1 < piece.tile.peers; }

std::string summary(const Simulation& simulation) {
  const auto counted = [](std::int64_t count, const char* what) { return std::to_string(count) + " " + what + (count == 1 ? "" : "s"); };
  const bool cut =
      std::any_of(simulation.pieces.begin(), simulation.pieces.end(), [](const SimulatedPiece& piece) { return piece.tile.peers > 1; });
  const std::string parts =
      cut ? " in " + counted(static_cast<std::int64_t>(simulation.pieces.size()), "piece") : ", " + counted(simulation.waves, "wave");
  std::string text = counted(simulation.output_tiles, "tile") + parts + ", makespan " + fixed(simulation.makespan, 2) +
                     (simulation.makespan == 1 ? " tile" : " tiles") + ", utilisation " + fixed(100 * simulation.utilisation, 1) + "%, ";
  if (simulation.waiting > 0) text += "waiting " + fixed(simulation.waiting, 2) + ", ";
  if (simulation.uncovered_k_tiles == 0 && simulation.repeated_k_tiles == 0) return text + "each k-tile computed once";
  return text + "WRONG: " + counted(simulation.uncovered_k_tiles, "k-tile") + " not computed, " +
         counted(simulation.repeated_k_tiles, "k-tile") + " computed again";
}

std::string fixed(double value, int digits) {
  char text[64];
  const auto [end, error] = std::to_chars(text, text + sizeof text, value, std::chars_format::fixed, digits);
  return error == std::errc{} ? std::string(text, end) : "?";
}

double tick_distance(double makespan, int most) {
  double distance = 1;
  for (int step = 0; makespan / distance > most; ++step) distance *= step % 3 == 1 ? 2.5 : 2;
  return distance;
}

}  // namespace sluice
