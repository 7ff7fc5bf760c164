#include "sluice/simulate.hpp"

#include <algorithm>
#include <vector>

#include "core/check_plan.hpp"
#include "core/describe_scheduler.hpp"
#include "core/groups.hpp"
#include "core/kernel_layout.hpp"
#include "core/occupancy.hpp"
#include "scheduler/single_items.hpp"
#include "simulator/coverage.hpp"
#include "simulator/timeline.hpp"

namespace sluice {
namespace {

constexpr std::int64_t kMostPieces = std::int64_t{1} << 22;

void summarise(const Plan& plan, Simulation& result) {
  const int sms_per_unit = cluster_size(plan.kernel);
  double busy = 0;
  std::vector<int> tiles_of_sm(static_cast<std::size_t>(result.sm_count));
  for (const SimulatedPiece& piece : result.pieces) {
    busy += (piece.end - piece.begin) * sms_per_unit;
    result.makespan = std::max(result.makespan, piece.done);
    result.waiting += (piece.done - piece.end) * sms_per_unit;
    result.waves = std::max(result.waves, ++tiles_of_sm[static_cast<std::size_t>(piece.sm)]);
  }
  if (result.makespan > 0) result.utilisation = busy / (result.makespan * result.sm_count);
  const Coverage coverage = count_coverage(plan.scheduler, result.pieces);
  result.uncovered_k_tiles = coverage.uncovered;
  result.repeated_k_tiles = coverage.repeated;
}

std::string describe_schedule(const Plan& plan) {
  const SchedulerParams& s = plan.scheduler;
  return name(plan.kernel) + ", " + describe_kind(s) + ", " + to_string(s.raster) + ", cohort " + std::to_string(s.cohort) + ", " +
         std::to_string(s.k_tiles) + (s.k_tiles == 1 ? " k-tile" : " k-tiles");
}

}  // namespace

Result<Simulation> simulate(const Plan& plan, const SimulateOptions& options) {
  if (Status s = check_plan(plan); !s) return s.error();
  if (plan.device.sm_count <= 0)
    return Error{ErrorCode::invalid_argument,
                 "device '" + plan.device.name + "' has " + std::to_string(plan.device.sm_count) + " SMs; at least 1 is needed"};
  if (has_groups(plan.problem))
    return Error{ErrorCode::unsupported, std::string("the plan is for ") + to_string(plan.problem.grouping) +
                                             " groups, whose sizes only the device knows; simulate a batch of their size"};
  if (options.resident_units < 0)
    return Error{ErrorCode::invalid_argument,
                 "resident_units = " + std::to_string(options.resident_units) + " must be at least 1, or 0 for as many as fit"};
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
  if (item_count(plan.scheduler) > kMostPieces)
    return Error{ErrorCode::too_large, std::to_string(item_count(plan.scheduler)) + " work tiles are over the simulator's limit of " +
                                           std::to_string(kMostPieces) + "; simulate a smaller problem"};

  result.how = describe_schedule(plan);
  result.worker_count = plan.worker_count;
  result.workers_per_cta = workers_per_cta(plan.kernel);
  result.cluster_m = plan.kernel.cluster_m;
  result.cluster_n = plan.kernel.cluster_n;
  result.k_tiles = plan.scheduler.k_tiles;
  result.output_tiles = static_cast<std::int64_t>(plan.scheduler.tiles_m) * plan.scheduler.tiles_n * plan.scheduler.groups;
  if (options.resident_units > 0) result.how += ", " + std::to_string(options.resident_units) + " clusters resident";
  if (Status s = play(plan, options.resident_units, result); !s) return s.error();
  summarise(plan, result);
  return result;
}

}  // namespace sluice
