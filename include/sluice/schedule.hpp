// How the output is cut into work tiles and dealt to workers. Plain data, the same on the CPU and on the GPU.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace sluice {

enum class SchedulerKind : std::uint8_t {
  one_tile_per_cta,  // as many workers as tiles
  data_parallel,     // persistent: worker w takes tiles w, w + workers, w + 2 workers, ...
};

// The direction in which a cohort advances through the output. It is `cohort` clusters wide across that direction, so that the
// tiles in flight form a block whose operands stay in L2.
enum class Rasterization : std::uint8_t { along_m, along_n };

struct SchedulerParams {
  SchedulerKind kind = SchedulerKind::data_parallel;
  Rasterization raster = Rasterization::along_m;
  // Tiles along M, N and the batch, counted in tiles of a CTA and rounded up to whole clusters.
  std::int32_t tiles_m = 0;
  std::int32_t tiles_n = 0;
  std::int32_t groups = 1;
  std::int32_t k_tiles = 0;
  std::int32_t cluster_m = 1;
  std::int32_t cluster_n = 1;
  // Width of a cohort in clusters, across the rasterization direction.
  std::int32_t cohort = 1;

  bool operator==(const SchedulerParams&) const = default;
};

// A piece of work: k-tiles [k_begin, k_end) of one output tile.
struct WorkTile {
  std::int32_t tile_m = 0;
  std::int32_t tile_n = 0;
  std::int32_t group = 0;
  std::int32_t k_begin = 0;
  std::int32_t k_end = 0;

  bool operator==(const WorkTile&) const = default;
};

const char* to_string(SchedulerKind kind);    // "one-tile-per-cta", "data-parallel"
const char* to_string(Rasterization raster);  // "along-m", "along-n"

std::optional<SchedulerKind> parse_scheduler(std::string_view text);
std::optional<Rasterization> parse_rasterization(std::string_view text);

}  // namespace sluice
