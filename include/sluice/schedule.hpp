// How the output is cut into work tiles and dealt to workers. Plain data, the same on the CPU and on the GPU.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace sluice {

enum class SchedulerKind : std::uint8_t {
  one_tile_per_cta,  // as many workers as tiles
  data_parallel,     // persistent: whole tiles, dealt to as many clusters as fit
  split_k,           // each tile cut into `splits` ranges of k-tiles
  stream_k,          // all tiles, laid end to end, cut evenly among the clusters
  hybrid,            // the first tiles as in stream_k, the others whole
};

// A schedule is a list of items. How a cluster comes by its own:
enum class WorkClaim : std::uint8_t {
  fixed,   // cluster c of C takes items c, c + C, c + 2 C, ...
  ticket,  // the next one that nobody has taken, from a counter
};

// How the pieces of a tile come together.
enum class Reduction : std::uint8_t {
  // Through the workspace: each piece but the last leaves its sums there, the last one waits, adds them in the order of k and stores.
  workspace,
  // split_k: through the workspace, too, but all pieces leave their sums, and those that come last finish a slice of the tile each.
  separate,
  // split_k: the pieces of a tile are the CTAs of one cluster. Each finishes a part of the tile, whose sums the others push into its
  // shared memory. 2, 4 or 8 pieces; no workspace.
  cluster,
};

inline constexpr std::int32_t kMostPiecesInSlices = 255;  // Reduction::separate

// The direction in which a cohort advances through the output. It is `cohort` clusters wide across that direction, so that the
// tiles in flight form a block whose operands stay in L2.
enum class Rasterization : std::uint8_t { along_m, along_n };

struct SchedulerParams {
  SchedulerKind kind = SchedulerKind::data_parallel;
  Rasterization raster = Rasterization::along_m;
  // Tiles along M, N and the batch, counted in tiles of a CTA and rounded up to whole clusters. Of a grouped problem: tiles_m is the most
  // that all groups can have together, and groups is 1.
  std::int32_t tiles_m = 0;
  std::int32_t tiles_n = 0;
  std::int32_t groups = 1;
  std::int32_t k_tiles = 0;
  std::int32_t cluster_m = 1;
  std::int32_t cluster_n = 1;
  // Width of a cohort in clusters, across the rasterization direction.
  std::int32_t cohort = 1;

  WorkClaim claim = WorkClaim::fixed;
  std::int32_t splits = 1;  // split_k: pieces of each tile
  Reduction reduction = Reduction::workspace;
  std::int32_t lead = 0;  // split_k through the workspace: by so many k-tiles the last piece of a tile is longer than its share of the rest
  // No piece of a tile has fewer k-tiles, unless it is the whole tile.
  std::int32_t min_k_tiles = 1;
  // stream_k and hybrid: so many of the first work tiles are laid end to end and cut into as many ranges of k-tiles as there are
  // clusters. Regions share out tiles and ranges alike: the ranges of one cut the tiles of that one only.
  std::int32_t stream_k_tiles = 0;
  std::int32_t stream_k_ranges = 0;
  std::int32_t stream_k_regions = 1;

  bool operator==(const SchedulerParams&) const = default;
};

// A piece of work: k-tiles [k_begin, k_end) of one output tile.
//
// The pieces of a tile are numbered along k. Reduction says how they come together.
struct WorkTile {
  std::int32_t tile_m = 0;
  std::int32_t tile_n = 0;
  std::int32_t group = 0;
  std::int32_t k_begin = 0;
  std::int32_t k_end = 0;
  std::int32_t split_tile = -1;  // where a tile in pieces has its place in the workspace; -1 for a whole tile
  std::int32_t peer = 0;         // which of the pieces this one is,
  std::int32_t peers = 1;        // and how many there are; 0: no work at all, an item that keeps a list's rows whole
  std::int32_t first_row = 0;    // of A and D, from which the tiles of its group are counted
  std::int32_t row_end = 0;      // behind the last row of its group
  std::int32_t first_k = 0;      // of A and B, from which k-tiles are counted
  std::int32_t end_k = 0;        // behind the last of its group; of groups along K alone

  bool operator==(const WorkTile&) const = default;
};

const char* to_string(SchedulerKind kind);    // "one-tile-per-cta", "data-parallel", "split-k", "stream-k", "hybrid"
const char* to_string(Rasterization raster);  // "along-m", "along-n"
const char* to_string(WorkClaim claim);       // "fixed", "ticket"
const char* to_string(Reduction reduction);   // "workspace", "separate", "cluster"

std::optional<SchedulerKind> parse_scheduler(std::string_view text);
std::optional<Rasterization> parse_rasterization(std::string_view text);
std::optional<WorkClaim> parse_work_claim(std::string_view text);
std::optional<Reduction> parse_reduction(std::string_view text);

}  // namespace sluice
