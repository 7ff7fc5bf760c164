// What a work tile costs its SM, in cycles.
#pragma once

#include "sluice/calibration.hpp"
#include "sluice/device.hpp"
#include "sluice/problem.hpp"

#include "planner/cost/groups.hpp"

namespace sluice {

// What one CTA costs its SM over a work tile: the multiplications with and without what surrounds them, and the bytes coming in.
struct TileCycles {
  double multiply = 0;
  double compute = 0;
  double ingest = 0;  // the bytes, or the copy engine's boxes
};
// rounds: tiles that a CTA computes one after the other. rows: which of a tile's rows there are.
TileCycles tile_cycles(const Calibration& c, const GemmProblem& p, const DeviceSpec& device, const KernelConfig& kernel, double k_tiles,
                       double rounds, const RowShares& rows);

}  // namespace sluice
