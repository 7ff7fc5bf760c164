#include "planner/cost_model.hpp"

#include <algorithm>
#include <cmath>

#include "core/groups.hpp"
#include "core/kernel_layout.hpp"
#include "core/launched_clusters.hpp"
#include "core/occupancy.hpp"
#include "core/streaming_layout.hpp"
#include "planner/cost/groups.hpp"
#include "planner/cost/launch.hpp"
#include "planner/cost/memory.hpp"
#include "planner/cost/overlap.hpp"
#include "planner/cost/pieces.hpp"
#include "planner/cost/streaming.hpp"
#include "planner/cost/tile_cycles.hpp"
#include "scheduler/tile_order.hpp"

namespace sluice {
namespace {

// Main loops of a whole tile that the busiest of `units` runs one after the other.
double rounds_of(const SchedulerParams& s, double units) {
  const double tiles = cluster_tiles(s);
  if (s.kind == SchedulerKind::split_k) return std::ceil(tiles * s.splits / units) / s.splits;
  if (s.stream_k_tiles > 0) return std::max(tiles / units, 1.0 / s.k_tiles);
  return std::ceil(tiles / units);
}

// Of 16-bit operands: consumers begin anew in every round, which pingpong hides but for the hand-over; and rows of a tile that are no
// multiple of 64 bytes take more boxes to store. (One H100, 25 November 2026: candidates of 540 products; beside 0.2 us of 2.5 it tells.)
double small_change_us(const KernelConfig& kernel, double rounds) {
  constexpr double kRound = 0.3, kRoundOfPingpong = 0.1, kOddColumns = 0.2;
  constexpr int kEvenColumns = 32;
  if (promotes(kernel) || dequantises(kernel) || streams(kernel)) return 0;
  const double round = kernel.schedule == KernelSchedule::pingpong ? kRoundOfPingpong : kRound;
  return round * std::max(0.0, std::ceil(rounds) - 1) + (kernel.tile_n % kEvenColumns == 0 ? 0 : kOddColumns);
}

// Stores of a cooperative kernel that its tensor cores wait for. Of FP8's three consumer warpgroups two multiply while one stores (one
// H200, 24 November 2026, all candidates of the suite fp8), and tiles of 256 rows have room to stage all of one (one H200, 28 November, in
// turn with cuBLASLt: up to K = 2048 they are 2 to 5% faster than those of 192, from 4096 on 1 to 5% slower; groups were not asked). In 16
// bits the next tile's operands come while one is stored, so that stores in between count half where the ring holds much of a tile (H200s
// and H100s, 26 November 2026, candidates of 627 random products: 645 x 20288 x 368 in 128 x 192, five rounds, 25.6 us, where 32.7 were
// predicted; groups were not asked).
double exposed_stores(const KernelConfig& kernel, double rounds, double k_tiles, bool of_groups) {
  constexpr double kOfThree = 0.5, kStaged = 0.72, kHidden = 0.5, kMuch = 0.25;
  constexpr int kStagedRows = 256, kShortKTiles = 16;
  const bool staged = kernel.tile_m >= kStagedRows && k_tiles <= kShortKTiles && !of_groups;
  if (promotes(kernel)) return rounds * (consumer_warpgroups(kernel) > 2 ? kOfThree : staged ? kStaged : 1);
  if (dequantises(kernel) || of_groups) return rounds;
  const double held = std::min(1.0, shared_memory_layout(kernel).stages / std::max(1.0, kMuch * k_tiles));
  return rounds - kHidden * held * std::max(0.0, rounds - 1);
}

// How long the main loops take.
double overlap_of_parts(const PredictedTime& t, const Calibration& c) {
  return overlap({t.matrix_us, t.hbm_us, t.l2_us}, c.overlap_exponent);
}

}  // namespace

PredictedTime predict(const GemmProblem& p, const DeviceSpec& device, const KernelConfig& kernel, const SchedulerParams& s, int workers,
                      const Calibration& c, double kernel_factor, bool of_groups) {
  const double clocks_per_us = device.clock_ghz * 1e3;
  const double cluster = cluster_size(kernel), tiles = cluster_tiles(s), k_tiles = s.k_tiles;
  const double places = cluster_places(device, kernel);
  // Pingpong's two workers share one set of tensor cores: rounds are counted in tiles of a CTA, whoever computes them.
  const double units = std::min(static_cast<double>(workers) / workers_per_cta(kernel), places * kernel.ctas_per_sm);
  const double rounds = rounds_of(s, units);
  const double matrix_factor = of_groups ? matrix_factor_of_groups(kernel, kernel_factor, rounds) : kernel_factor;
  const double factor =
      of_groups ? memory_factor_of_groups(kernel, kernel_factor, rounds) : memory_factor_of_product(kernel, kernel_factor, rounds);

  PredictedTime t;
  t.waves = tiles / units;
  t.busy_share = tiles * cluster / (rounds_of(s, std::min(units, places)) * device.sm_count);
  t.useful_share = static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.batch) /
                   (static_cast<double>(s.tiles_m) * kernel.tile_m * s.tiles_n * kernel.tile_n * s.groups);

  const RowShares rows = of_groups && fetches_blocks_of_rows(kernel) ? shares_with_rows(p, kernel) : RowShares{};
  const TileCycles tile = tile_cycles(c, p, device, kernel, k_tiles, rounds, rows);
  double sm_clk = rounds * overlap({tile.compute, tile.ingest}, c.overlap_exponent);
  if (kernel.ctas_per_sm > 1)  // CTAs of an SM share its rates, but hide each other's waits
    sm_clk = std::max(rounds_of(s, places) * std::max(tile.multiply, tile.ingest), rounds * tile.compute);
  if (streams(kernel)) sm_clk = has_rings(kernel) ? rings_clk(c, p, kernel, s, units) : streaming_clk(p, kernel, s, units);
  sm_clk = slices_clk(kernel, s, rounds, sm_clk);
  // Weights of 4 bits: ranges that begin anywhere cost less (candidates of 35 products with 16 to 256 rows, one H100, 27 November 2026),
  // and beside many rows SMs that rest leave the others nothing (one H200, 24 November, candidates of 21 products with 128 to 1024 rows).
  constexpr double kRangesOfCodes = 1.03;
  const bool codes = dequantises(kernel) && !of_groups, codes_for_many = codes && kernel.tile_m >= 128;
  if (s.stream_k_tiles > 0) sm_clk *= codes ? kRangesOfCodes : c.stream_k_factor;
  const double sm_us = sm_clk / clocks_per_us;
  // The longer the tensor cores are busy, and the more of them, the lower the clock that the power limit allows.
  const double power = c.throttle_factor * (1 / device.sustained_fraction - 1) * (1 - std::exp(-sm_us / c.throttle_us));
  t.matrix_us = matrix_factor * column_scales_factor(p, kernel) * sm_us * (1 + power * (codes_for_many ? 1 : std::min(1.0, t.busy_share)));

  const double ab = size_bytes(p.type_a), d = size_bytes(p.type_d);
  const double m = static_cast<double>(p.m), n = static_cast<double>(p.n), batch = static_cast<double>(p.batch);
  const double k = k_tiles > 0 ? static_cast<double>(p.k) : 0.0;
  const double reads_c = p.epilogue.beta != 0.0f ? 1 : 0;
  const double bytes_b = k_tiles > 0 ? static_cast<double>(matrix_bytes_b(p)) : 0.0;
  const double input_bytes = (m * k * ab + bytes_b) * batch, output_bytes = m * n * batch * d * (1 + reads_c);
  const double again = batch > 1 ? 0 : bytes_fetched_again(device, s, m * k * ab, bytes_b);
  // The more of a tile a range is, the longer neighbours are near each other. Those of a hybrid schedule wait apart, below.
  const double apart = s.kind == SchedulerKind::hybrid ? 0 : std::max(0.0, 1 - rounds);
  const double broken = of_groups ? 0 : share_of_broken_lines(p, kernel) * m * n * batch * d;
  t.hbm_us = hbm_us(c, device, input_bytes + output_bytes + broken + apart * again, factor);
  t.hbm_us += missing_sms_us(kernel, t);
  if (has_rings(kernel)) {
    t.hbm_us *= rings_on_slow_memory(c, device, p);
    t.hbm_us += factor * rings_tail_us(p, kernel, s, units, t.hbm_us / factor, clocks_per_us);
  }
  // Rows outside the matrix come from nowhere.
  const double fetched = streams(kernel) ? fetches_of_rows(kernel, s, units) * m * k * ab + bytes_b
                                         : tiles * k_tiles * kernel.tile_k *
                                               (std::min<double>(kernel.tile_m * kernel.cluster_m, m) * rows.fetched * ab +
                                                std::min<double>(kernel.tile_n * kernel.cluster_n, n) *
                                                    (p.n > 0 && p.k > 0 ? bytes_b / (n * static_cast<double>(p.k)) : ab));
  // (By place 1024 x 1280 x 4096 asks in 128 x 80 for 0.41 of what its CTAs fetch, as eights of 4 x 2 would.)
  const int together = dealt_by_place(p, device, kernel, s) ? 8 : neighbours(p, device, kernel, s);
  // (Pairs gain some 3%, no more than the error of this.)
  const double requests = together > 2 ? requests_of_neighbours(kernel, s, together) : share_of_requests(p, kernel, s, rounds);
  t.l2_us = factor * requests * fetched / (device.l2_gb_per_s * c.l2_factor * 1e3);

  const double crowded = std::max(0.0, t.l2_us / std::max(t.matrix_us, 1e-9) - c.traffic_free_share);
  t.matrix_us *= 1 + c.traffic_throttle_factor * (1 - std::exp(-sm_us / c.traffic_throttle_us)) * std::min(1.0, crowded);

  for (double* part : {&t.matrix_us, &t.hbm_us, &t.l2_us})
    *part *= clusters_of_pieces_factor(kernel, s) * (of_groups ? 1 : lone_row_factor(kernel, s, t.waves));

  t.launch_us = factor * device.launch_us * c.launch_factor;
  t.ramp_us = factor * c.ramp_us;
  // Constant operands fill the ring before the predecessor has ended, unless a kernel keeps its successor out (two CTAs an SM).
  if ((p.constant_a || p.constant_b) && kernel.ctas_per_sm == 1 && kernel.load == LoadPath::tma) {
    const double constant_bytes = (p.constant_a ? m * k * ab : 0) + (p.constant_b ? bytes_b : 0);
    t.launch_us -= std::min(t.launch_us, c.early_fetch_us * constant_bytes / std::max(1.0, m * k * ab + bytes_b));
  }
  t.launch_us -= std::min(t.launch_us, of_groups ? 0 : early_launch_us(p, kernel, s, rounds, t.busy_share));
  t.launch_us += of_groups ? 0 : late_launch_us(p, kernel, s, rounds, t) + same_columns_us(kernel, s);
  const double store_us = kernel.tile_m * kernel.tile_n * d / c.store_bytes_per_clk_per_sm / clocks_per_us;
  const bool pingpong = kernel.schedule == KernelSchedule::pingpong;
  t.exposed_epilogue_us =
      factor * store_us *
      (pingpong ? c.exposed_stores_pingpong : exposed_stores(kernel, std::ceil(rounds), k_tiles, of_groups) * c.exposed_stores_cooperative);
  if (!of_groups) t.exposed_epilogue_us += small_change_us(kernel, rounds) + slices_meet_us(p, kernel);
  const double main_loops_us = overlap_of_parts(t, c);
  t.reduction_us = reduction_us(c, kernel, s, clocks_per_us);
  t.reduction_us -=
      std::min(t.reduction_us, hidden_by_lead_us(c, kernel, s, main_loops_us, clocks_per_us) + early_successor_us(s, t.busy_share));
  if (again > 0 && s.kind == SchedulerKind::hybrid)
    t.reduction_us += ranges_wait_us(s, hbm_us(c, device, input_bytes + output_bytes + again, factor), t.matrix_us);
  t.total_us = t.launch_us + main_loops_us + t.ramp_us + t.exposed_epilogue_us + t.reduction_us;
  return t;
}

std::int32_t lead_of_last_piece(const PredictedTime& equal, const Calibration& c, const KernelConfig& kernel, const SchedulerParams& s) {
  const bool at_once = equal.waves * s.splits < 1.0001;
  if (s.kind != SchedulerKind::split_k || s.splits < 2 || s.reduction != Reduction::workspace || k_slices(kernel) > 1 || !at_once) return 0;
  const double wanted = std::round(kLeadUs / std::max(stage_of_piece_us(s, overlap_of_parts(equal, c)), 1e-9));
  // No longer than half a share: stages that are predicted too short would make one piece of all.
  const std::int32_t most = std::min(s.k_tiles / s.splits / 2, s.k_tiles - s.splits * s.min_k_tiles);
  return static_cast<std::int32_t>(std::min<double>(wanted, std::max(0, most)));
}

}  // namespace sluice
