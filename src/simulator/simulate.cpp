#include "sluice/simulate.hpp"

#include <algorithm>
#include <deque>
#include <functional>
#include <optional>
#include <queue>
#include <tuple>
#include <utility>
#include <vector>

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

// A CTA or cluster: its work in order, the part done, and whose each piece is.
struct Unit {
  std::vector<std::pair<WorkTile, int>> work;
  std::size_t done = 0;
};

// An SM, or the SMs of a cluster, with the units that are on it. They share its tensor cores: a main loop runs while the others load or
// write out, so pieces follow one another, each unit's in turn.
class Place {
 public:
  std::size_t residents() const { return units_.size(); }
  void admit(Unit unit) { units_.push_back(std::move(unit)); }

  // The next piece, or none if there is nothing to do.
  std::optional<std::pair<WorkTile, int>> next() {
    while (!units_.empty()) {
      Unit unit = std::move(units_.front());
      units_.pop_front();
      if (unit.done == unit.work.size()) continue;
      const auto piece = unit.work[unit.done++];
      if (unit.done < unit.work.size()) units_.push_back(std::move(unit));
      return piece;
    }
    return std::nullopt;
  }

 private:
  std::deque<Unit> units_;
};

// In order of time, so that the unit that starts next does so on the SM that is free first. A persistent grid has a place for each
// unit from the beginning.
void replay(const Plan& plan, Simulation& result) {
  const int sms_per_unit = cluster_size(plan.kernel);
  const std::int32_t units = plan.worker_count / result.workers_per_cta;
  std::vector<Place> places(static_cast<std::size_t>(cluster_places(plan.device, plan.kernel)));
  const std::size_t residents = static_cast<std::size_t>(clusters_that_fit(plan.device, plan.kernel)) / places.size();
  std::int32_t launched = 0;
  const auto launch_on = [&](Place& place) {
    Unit unit;
    replay_unit(plan.scheduler, result.workers_per_cta, launched++, units,
                [&](const WorkTile& tile, int worker) { unit.work.emplace_back(tile, worker); });
    place.admit(std::move(unit));
  };
  for (std::size_t round = 0; round < residents; ++round)
    for (std::size_t place = 0; place < places.size() && launched < units; ++place) launch_on(places[place]);

  using Entry = std::pair<double, std::size_t>;  // when a place is free, and which
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> free;
  for (std::size_t place = 0; place < places.size(); ++place) free.emplace(0.0, place);
  while (!free.empty()) {
    const auto [now, place] = free.top();
    free.pop();
    while (launched < units && places[place].residents() < residents) launch_on(places[place]);
    const auto piece = places[place].next();
    if (!piece) continue;
    const double end = now + cost(plan.scheduler, piece->first);
    result.pieces.push_back({piece->second, static_cast<int>(place) * sms_per_unit, piece->first, now, end});
    free.emplace(end, place);
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
  const int places = cluster_places(plan.device, plan.kernel);
  if (places <= 0 || places > plan.device.sm_count / cluster_size(plan.kernel) || clusters_that_fit(plan.device, plan.kernel) < places)
    return Error{ErrorCode::wrong_device, "device '" + plan.device.name + "' with " + std::to_string(plan.device.sm_count) +
                                              " SMs is said to have room for " + std::to_string(places) + " clusters of " +
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
