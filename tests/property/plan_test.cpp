// What holds for every plan, whatever the problem and the device.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "core/check_plan.hpp"
#include "core/check_scheduler.hpp"
#include "core/kernel_layout.hpp"
#include "core/launched_clusters.hpp"
#include "core/occupancy.hpp"
#include "core/tile_parts.hpp"
#include "random_plans.hpp"
#include "scheduler/plan_workspace.hpp"
#include "scheduler/single_items.hpp"

namespace sluice {
namespace {

PlanOptions random_options() {
  PlanOptions options;
  options.keep_candidates = *rc::gen::arbitrary<bool>();
  if (*rc::gen::inRange(0, 4) == 0) options.schedule = *rc::gen::element(KernelSchedule::cooperative, KernelSchedule::pingpong);
  if (*rc::gen::inRange(0, 3) == 0) test::choose_scheduler(options);
  if (*rc::gen::inRange(0, 4) == 0) options.raster = *rc::gen::element(Rasterization::along_m, Rasterization::along_n);
  return options;
}

// Pieces that meet in a cluster are pieces, too, though they leave nothing in the workspace (split_tile_count()).
bool cuts_tiles(const SchedulerParams& s) { return split_tile_count(s) > 0 || s.reduction == Reduction::cluster; }

void check_fits_the_device(const Plan& plan) {
  const int workers = workers_per_cta(plan.kernel), cluster = cluster_size(plan.kernel);
  RC_ASSERT(plan.worker_count > 0);
  RC_ASSERT(plan.worker_count % workers == 0);
  RC_ASSERT(plan.grid_ctas == plan.worker_count / workers * cluster);
  const bool by_item = plan.scheduler.kind == SchedulerKind::split_k && plan.scheduler.claim == WorkClaim::fixed;
  if (plan.scheduler.kind != SchedulerKind::one_tile_per_cta && !by_item) {
    RC_ASSERT(plan.grid_ctas <=
              plan.device.sm_count * (clusters_that_fit(plan.device, plan.kernel) / cluster_places(plan.device, plan.kernel)));
    RC_ASSERT(plan.grid_ctas / cluster <= clusters_that_fit(plan.device, plan.kernel));
  } else {
    RC_ASSERT(plan.grid_ctas / cluster == item_count(plan.scheduler));
  }
  // Neighbours are all there at once, and no cluster is without an item.
  const int together = launched_cluster_size(plan), launched = launched_ctas(plan);
  RC_ASSERT(launched % together == 0);
  RC_ASSERT(launched >= plan.grid_ctas);
  const bool by_place = dealt_by_place(plan);
  RC_ASSERT((by_place ? launched == plan.device.sm_count : launched - plan.grid_ctas < together));
  if (neighbours(plan.problem, plan.device, plan.kernel, plan.scheduler) > 1)
    RC_ASSERT(launched / together <= cluster_places(plan.device, together));
  const int most = shared_memory_layout(plan.kernel).total_bytes;
  RC_ASSERT((streams(plan.kernel) ? plan.shared_memory_bytes <= most : plan.shared_memory_bytes == most));
  RC_ASSERT(plan.shared_memory_bytes > 0);
  RC_ASSERT(plan.shared_memory_bytes <= plan.device.shared_memory_per_cta_bytes);
  // Memory for what pieces leave, and flags: only where there is something to put there, and enough of both.
  const bool leaves_sums = split_tile_count(plan.scheduler) > 0;
  RC_ASSERT(plan.workspace_bytes == workspace_bytes(plan.problem, plan.device, plan.kernel, plan.scheduler));
  RC_ASSERT((plan.workspace_bytes > 0) == (leaves_sums || by_place || plan.scheduler.claim == WorkClaim::ticket));
  RC_ASSERT(flag_count(plan.scheduler, plan.kernel) <= kMostFlags);
  if (cuts_tiles(plan.scheduler)) RC_ASSERT(joins_pieces(plan.kernel));
  if (plan.scheduler.claim == WorkClaim::fixed) RC_ASSERT(!fixed_claim_can_stall(plan.scheduler, plan.grid_ctas / cluster));
}

// Enough tiles, and not a whole cluster of them too many.
void check_covers_the_problem(const Plan& plan) {
  const GemmProblem& p = plan.problem;
  const SchedulerParams& s = plan.scheduler;
  const std::int64_t cluster_rows = std::int64_t{plan.kernel.tile_m} * plan.kernel.cluster_m;
  const std::int64_t cluster_columns = std::int64_t{plan.kernel.tile_n} * plan.kernel.cluster_n;
  RC_ASSERT(check_plan(plan).ok());
  RC_ASSERT(std::int64_t{s.tiles_m} * plan.kernel.tile_m - p.m < cluster_rows);
  RC_ASSERT(std::int64_t{s.tiles_n} * plan.kernel.tile_n - p.n < cluster_columns);
  const std::int64_t read = p.epilogue.alpha == 0.0f ? 0 : p.k;
  RC_ASSERT(std::int64_t{s.k_tiles} * plan.kernel.tile_k - read >= 0);
  RC_ASSERT(std::int64_t{s.k_tiles} * plan.kernel.tile_k - read < plan.kernel.tile_k);
  RC_ASSERT(plan.kernel.type_a == p.type_a && plan.kernel.type_b == p.type_b);
  RC_ASSERT(plan.kernel.layout_a == p.layout_a && plan.kernel.layout_b == p.layout_b);
}

void check_prediction(const PredictedTime& t, const SchedulerParams& s) {
  for (const double part : {t.launch_us, t.matrix_us, t.hbm_us, t.l2_us, t.ramp_us, t.exposed_epilogue_us, t.reduction_us, t.waves}) {
    RC_ASSERT(std::isfinite(part));
    RC_ASSERT(part >= 0);
  }
  RC_ASSERT(std::isfinite(t.total_us));
  RC_ASSERT((t.reduction_us > 0) == cuts_tiles(s));
  const double others = t.launch_us + t.ramp_us + t.exposed_epilogue_us + t.reduction_us + t.learnt_us + t.power_us;
  RC_ASSERT(t.total_us > 0);
  RC_ASSERT(std::abs(t.learnt_us) <= 0.5 * (t.total_us - t.power_us - t.learnt_us));
  RC_ASSERT(std::abs(t.power_us) <= 0.5 * (t.total_us - t.power_us));
  RC_ASSERT(t.total_us >= others + std::max({t.matrix_us, t.hbm_us, t.l2_us}) - 1e-9 * t.total_us);
  RC_ASSERT(t.total_us <= others + t.matrix_us + t.hbm_us + t.l2_us + 1e-9 * t.total_us);
  RC_ASSERT(t.useful_share > 0);
  RC_ASSERT(t.useful_share <= 1 + 1e-12);
  RC_ASSERT(t.busy_share > 0);
  RC_ASSERT(t.busy_share <= 1 + 1e-12);
}

void check_candidates(const Plan& plan) {
  RC_ASSERT(plan.candidates.size() >= 1u);
  RC_ASSERT(plan.candidates.front().verdict == CandidateVerdict::chosen);
  RC_ASSERT(plan.candidates.front().kernel == plan.kernel);
  RC_ASSERT(plan.candidates.front().scheduler == plan.scheduler);
  double before = 0;
  bool refused = false;
  for (std::size_t i = 0; i < plan.candidates.size(); ++i) {
    const Candidate& candidate = plan.candidates[i];
    RC_ASSERT((candidate.verdict == CandidateVerdict::chosen) == (i == 0));
    const bool runs = candidate.verdict == CandidateVerdict::chosen || candidate.verdict == CandidateVerdict::slower;
    RC_ASSERT(!(runs && refused));  // those that cannot run come last
    refused = !runs;
    if (!runs) continue;
    check_prediction(candidate.predicted, candidate.scheduler);
    RC_ASSERT(candidate.predicted.total_us >= before);
    before = candidate.predicted.total_us;
  }
}

RC_GTEST_PROP(Plans, FitTheDeviceAndCoverTheProblem, ()) {
  const GemmProblem problem = test::random_problem(20000);
  const DeviceSpec device = test::random_device();
  const PlanOptions options = random_options();
  RC_LOG() << describe(problem) << " on " << device.name;
  const Result<Plan> made = plan(problem, device, options);
  if (!made) {
    // Only options may leave nothing: an empty or odd problem always has a plan. No kernel has that schedule, or so many tiles are to be
    // cut that the workspace has no flags for them.
    RC_ASSERT(plan(problem, device).ok());
    const bool cuts = options.scheduler && *options.scheduler >= SchedulerKind::split_k;
    RC_ASSERT(options.schedule.has_value() || cuts);
    RC_ASSERT(made.error().code == ErrorCode::unsupported || (cuts && made.error().code == ErrorCode::too_large));
    RC_ASSERT(!made.error().message.empty());
    if (made.error().code == ErrorCode::too_large) RC_ASSERT(made.error().message.find("flags") != std::string::npos);
    RC_DISCARD("no kernel of this schedule");
  }
  RC_ASSERT(validate(problem).value() == made->problem);
  if (is_empty(problem)) {
    RC_ASSERT(made->grid_ctas == 0);
    return;
  }
  check_fits_the_device(*made);
  check_covers_the_problem(*made);
  check_prediction(made->predicted, made->scheduler);
  if (options.keep_candidates)
    check_candidates(*made);
  else
    RC_ASSERT(made->candidates.empty());
  if (options.schedule) RC_ASSERT(made->kernel.schedule == *options.schedule);
  if (options.scheduler) RC_ASSERT(made->scheduler.kind == *options.scheduler);
  if (options.raster) RC_ASSERT(made->scheduler.raster == *options.raster);
}

RC_GTEST_PROP(Plans, AreAPureFunctionOfTheirArguments, ()) {
  const GemmProblem problem = test::random_problem(20000);
  const DeviceSpec device = test::random_device();
  const Result<Plan> first = plan(problem, device);
  RC_ASSERT(first.ok());
  RC_ASSERT(plan(test::random_problem(5000), test::random_device()).ok());  // whatever is planned in between
  const Result<Plan> second = plan(problem, device);
  RC_ASSERT(second.ok());
  RC_ASSERT(*first == *second);
}

// However tiles are cut, each is one main loop's work in all. Nobody waits who has a whole tile; and of each SM's time, what is not work is
// waiting, its own or that of a cluster that was there before it.
void check_times(const Plan& plan, const Simulation& simulation) {
  double work = 0, waiting = 0;
  std::vector<double> of_sm(static_cast<std::size_t>(plan.device.sm_count));
  for (const SimulatedPiece& piece : simulation.pieces) {
    RC_ASSERT(piece.end > piece.begin);
    RC_ASSERT(piece.done >= piece.end);
    if (piece.tile.peer + 1 < piece.tile.peers) RC_ASSERT(piece.done == piece.end);
    if (piece.tile.peers == 1) RC_ASSERT(piece.done == piece.end && std::abs(piece.end - piece.begin - 1) < 1e-9);
    work += piece.end - piece.begin;
    waiting += piece.done - piece.end;
    of_sm[static_cast<std::size_t>(piece.sm)] += piece.end - piece.begin;
  }
  const double busiest = *std::max_element(of_sm.begin(), of_sm.end());
  RC_ASSERT(std::abs(work - cluster_tiles(plan.scheduler)) < 1e-6 * (1 + work));
  RC_ASSERT(std::abs(simulation.utilisation * simulation.makespan * simulation.sm_count - work * cluster_size(plan.kernel)) <
            1e-6 * (1 + work));
  RC_ASSERT(std::abs(simulation.waiting - waiting * cluster_size(plan.kernel)) < 1e-6 * (1 + waiting));
  RC_ASSERT(simulation.makespan >= busiest - 1e-9);
  RC_ASSERT(simulation.makespan <= busiest + waiting + 1e-6);
  // Whole tiles: the time of the busiest SM, in tiles, is its number of tiles.
  if (!cuts_tiles(plan.scheduler)) RC_ASSERT(waiting == 0 && simulation.makespan == simulation.waves);
}

RC_GTEST_PROP(Plans, SimulateToFullCoverage, ()) {
  const GemmProblem problem = test::random_problem(6000);
  const DeviceSpec device = test::random_device();
  RC_LOG() << describe(problem) << " on " << device.name;
  const Result<Plan> made = plan(problem, device, random_options());
  RC_PRE(made.ok());
  const Result<Simulation> simulation = simulate(*made, {.resident_units = *rc::gen::inRange(0, 5)});
  RC_ASSERT(simulation.ok());
  RC_ASSERT(simulation->uncovered_k_tiles == 0);
  RC_ASSERT(simulation->repeated_k_tiles == 0);
  if (is_empty(problem)) return;
  check_times(*made, *simulation);
  RC_ASSERT(simulation->utilisation > 0);
  RC_ASSERT(simulation->utilisation <= 1 + 1e-12);
  std::vector<double> free(static_cast<std::size_t>(device.sm_count));
  std::vector<const SimulatedPiece*> by_time;
  for (const SimulatedPiece& piece : simulation->pieces) by_time.push_back(&piece);
  std::stable_sort(by_time.begin(), by_time.end(), [](const auto* x, const auto* y) { return x->begin < y->begin; });
  for (const SimulatedPiece* piece : by_time)
    for (int cta = 0; cta < cluster_size(made->kernel); ++cta) {
      RC_ASSERT(piece->sm + cta < device.sm_count);
      double& at = free[static_cast<std::size_t>(piece->sm + cta)];
      RC_ASSERT(piece->begin >= at);  // one piece at a time on each SM
      at = piece->end;
    }
}

}  // namespace
}  // namespace sluice
