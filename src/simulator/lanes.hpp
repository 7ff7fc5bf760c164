// What the pictures share: the pieces of each SM in order of time, with their labels.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sluice/simulate.hpp"

namespace sluice {

struct LanePiece {
  const SimulatedPiece* piece = nullptr;
  std::int32_t tile_m = 0;  // the tile that this SM computes of the cluster's
  std::int32_t tile_n = 0;
  int turn = 0;  // how many pieces the SM had before
};
using Lane = std::vector<LanePiece>;

// One for each SM. The pieces are those of `simulation`, which must outlive the lanes.
std::vector<Lane> lanes(const Simulation& simulation);

bool is_partial(const Simulation& simulation, const SimulatedPiece& piece);

// "(2,0)", the tile's row and column, or "(2,0)#3" of matrix 3 in a batch; a part of a tile also says its k-tiles, and
// which of the tile's pieces it is: "(2,0) k4-7 2/3".
std::string label(const Simulation& simulation, const LanePiece& piece);

// Whether another piece takes over the sums of this one.
bool is_handed_on(const SimulatedPiece& piece);

// "9 tiles, 3 waves, makespan 3.00 tiles, utilisation 75.0%, each k-tile computed once"; if tiles are cut, their pieces instead of waves.
std::string summary(const Simulation& simulation);

// A number with so many digits after the point, whatever the locale.
std::string fixed(double value, int digits);

// The distance between marks on a time axis, 1, 2 or 5 times a power of ten and at least 1, so that there are at most `most` of them.
double tick_distance(double makespan, int most);

}  // namespace sluice
