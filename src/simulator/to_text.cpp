#include <algorithm>
#include <cmath>
#include <string>

#include "sluice/simulate.hpp"

#include "simulator/lanes.hpp"

namespace sluice {
namespace {

constexpr int kNarrowest = 40;  // columns of a picture, the lane's name included

constexpr char kWaiting = '~';

// One SM's row: a bar before each piece, its label where there is room. Pieces of a column or two take turns with their characters.
std::string row_of(const Simulation& simulation, const Lane& lane, int columns) {
  std::string row(static_cast<std::size_t>(columns), '.');
  for (const LanePiece& piece : lane) {
    const auto column = [&](double time) { return static_cast<int>(std::lround(time / simulation.makespan * columns)); };
    const int first = std::min(column(piece.piece->begin), columns - 1);
    const int width = std::max(1, std::min(column(piece.piece->end), columns) - first);
    for (int i = first + width; i < std::min(column(piece.piece->done), columns); ++i) row[static_cast<std::size_t>(i)] = kWaiting;
    std::string text(static_cast<std::size_t>(width), piece.turn % 2 == 0 ? '=' : '-');
    if (width > 2) {
      text[0] = '|';
      const std::string name = label(simulation, piece);
      if (static_cast<int>(name.size()) < width) text.replace(1, name.size(), name);
    }
    row.replace(static_cast<std::size_t>(first), text.size(), text);
  }
  return row;
}

std::string axis(double makespan, int columns) {
  std::string line(static_cast<std::size_t>(columns) + 8, ' ');
  const double distance = tick_distance(makespan, std::max(1, columns / 8));
  for (int tick = 0; tick * distance <= makespan + 1e-9; ++tick) {
    const std::string text = fixed(tick * distance, 0);
    line.replace(static_cast<std::size_t>(std::lround(tick * distance / makespan * columns)), text.size(), text);
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

}  // namespace

std::string to_text(const Simulation& simulation, int width_columns) {
  std::string text = simulation.what + "\n" + simulation.how + "\n" + summary(simulation) + "\n";
  if (simulation.pieces.empty() || simulation.makespan <= 0) return text;

  const std::size_t digits = std::to_string(std::max(simulation.sm_count - 1, 0)).size();
  const int margin = static_cast<int>(digits) + 4;  // "SM 12 "
  const int columns = std::max(width_columns, kNarrowest) - margin - 1;
  text += "\n";
  int sm = 0;
  for (const Lane& lane : lanes(simulation)) {
    const std::string number = std::to_string(sm++);
    text += "SM " + std::string(digits - number.size(), ' ') + number + " " + row_of(simulation, lane, columns) + "|\n";
  }
  text += std::string(static_cast<std::size_t>(margin), ' ') + axis(simulation.makespan, columns) + "\n" +
          "time in tiles (1 = the whole main loop of one tile); . = idle";
  if (simulation.waiting > 0) text += std::string(", ") + kWaiting + " = waiting for a piece of the same tile";
  const auto handed_on = std::find_if(simulation.pieces.begin(), simulation.pieces.end(), is_handed_on);
  if (handed_on != simulation.pieces.end())
    text += "\nk0-9 1/2 = k-tiles 0 to 9, the first of the tile's two pieces; the last adds the others' sums to its own and writes out";
  return text + "\n";
}

}  // namespace sluice
