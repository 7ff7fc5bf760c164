#include "sluice/simulate.hpp"

#include <algorithm>
#include <functional>
#include <queue>
#include <tuple>
#include <utility>

#include "core/check_plan.hpp"
#include "core/kernel_layout.hpp"
#include "core/occupancy.hpp"
#include "scheduler/replay.hpp"
#include "simulator/coverage.hpp"

namespace sluice {
namespace {

constexpr std::int64_t kMostPieces = std::int64_t{1} << 22;

// In whole main loops. A tile without any k-tiles still takes its turn.
double cost(const SchedulerParams& params, const WorkTile& tile) {
  return params.k_tiles == 0 ? 1.0 : static_cast<double>(tile.k_end - tile.k_begin) / params.k_tiles;
}

// Units (CTAs or clusters) start on whatever place is free first; a persistent grid has a place for each from the beginning.
class Places {
 public:
  explicit Places(int count) {
    for (int place = 0; place < count; ++place) free_.emplace(0.0, place);
  }
  std::pair<double, int> take() {
    const auto first = free_.top();
    free_.pop();
    return first;
  }
  void give_back(double when, int place) { free_.emplace(when, place); }

 private:
  using Entry = std::pair<double, int>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> free_;
};

void replay(const Plan& plan, Simulation& result) {
  const int sms_per_unit = cluster_size(plan.kernel);
  const std::int32_t units = plan.worker_count / result.workers_per_cta;
  Places places(clusters_that_fit(plan.device, plan.kernel));
  for (std::int32_t unit = 0; unit < units; ++unit) {
    auto [now, place] = places.take();
    // The workers of a CTA share its tensor cores: while one's main loop runs, the other loads or writes out. One piece after another.
    replay_unit(plan.scheduler, result.workers_per_cta, unit, units, [&, place = place, &now = now](const WorkTile& tile, int worker) {
      const double end = now + cost(plan.scheduler, tile);
      result.pieces.push_back({worker, place * sms_per_unit, tile, now, end});
      now = end;
    });
    places.give_back(now, place);
  }
  std::stable_sort(result.pieces.begin(), result.pieces.end(), [](const SimulatedPiece& x, const SimulatedPiece& y) {
    return std::tie(x.worker, x.begin) < std::tie(y.worker, y.begin);
  });
}

void summarise(const Plan& plan, Simulation& result) {
  const int sms_per_unit = cluster_size(plan.kernel);
  double busy = 0;
  std::vector<int> tiles_of_sm(static_cast<std::size_t>(result.sm_count));
  for (const SimulatedPiece& piece : result.pieces) {
    busy += (piece.end - piece.begin) * sms_per_unit;
    result.makespan = std::max(result.makespan, piece.end);
    result.waves = std::max(result.waves, ++tiles_of_sm[static_cast<std::size_t>(piece.sm)]);
  }
  if (result.makespan > 0) result.utilisation = busy / (result.makespan * result.sm_count);
  const Coverage coverage = count_coverage(plan.scheduler, result.pieces);
  result.uncovered_k_tiles = coverage.uncovered;
  result.repeated_k_tiles = coverage.repeated;
}

std::string describe_schedule(const Plan& plan) {
  const SchedulerParams& s = plan.scheduler;
  return name(plan.kernel) + ", " + to_string(s.kind) + ", " + to_string(s.raster) + ", cohort " + std::to_string(s.cohort) + ", " +
         std::to_string(s.k_tiles) + (s.k_tiles == 1 ? " k-tile" : " k-tiles");
}

}  // namespace

Result<Simulation> simulate(const Plan& plan) {
  if (Status s = check_plan(plan); !s) return s.error();
  if (plan.device.sm_count <= 0)
    return Error{ErrorCode::invalid_argument,
                 "device '" + plan.device.name + "' has " + std::to_string(plan.device.sm_count) + " SMs; at least 1 is needed"};
  Simulation result;
  result.what = describe(plan.problem) + " on " + plan.device.name + " (" + std::to_string(plan.device.sm_count) + " SMs)";
  result.sm_count = plan.device.sm_count;
  if (is_empty(plan.problem)) {
    result.how = "nothing to compute";
    return result;
  }
  const int resident = clusters_that_fit(plan.device, plan.kernel);
  if (resident <= 0 || resident > plan.device.sm_count / cluster_size(plan.kernel))
    return Error{ErrorCode::wrong_device, "device '" + plan.device.name + "' with " + std::to_string(plan.device.sm_count) +
                                              " SMs is said to hold " + std::to_string(resident) + " clusters of " +
                                              std::to_string(cluster_size(plan.kernel)) + "; plan with a kernel whose clusters fit"};
  if (cluster_tiles(plan.scheduler) > kMostPieces)
    return Error{ErrorCode::too_large, std::to_string(cluster_tiles(plan.scheduler)) + " work tiles are over the simulator's limit of " +
                                           std::to_string(kMostPieces) + "; simulate a smaller problem"};

  result.how = describe_schedule(plan);
  result.worker_count = plan.worker_count;
  result.workers_per_cta = workers_per_cta(plan.kernel);
  result.cluster_m = plan.kernel.cluster_m;
  result.cluster_n = plan.kernel.cluster_n;
  result.k_tiles = plan.scheduler.k_tiles;
  result.output_tiles = static_cast<std::int64_t>(plan.scheduler.tiles_m) * plan.scheduler.tiles_n * plan.scheduler.groups;
  replay(plan, result);
  summarise(plan, result);
  return result;
}

}  // namespace sluice
