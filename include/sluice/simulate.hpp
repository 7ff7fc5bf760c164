// Replays a plan on the CPU with the schedulers' own code: who computes what, when.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sluice/error.hpp"
#include "sluice/plan.hpp"

namespace sluice {

// One work tile on one worker. Times are in units of a whole tile's main loop (1.0 = all its k-tiles on one worker).
struct SimulatedPiece {
  int worker = 0;
  int sm = 0;  // the first SM of the worker's cluster
  WorkTile tile;
  double begin = 0;
  double end = 0;   // of its main loop
  double done = 0;  // when its sums were left or written out: later than `end` if it waited for the other pieces of its tile
};

struct Simulation {
  std::string what;                    // the problem and the device, one line
  std::string how;                     // the kernel and the scheduler, one line
  std::vector<SimulatedPiece> pieces;  // by worker, then in the order the worker takes them
  int worker_count = 0;
  int workers_per_cta = 1;  // 2 in pingpong: they take turns at the SM's tensor cores
  int cluster_m = 1;        // a work tile is cluster_m x cluster_n tiles, each on an SM of its own
  int cluster_n = 1;
  int k_tiles = 0;                // of a whole tile
  int sm_count = 0;               // of the device
  std::int64_t output_tiles = 0;  // CTA tiles, those that only fill up clusters included
  // Pairs of (tile, k-tile) nobody computes, and those computed more than once or outside the output. Both 0 for a correct schedule.
  // With k_tiles == 0 each tile counts as one pair: its epilogue must run once.
  std::int64_t uncovered_k_tiles = 0;
  std::int64_t repeated_k_tiles = 0;
  int waves = 0;           // most work tiles, whole or in part, that any SM works on
  double makespan = 0;     // in tile units
  double utilisation = 0;  // busy time of all SMs over sm_count * makespan
  double waiting = 0;      // of all SMs together: last pieces whose sums are ready, for the others of their tile
};

struct SimulateOptions {
  // Clusters on the device at once, as when another kernel holds the other SMs: the rest start, in order, as these finish. 0: all that fit.
  int resident_units = 0;
};

Result<Simulation> simulate(const Plan& plan, const SimulateOptions& options = {});

std::string to_text(const Simulation& simulation, int width_columns = 100);
std::string to_svg(const Simulation& simulation);
std::string to_json(const Simulation& simulation);

}  // namespace sluice
