#include "sluice/plan.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <tuple>

#include "sluice/calibration.hpp"

#include "core/check_scheduler.hpp"
#include "core/general_groups.hpp"
#include "core/groups.hpp"
#include "core/kernel_layout.hpp"
#include "core/launched_clusters.hpp"
#include "core/profiler_range.hpp"
#include "core/tile_parts.hpp"
#include "planner/as_batch.hpp"
#include "planner/calibration/kernel_factor.hpp"
#include "planner/calibration/learnt.hpp"
#include "planner/cost/power.hpp"
#include "planner/cost_model.hpp"
#include "planner/workers.hpp"
#include "scheduler/groups.hpp"
#include "scheduler/plan_workspace.hpp"
#include "scheduler/tile_order.hpp"

namespace sluice {
namespace {

constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
constexpr std::int64_t round_up(std::int64_t a, std::int64_t b) { return ceil_div(a, b) * b; }

constexpr int kTmaAlignmentBytes = 16;

// Whether the tensor memory accelerator can address an operand: its pointer and its strides are multiples of 16 bytes.
bool tma_can_load(int alignment_bytes, std::int64_t leading, std::int64_t batch_stride, int element_bytes) {
  return alignment_bytes >= kTmaAlignmentBytes && leading * element_bytes % kTmaAlignmentBytes == 0 &&
         batch_stride * element_bytes % kTmaAlignmentBytes == 0;
}

bool operands_aligned(const GemmProblem& p) {
  const int bytes = size_bytes(p.type_a);
  const bool packed = p.type_b == DataType::int4;  // comes in runs of bytes, which validate() has seen to
  return tma_can_load(p.alignment_a_bytes, p.lda, p.batch_stride_a, bytes) &&
         (packed || tma_can_load(p.alignment_b_bytes, p.ldb, p.batch_stride_b, bytes));
}

bool excluded(const PlanOptions& options, const KernelConfig& kernel) {
  return (options.schedule && *options.schedule != kernel.schedule) || (options.tile_m != 0 && options.tile_m != kernel.tile_m) ||
         (options.tile_n != 0 && options.tile_n != kernel.tile_n) || (!options.kernel_name.empty() && options.kernel_name != name(kernel));
}

struct Shape {
  std::int64_t tiles_m, tiles_n, matrices;
};
// Of groups: the most tiles along M that they can have together, each of those that have rows one that is not full.
Shape tile_shape(const GemmProblem& p, const KernelConfig& kernel) {
  const std::int64_t tiles_n = round_up(ceil_div(p.n, kernel.tile_n), kernel.cluster_n);
  const std::int64_t rows = std::int64_t{kernel.tile_m} * kernel.cluster_m;
  if (p.grouping == Grouping::ragged) return {(p.m / rows + std::min(p.batch, p.m)) * kernel.cluster_m, tiles_n, 1};
  const std::int64_t tiles_m = ceil_div(p.m, rows) * kernel.cluster_m;
  if (p.grouping == Grouping::masked) return {tiles_m * p.batch, tiles_n, 1};
  return {tiles_m, tiles_n, p.batch};
}

constexpr std::int64_t kMostTiles = kMostItems;
__extension__ typedef __int128 Wide;  // NOLINT(modernize-use-using): __extension__ goes with a typedef alone

// Whether a row of D has the bits that all other kernels give it for which this holds, whatever rows lie beside it.
bool keeps_bits_of_rows(const GemmProblem& p, const KernelConfig& kernel) {
  if (streams(kernel) || k_slices(kernel) > 1) return false;  // adds up in another order
  if (dequantises(kernel) && w4_groups_per_slab(p.w4) == 1 && !scales_with_codes(p.type_a, p.w4.zero_points))
    return promotes_slabs(kernel, p.w4.zero_points);                             // else rounds weights
  return !promotes(kernel) || !swapped(kernel) || !scales_along_k(p.scaling_a);  // else multiplies by scales in another order
}

CandidateVerdict verdict_before_prediction(const GemmProblem& p, const DeviceSpec& device, const PlanOptions& options, bool aligned,
                                           const KernelConfig& kernel) {
  if (kernel.type_a != p.type_a || kernel.type_b != p.type_b || kernel.layout_a != p.layout_a || kernel.layout_b != p.layout_b)
    return CandidateVerdict::wrong_type;
  if (excluded(options, kernel)) return CandidateVerdict::excluded_by_options;
  if (kernel.load == LoadPath::tma && !aligned) return CandidateVerdict::needs_aligned_operands;
  if ((is_grouped(p) && !computes_groups(kernel)) || (is_grouped_along_k(p) && !computes_groups_along_k(kernel)) ||
      (is_general(p) && !computes_general_groups(kernel)))
    return CandidateVerdict::no_groups;
  if (finds_scales(p) && !can_find_scales(kernel)) return CandidateVerdict::no_row_scales;
  const std::int64_t clusters = clusters_that_fit(device, kernel);
  if (clusters == 0) return CandidateVerdict::cluster_does_not_fit;
  if (options.determinism == Determinism::batch_invariant && !keeps_bits_of_rows(p, kernel)) return CandidateVerdict::excluded_by_options;
  if (streams(kernel)) {
    const bool fits = fits_streaming(kernel, p.m, p.k, strips_finished(tile_shape(p, kernel).tiles_n, clusters * cluster_size(kernel)));
    if (p.batch != 1 || (dequantises(kernel) && w4_groups_per_slab(p.w4) != 1) || !fits) return CandidateVerdict::few_rows_only;
  }
  const Shape shape = tile_shape(p, kernel);
  if (static_cast<Wide>(shape.tiles_m) * shape.tiles_n * shape.matrices > kMostTiles) return CandidateVerdict::too_many_tiles;
  if (shared_memory_layout(kernel).total_bytes > device.shared_memory_per_cta_bytes) return CandidateVerdict::shared_memory;
  return CandidateVerdict::slower;
}

// The cohort whose operands are fewest bytes. Each strip reads all that lies along it once; what lies across is read again with each block
// of `clusters` neighbouring clusters, which are finished at about the same time. Were a last strip as wide as the others, those blocks
// would be as square in elements as they can be. (2048 x 28672 x 4096, one H200, 25 November 2026: 484 instead of 662 MB of HBM in one
// strip of eight instead of one of seven and one of one; 1.4% faster alone, level at sustained clocks.)
std::int32_t thrifty_cohort(double clusters, double across_elems, double along_elems, std::int32_t across_clusters) {
  const double square = std::sqrt(clusters * along_elems / across_elems);
  const auto widest = static_cast<std::int32_t>(std::clamp(2 * std::ceil(square), 1.0, static_cast<double>(across_clusters)));
  const auto elems = [&](std::int32_t width) {
    const auto strips = static_cast<double>(ceil_div(across_clusters, width));
    return strips * along_elems + across_clusters * (width / clusters) * across_elems;
  };
  std::int32_t best = 1;
  for (std::int32_t width = 2; width <= widest; ++width)
    if (elems(width) < elems(best)) best = width;
  return best;
}

// Neighbours that are launched together share most where their block of tiles is square.
std::int32_t square_cohort(int clusters, double across_elems, double along_elems, std::int32_t across_clusters) {
  const auto elems = [&](int width) { return width * across_elems + static_cast<double>(clusters) / width * along_elems; };
  int best = 1;
  for (int width = 2; width <= std::min(clusters, across_clusters); width *= 2)
    if (elems(width) < elems(best)) best = width;
  return best;
}

// What lies across and along a strip of cohorts: elements of a cluster tile, and how many of them are side by side.
struct Strips {
  double across, along;
  std::int32_t most;
};
Strips strips_of(const KernelConfig& kernel, const SchedulerParams& s) {
  const double rows = kernel.tile_m * kernel.cluster_m, columns = kernel.tile_n * kernel.cluster_n;
  return s.raster == Rasterization::along_m ? Strips{columns, rows, clusters_n(s)} : Strips{rows, columns, clusters_m(s)};
}
std::int32_t thrifty_cohort(const DeviceSpec& device, const KernelConfig& kernel, const SchedulerParams& s) {
  const auto [across, along, most] = strips_of(kernel, s);
  return thrifty_cohort(std::min(clusters_that_fit(device, kernel), cluster_tiles(s)), across, along, most);
}

std::int32_t cohort_for(const GemmProblem& p, const DeviceSpec& device, const KernelConfig& kernel, const SchedulerParams& s) {
  const auto [across, along, most] = strips_of(kernel, s);
  constexpr std::int32_t kTogether = 4;  // requests that count as one, so of 16 places in a GPC as many each way
  const int together = neighbours(p, device, kernel, s);
  if (dealt_by_place(p, device, kernel, s)) return std::min(kTogether, most);
  return together > 1 ? square_cohort(together, across, along, most) : thrifty_cohort(device, kernel, s);
}

constexpr int kMostCtasInCluster = 8;  // that every Hopper promises to hold
std::int32_t largest_power_of_two(std::int32_t limit) {
  std::int32_t power = 1;
  while (power * 2 <= limit) power *= 2;
  return power;
}

// Split-K, stream-K and hybrid: how the tiles are cut.
void cut_in_k(const PlanOptions& options, std::int32_t slots, SchedulerParams& s) {
  const std::int32_t tiles = cluster_tiles(s);
  const std::int32_t most_pieces = std::max(1, s.k_tiles / s.min_k_tiles);
  if (s.kind == SchedulerKind::split_k) s.reduction = options.reduction.value_or(Reduction::workspace);
  if (s.reduction == Reduction::cluster)
    s.splits = options.splits > 0 ? options.splits : largest_power_of_two(std::clamp(slots / tiles, 2, kMostCtasInCluster));
  else if (s.kind == SchedulerKind::split_k)
    s.splits = options.splits > 0 ? options.splits : std::clamp(slots / tiles, std::min(2, most_pieces), most_pieces);
  if (options.lead > 0) s.lead = options.lead;
  if (!is_stream_k(s)) return;

  s.stream_k_ranges = static_cast<std::int32_t>(std::min<std::int64_t>(slots, static_cast<std::int64_t>(tiles) * most_pieces));
  s.stream_k_regions = std::max(1, options.stream_k_regions);
  if (s.k_tiles > 0) s.stream_k_tiles = tiles_to_cut(s.kind, tiles, s.stream_k_ranges);
}

// Strips of tiles are few and long; but in FP8 along M all the same. (One H200, 26 November 2026, in turn with cuBLASLt, two to four times:
// 4096 x 24576 x 1536 from 1.139 to 1.157 of it, 4096 x 7168 x 2048 1.098 to 1.102, 1024 x 32768 x 512 1.21 to 1.24, others of the suite
// from 1024 rows on level; bf16 from 512 rows on level.)
bool advances_along_m(const GemmProblem& p, const KernelConfig& kernel) {
  constexpr int kManyRows = 1024;
  return p.m >= p.n || (promotes(kernel) && p.batch == 1 && p.m >= kManyRows);
}

// One way to share out this problem's tiles: that of the options, or whole tiles.
SchedulerParams schedule_for(const GemmProblem& p, const DeviceSpec& device, const PlanOptions& options, const KernelConfig& kernel) {
  const Shape shape = tile_shape(p, kernel);
  SchedulerParams s;
  s.tiles_m = static_cast<std::int32_t>(shape.tiles_m);
  s.tiles_n = static_cast<std::int32_t>(shape.tiles_n);
  s.groups = static_cast<std::int32_t>(shape.matrices);
  s.k_tiles = p.epilogue.alpha == 0.0f ? 0 : static_cast<std::int32_t>(ceil_div(p.k, kernel.tile_k));
  s.cluster_m = kernel.cluster_m;
  s.cluster_n = kernel.cluster_n;

  const std::int64_t slots = clusters_that_fit(device, kernel);
  s.kind = cluster_tiles(s) <= slots * workers_per_cta(kernel) ? SchedulerKind::one_tile_per_cta : SchedulerKind::data_parallel;
  if (kernel.schedule == KernelSchedule::pingpong) s.kind = SchedulerKind::data_parallel;
  if (options.scheduler) s.kind = *options.scheduler;
  s.claim = options.claim.value_or(WorkClaim::fixed);
  s.min_k_tiles = std::max(1, options.min_k_tiles);
  cut_in_k(options, static_cast<std::int32_t>(slots), s);
  s.raster = options.raster.value_or(advances_along_m(p, kernel) ? Rasterization::along_m : Rasterization::along_n);
  s.cohort = cohort_for(p, device, kernel, s);
  return s;
}

// The schedule of groups, from that of the batch they were taken for. Some of their tiles take less time than others: over many rounds
// whoever is free takes the next, 1 to 3% faster than by turns; over few rounds drawing tickets costs more (one H200, 25 November 2026, 66
// sets of groups: the more rounds the better, level at 8, 4 to 14% slower at 3; with weights of 4 bits no faster, and up to 11% slower).
SchedulerParams for_groups(const GemmProblem& p, const DeviceSpec& device, const PlanOptions& options, const KernelConfig& kernel,
                           SchedulerParams s) {
  constexpr std::int32_t kManyRounds = 7;
  const Shape shape = tile_shape(p, kernel);
  const bool many = !dequantises(kernel) && cluster_tiles(s) >= kManyRounds * clusters_that_fit(device, kernel) &&
                    !places_suit_groups(p, device, kernel, s);
  s.tiles_m = static_cast<std::int32_t>(shape.tiles_m);
  s.groups = 1;
  // Whoever has fewer rows than a strip has them all in one: B is read once. So strips are as wide as suits a group that has all rows.
  if (s.raster == Rasterization::along_n) s.cohort = std::max(s.cohort, thrifty_cohort(device, kernel, s));
  if (s.kind == SchedulerKind::one_tile_per_cta) s.kind = SchedulerKind::data_parallel;
  if (s.kind == SchedulerKind::data_parallel && many) s.claim = options.claim.value_or(WorkClaim::ticket);
  if (s.kind == SchedulerKind::split_k) s.claim = WorkClaim::ticket;  // dealt out, tiles whose number is not known might stall
  if (is_stream_k(s)) {
    // Whatever the sizes, there may be that many.
    const std::int32_t slots = clusters_that_fit(device, kernel), tiles = cluster_tiles(s);
    const std::int64_t pieces = std::int64_t{tiles} * std::max(1, s.k_tiles / s.min_k_tiles);
    s.stream_k_ranges = static_cast<std::int32_t>(std::min<std::int64_t>(slots, pieces));
    const bool all = s.kind == SchedulerKind::stream_k || tiles < 2 * s.stream_k_ranges;
    s.stream_k_tiles = s.k_tiles == 0 ? 0 : all ? tiles : 2 * s.stream_k_ranges - 1;
  }
  return s;
}

// Groups whose tiles are computed whole: how much of K each has, the device knows.
bool in_whole_tiles(const GemmProblem& p) { return is_grouped_along_k(p) || is_general(p); }

// As many tiles as of a batch. Some have more of K than others: whoever is free takes the next.
SchedulerParams for_whole_tiles(const GemmProblem& p, const PlanOptions& options, const KernelConfig& kernel, SchedulerParams s) {
  s.kind = SchedulerKind::data_parallel;
  s.tiles_m = static_cast<std::int32_t>(tile_shape(p, kernel).tiles_m);
  s.claim = options.claim.value_or(WorkClaim::ticket);
  if (s.k_tiles > 0) s.k_tiles = static_cast<std::int32_t>(ceil_div(p.k, kernel.tile_k));
  return s;
}

// What the planner chooses by itself is right by construction; what the options force on it may not fit the problem.
Status check_forced(const SchedulerParams& s, const DeviceSpec& device, const KernelConfig& kernel) {
  // Checked apart, since the number of items would overflow.
  if (static_cast<std::int64_t>(cluster_tiles(s)) * s.splits > kMostItems) return check_scheduler(s, 1);
  if (static_cast<std::int64_t>(s.stream_k_tiles) * s.k_tiles > kMostStreamKTiles) return check_scheduler(s, s.stream_k_ranges);
  if (streams(kernel) && (split_tile_count(s) > 0 || s.claim == WorkClaim::ticket))
    return Error{ErrorCode::unsupported,
                 name(kernel) + " computes whole tiles, dealt out in fixed turn; leave the scheduler and the claim free"};
  if (split_tile_count(s) > 0 && !joins_pieces(kernel))
    return Error{ErrorCode::unsupported, name(kernel) + " cannot compute tiles in pieces: its " +
                                             std::to_string(accumulators_per_thread(kernel)) +
                                             " accumulators a thread leave no registers for it; take a smaller tile, or whole tiles"};
  if (s.reduction == Reduction::separate && !joins_in_slices(kernel))
    return Error{ErrorCode::unsupported, "pieces of " + name(kernel) +
                                             " cannot meet in slices: that takes a cooperative kernel of two consumer warpgroups at most, "
                                             "with aligned operands of contiguous K, "
                                             "with at most 64 accumulators a thread, or 16 where two CTAs share an SM"};
  if (s.reduction == Reduction::cluster) {
    if (s.splits > kMostCtasInCluster) return check_scheduler(s, 1);  // no cluster at all, whatever the kernel
    if (!joins_in_cluster(kernel) || !parts_fit(kernel, s.splits))
      return Error{ErrorCode::unsupported,
                   "pieces of " + name(kernel) + " cannot meet in a cluster of " + std::to_string(s.splits) +
                       ": that takes a cooperative kernel with aligned operands of contiguous K and without a cluster of its own, "
                       "with at most 128 accumulators a thread, 64 beside weights of 4 bits, whose ring of stages holds the parts"};
    if (launched_clusters_that_fit(device, kernel, s) == 0)
      return Error{ErrorCode::unsupported, device.name + " holds no cluster of " + std::to_string(s.splits) + " CTAs; take fewer splits"};
  }
  if (flag_count(s, kernel) > kMostFlags)
    return Error{ErrorCode::too_large, "the " + std::to_string(split_tile_count(s)) + " tiles in pieces of " + name(kernel) + " need " +
                                           std::to_string(flag_count(s, kernel)) + " flags; the workspace has " +
                                           std::to_string(kMostFlags) + ": use hybrid, which cuts fewer tiles, or larger tiles"};
  return check_scheduler(s, unit_count(s, device, kernel));
}

// Shorter pieces spend their time on filling and emptying the ring of stages.
constexpr int kLeastPieceElems = 256;

// The most pieces that fit in clusters of neighbours; 0: none.
std::int32_t pieces_of_neighbours(const GemmProblem& p, const DeviceSpec& device, const KernelConfig& kernel, SchedulerParams s) {
  const std::int32_t tiles = std::max(1, cluster_tiles(s));
  for (const int ctas : {8, 4}) {
    s.splits = cluster_places(device, ctas) * ctas / tiles;
    if (s.splits >= 2 && neighbours(p, device, kernel, s) == ctas) return s.splits;
  }
  return 0;
}

// The ways to cut the tiles that may be worth their reduction: where whole tiles leave SMs idle.
void add_cut_schedules(const GemmProblem& p, const DeviceSpec& device, const KernelConfig& kernel, std::vector<SchedulerParams>& all) {
  const SchedulerParams whole = all.front();  // a copy: `all` grows
  const std::int32_t slots = clusters_that_fit(device, kernel), tiles = cluster_tiles(whole);
  const std::int32_t least = std::max(1, kLeastPieceElems / kernel.tile_k), most_pieces = whole.k_tiles / least;
  if (most_pieces < 2 || kernel.load == LoadPath::threads || !joins_pieces(kernel)) return;
  const auto add = [&](SchedulerKind kind, std::int32_t splits) {
    SchedulerParams s = whole;
    s.kind = kind;
    s.min_k_tiles = least;
    PlanOptions cut;
    cut.splits = splits;
    cut_in_k(cut, slots, s);
    s.cohort = cohort_for(p, device, kernel, s);
    if (check_forced(s, device, kernel)) all.push_back(s);
  };
  const std::int32_t full = std::min(slots / tiles, most_pieces);
  std::vector<std::int32_t> pieces{full, full * 3 / 4, full / 2, full / 4};
  const std::int32_t near = std::min(pieces_of_neighbours(p, device, kernel, whole), most_pieces);
  if (std::find(pieces.begin(), pieces.end(), near) == pieces.end()) pieces.push_back(near);
  for (const std::int32_t splits : pieces)
    if (splits >= 2) add(SchedulerKind::split_k, splits);
  const auto add_meeting = [&](Reduction reduction, std::int32_t splits) {
    SchedulerParams s = whole;
    s.kind = SchedulerKind::split_k;
    s.reduction = reduction;
    s.splits = splits;
    s.min_k_tiles = least;
    s.cohort = cohort_for(p, device, kernel, s);
    const bool helps = splits <= most_pieces && tiles <= launched_clusters_that_fit(device, kernel, s);
    if (helps && check_forced(s, device, kernel)) all.push_back(s);
  };
  add_meeting(Reduction::cluster, 2);
  for (const std::int32_t splits : pieces)
    if (splits >= 2) add_meeting(Reduction::separate, splits);
  if (tiles < slots ? slots % tiles != 0 : tiles % slots != 0) add(tiles < slots ? SchedulerKind::stream_k : SchedulerKind::hybrid, 0);
}

// Of the schedules that a batch has: split-K would need a place in the workspace for every tile that there may be.
bool suits_groups(const SchedulerParams& s, const DeviceSpec& device, const KernelConfig& kernel) {
  return s.kind != SchedulerKind::split_k && check_forced(s, device, kernel).ok();
}

// Tiles made to fit one product's rows or columns (kernel_list.def) have been timed for nothing else: not for a batch, nor for groups of
// any size, but for those of FP8. Where they would be as fast as others by prediction, these are taken. Those whose width a group's rows
// choose have the factor that they were timed with in groups; one product takes more in them (candidates of 40, H200s, 29 November 2026).
double factor_of_untimed(const GemmProblem& p, const KernelConfig& kernel) {
  constexpr double kCaution = 1.15, kOneProduct = 1.08;
  constexpr int kHigh = 256;
  const auto fits = [](int side) { return !std::has_single_bit(static_cast<unsigned>(side)); };
  if (chooses_width(kernel)) return is_grouped(p) ? 1 : p.batch > 1 ? kCaution : kOneProduct;
  const bool fits_one_product = !promotes(kernel) && (fits(kernel.tile_m) || (kernel.tile_m == kHigh && fits(kernel.tile_n)));
  return p.batch > 1 && fits_one_product ? kCaution : 1;
}

// In the mean over what the sizes of groups may be.
PredictedTime predict_for_groups(const GemmProblem& p, const DeviceSpec& device, const KernelConfig& kernel, SchedulerParams s,
                                 const Calibration& calibration, double factor) {
  constexpr double kGainOfPlaces = 0.06;  // of the time that memory takes
  constexpr double PredictedTime::*kParts[] = {&PredictedTime::launch_us,    &PredictedTime::matrix_us, &PredictedTime::hbm_us,
                                               &PredictedTime::l2_us,        &PredictedTime::ramp_us,   &PredictedTime::exposed_epilogue_us,
                                               &PredictedTime::reduction_us, &PredictedTime::total_us,  &PredictedTime::waves,
                                               &PredictedTime::useful_share, &PredictedTime::busy_share};
  PredictedTime mean;
  const bool by_place = dealt_by_place(p, device, kernel, s) && kernel.tile_n <= kScaleBlockElems;
  for (const auto& [rows, weight] : likely_rows(p)) {
    const GemmProblem batch = as_batch(p, rows);
    s.tiles_m = static_cast<std::int32_t>(tile_shape(batch, kernel).tiles_m);
    const PredictedTime t = predict(batch, device, kernel, s, worker_count(s, device, kernel), calibration, factor, true);
    for (const auto part : kParts) mean.*part += weight * (t.*part);
  }
  if (by_place) {
    mean.total_us -= kGainOfPlaces * mean.hbm_us;
    mean.hbm_us -= kGainOfPlaces * mean.hbm_us;
  }
  return mean;
}

Error no_kernel(const GemmProblem& p, const PlanOptions& options, const std::vector<Candidate>& candidates) {
  const auto any = [&](CandidateVerdict v) {
    return std::any_of(candidates.begin(), candidates.end(), [v](const Candidate& c) { return c.verdict == v; });
  };
  const char* const left =
      any(CandidateVerdict::no_row_scales) ? " but some whose tiles are not 128 columns of rows-of-a, as scaling_d = 1x128 needs" : "";
  if (any(CandidateVerdict::excluded_by_options))
    return {ErrorCode::unsupported, "no kernel for " + describe(p) + " is left by the plan's options" +
                                        (options.kernel_name.empty() ? "" : " (kernel " + options.kernel_name + ")") + left +
                                        "; relax them, `sluice list` shows the kernels"};
  return {ErrorCode::unsupported, "no kernel of this build computes " + describe(p) + "; `sluice list` shows the kernels"};
}

// Before any kernel is looked at: options that have no meaning together, or for groups.
Status check_options(const PlanOptions& options, const GemmProblem& p) {
  const bool grouped = is_grouped(p);
  const auto wrong = [](const std::string& what) { return Error{ErrorCode::invalid_argument, what}; };
  const auto is = [&](SchedulerKind kind) { return options.scheduler == kind; };
  if (options.splits < 0 || options.stream_k_regions < 0 || options.min_k_tiles < 0)
    return wrong("splits = " + std::to_string(options.splits) + ", stream_k_regions = " + std::to_string(options.stream_k_regions) +
                 " and min_k_tiles = " + std::to_string(options.min_k_tiles) + " must not be negative; 0 leaves them free");
  if (options.splits > 0 && !is(SchedulerKind::split_k))
    return wrong("splits = " + std::to_string(options.splits) + " needs the scheduler split-k; choose it, or leave splits free");
  if (options.reduction && !is(SchedulerKind::split_k))
    return wrong(std::string("reduction = ") + to_string(*options.reduction) + " needs the scheduler split-k; choose it, or leave it free");
  if (options.determinism == Determinism::batch_invariant && options.scheduler && *options.scheduler > SchedulerKind::data_parallel)
    return wrong(std::string("determinism = batch-invariant needs whole tiles, which ") + to_string(*options.scheduler) +
                 " cuts; leave the scheduler free, or ask for deterministic");
  const bool stream_k = is(SchedulerKind::stream_k) || is(SchedulerKind::hybrid);
  if (options.stream_k_regions > 0 && !stream_k)
    return wrong("stream_k_regions = " + std::to_string(options.stream_k_regions) +
                 " needs the scheduler stream-k or hybrid; choose one, or leave regions free");
  if (options.min_k_tiles > 0 && !stream_k && !is(SchedulerKind::split_k))
    return wrong("min_k_tiles = " + std::to_string(options.min_k_tiles) +
                 " needs the scheduler split-k, stream-k or hybrid; choose one, or leave it free");
  if (options.lead < -1 || (options.lead != 0 && !is(SchedulerKind::split_k)))
    return wrong("lead = " + std::to_string(options.lead) +
                 " must be a number of k-tiles or -1 for none, and needs the scheduler split-k; choose it, or leave the lead free");
  if (grouped && is(SchedulerKind::one_tile_per_cta))
    return wrong("one-tile-per-cta needs tiles that can be counted, and only the device knows those of groups; take data-parallel");
  if (grouped && options.reduction && *options.reduction != Reduction::workspace)
    return wrong(std::string("reduction = ") + to_string(*options.reduction) +
                 " needs a CTA for each piece, and only the device knows how many groups have; their pieces meet in the workspace");
  if (finds_scales(p) && options.reduction && *options.reduction != Reduction::workspace)
    return wrong(std::string("reduction = ") + to_string(*options.reduction) +
                 " shares out a tile's columns, and scaling_d = 1x128 needs 128 of them in one place; take workspace, or leave it free");
  if (in_whole_tiles(p) && options.scheduler && !is(SchedulerKind::data_parallel))
    return wrong(std::string("scheduler = ") + to_string(*options.scheduler) + " with " +
                 (is_general(p) ? "general groups, whose tiles" : "groups along k, whose k-tiles") +
                 " only the device can count: their tiles are computed whole; take data-parallel");
  if (grouped && options.stream_k_regions > 1)
    return wrong("stream_k_regions = " + std::to_string(options.stream_k_regions) +
                 " must divide the tiles, and only the device knows how many groups have; leave regions free");
  if (grouped && is(SchedulerKind::split_k) && options.claim == WorkClaim::fixed)
    return wrong("pieces of groups' tiles dealt out in fixed turn could wait for one that has not started; claim by ticket");
  return Nothing{};
}

Status check_tile_count(const GemmProblem& p) {
  // A limit that does not depend on the kernel list. Kernels with smaller tiles drop out one by one before it.
  const Wide most = static_cast<Wide>(ceil_div(p.m, 16) + 1) * (ceil_div(p.n, 64) + 1) * row_matrices(p);
  if (most > kMostTiles)
    return Error{ErrorCode::too_large, "m x n x batch = " + std::to_string(p.m) + " x " + std::to_string(p.n) + " x " +
                                           std::to_string(p.batch) +
                                           " makes more than 2^29 tiles of 16 x 64; split the product along m, n or the batch"};
  return Nothing{};
}

const Calibration& calibration_of(const PlanOptions& options) {
  return options.calibration ? *options.calibration : built_in_calibration();
}

}  // namespace

bool PlanOptions::operator==(const PlanOptions& other) const {
  const auto values = [](const PlanOptions& options) {  // stops compiling when there are more of them
    const auto& [determinism, schedule, scheduler, raster, claim, reduction, splits, stream_k_regions, min_k_tiles, lead, kernel_name,
                 tile_m, tile_n, calibration, keep_candidates] = options;
    return std::tie(determinism, schedule, scheduler, raster, claim, reduction, splits, stream_k_regions, min_k_tiles, lead, kernel_name,
                    tile_m, tile_n, calibration_of(options), keep_candidates);
  };
  return values(*this) == values(other);
}

Result<Plan> plan(const GemmProblem& problem, const DeviceSpec& device, const PlanOptions& options) {
  const ProfilerRange range("sluice plan");
  Result<GemmProblem> checked = validate(problem);
  if (!checked) return checked.error();
  const GemmProblem& p = *checked;
  if (Status s = validate(device); !s) return s.error();
  if (Status s = check_options(options, p); !s) return s.error();
  if (Status s = check_tile_count(p); !s) return s.error();
  if (options.calibration)
    if (Status s = validate(*options.calibration); !s) return Error{s.error().code, "calibration: " + s.error().message};
  const Calibration& calibration = calibration_of(options);

  Plan result;
  result.problem = p;
  result.device = device;
  if (is_empty(p)) return result;

  const GemmProblem balanced = as_batch(p);
  const bool aligned = is_general(p) || operands_aligned(p);  // validate() has seen to it
  std::vector<Candidate> candidates;
  candidates.reserve(kernel_list().size());
  std::vector<SchedulerParams> schedules;
  Status refusal = Nothing{};  // of a schedule that the options ask for: what they say wrongly before what a kernel has not
  for (const KernelConfig& kernel : kernel_list()) {
    Candidate candidate{.kernel = kernel, .verdict = verdict_before_prediction(p, device, options, aligned, kernel)};
    if (candidate.verdict != CandidateVerdict::slower) {
      candidates.push_back(candidate);
      continue;
    }
    schedules.assign(1, schedule_for(balanced, device, options, kernel));
    const auto own = [&](const SchedulerParams& s) {
      return is_grouped(p) ? for_groups(p, device, options, kernel, s) : in_whole_tiles(p) ? for_whole_tiles(p, options, kernel, s) : s;
    };
    if (Status s = check_forced(own(schedules.front()), device, kernel); !s) {
      if (refusal || refusal.error().code == ErrorCode::unsupported) refusal = s;
      candidate.verdict = CandidateVerdict::excluded_by_options;
      candidates.push_back(candidate);
      continue;
    }
    if (!options.scheduler && !options.claim && !in_whole_tiles(p) && options.determinism != Determinism::batch_invariant)
      add_cut_schedules(p, device, kernel, schedules);
    if (finds_scales(p)) std::erase_if(schedules, [](const SchedulerParams& s) { return s.reduction != Reduction::workspace; });
    const double factor = kernel_factor(calibration, kernel) * factor_of_untimed(p, kernel);
    for (SchedulerParams& schedule : schedules) {
      candidate.scheduler = own(schedule);
      if (is_grouped(p) && !options.scheduler && !suits_groups(candidate.scheduler, device, kernel)) continue;
      if (is_grouped(p) || is_general(p)) {
        candidate.predicted = predict_for_groups(p, device, kernel, schedule, calibration, factor);
      } else {
        const int workers = worker_count(schedule, device, kernel);
        candidate.predicted = predict(balanced, device, kernel, schedule, workers, calibration, factor);
        if (options.lead == 0)
          candidate.scheduler.lead = schedule.lead = lead_of_last_piece(candidate.predicted, calibration, kernel, schedule);
        if (options.lead == 0 && schedule.lead > 0)  // what is predicted so far is of equal pieces
          candidate.predicted = predict(balanced, device, kernel, schedule, workers, calibration, factor);
      }
      candidates.push_back(candidate);
    }
  }
  compare_as_learnt(calibration, p, device, candidates);
  count_power(p, device, candidates);
  // Those that can run first, fastest first; ties go to the earlier line of the kernel list.
  std::stable_sort(candidates.begin(), candidates.end(), [](const Candidate& x, const Candidate& y) {
    const bool runs_x = x.verdict == CandidateVerdict::slower, runs_y = y.verdict == CandidateVerdict::slower;
    if (runs_x != runs_y) return runs_x;
    return runs_x && x.predicted.total_us < y.predicted.total_us;
  });
  if (candidates.empty() || candidates.front().verdict != CandidateVerdict::slower)
    return refusal ? no_kernel(p, options, candidates) : refusal.error();

  Candidate& best = candidates.front();
  best.verdict = CandidateVerdict::chosen;
  result.kernel = best.kernel;
  result.scheduler = best.scheduler;
  result.predicted = best.predicted;
  result.worker_count = worker_count(best.scheduler, device, best.kernel);
  result.grid_ctas = grid_ctas(result.worker_count, best.kernel);
  result.shared_memory_bytes = streams(best.kernel)
                                   ? static_cast<int>(streaming_shared_bytes(best.kernel, p.m, best.scheduler.k_tiles,
                                                                             strips_finished(best.scheduler.tiles_n, result.grid_ctas)))
                                   : shared_memory_layout(best.kernel).total_bytes;
  result.workspace_bytes = is_general(p) ? static_cast<std::size_t>(kFlagBytes + prepared_bytes(p.batch))
                                         : workspace_bytes(p, device, best.kernel, best.scheduler);
  if (options.keep_candidates) result.candidates = std::move(candidates);
  return result;
}

}  // namespace sluice
