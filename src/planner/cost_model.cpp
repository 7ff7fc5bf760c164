#include "planner/cost_model.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/groups.hpp"
#include "core/kernel_layout.hpp"
#include "core/launched_clusters.hpp"
#include "core/load_boxes.hpp"
#include "core/occupancy.hpp"
#include "core/streaming_layout.hpp"
#include "core/tile_parts.hpp"
#include "scheduler/tile_order.hpp"
#include "scheduler/workspace.hpp"

namespace sluice {
namespace {

constexpr double kDepthBytes = 32;  // of K in a wgmma

// Cycles that a wgmma of 64 rows by q columns by 32 bytes of K takes at the tensor cores' rate, or at the 128 bytes a cycle with which
// shared memory hands out P (64 rows of 32 bytes) and Q, whichever is more.
// P in registers is not read, but each of a warp's lanes must have made its numbers from codes of 4 bits: a quarter of a unit of
// kernel/mainloop/dequantising_consumer.cuh, whose instructions one after the other are what a scheduler issues. Their number is that of
// the kernels with which the calibration's factors were measured; it changes with those only. Beside activations of 8 bits
// (lookup_consumer.cuh) a group of 128 is four steps: 88 integer instructions, which take two cycles each, and some 20 that are not hidden
// behind them (counted in the kernels' code, not timed).
double wgmma_cycles(const DeviceSpec& device, const KernelConfig& kernel) {
  constexpr double kSharedMemoryBytesPerClk = 128, kInstructionsOfUnit = 104, kLookupCycles = 196, kSteps = 4;
  const int q = tile_q(kernel);
  const double multiply = kWgmmaRows * q * kDepthBytes / device.flops_per_clk_per_sm;  // that of 16-bit operands, 2 bytes each
  if (dequantises(kernel)) return std::max(multiply, (is_fp8(kernel.type_a) ? kLookupCycles : kInstructionsOfUnit) / kSteps);
  const double read = (kWgmmaRows + q) * kDepthBytes / kSharedMemoryBytesPerClk;
  return std::max(multiply, read);
}

// Times that overlap, but not perfectly: between their maximum and their sum.
double overlap(std::initializer_list<double> parts, double exponent) {
  double sum = 0;
  for (double part : parts) sum += std::pow(part, exponent);
  return std::pow(sum, 1 / exponent);
}

double stage_overhead_clk(const Calibration& c, const KernelConfig& kernel) {
  if (kernel.schedule == KernelSchedule::pingpong) return c.stage_overhead_clk_pingpong;
  return consumer_warpgroups(kernel) == 1 ? c.stage_overhead_clk_one_consumer : c.stage_overhead_clk_cooperative;
}

// What one CTA costs its SM over a work tile: the multiplications with and without what surrounds them, and the bytes coming in.
struct TileCycles {
  double multiply = 0;
  double compute = 0;
  double ingest = 0;  // the bytes, or the copy engine's boxes
};
// Rows of a CTA's boxes, of those of the last tile, that lie outside of the matrix.
std::int64_t rows_outside(const FetchedOperand& operand, const LoadBoxes& boxes) {
  if (boxes.ends_early) return 0;
  const std::int64_t rest = operand.vectors % operand.tile_vectors,
                     rows = rest == 0 ? std::min<std::int64_t>(operand.vectors, operand.tile_vectors) : rest;
  const std::int64_t fetched = operand.block_rows > 0 ? (rows + operand.block_rows - 1) / operand.block_rows * operand.block_rows
                                                      : std::int64_t{boxes.vectors} * operand.sharers;
  return std::clamp<std::int64_t>(fetched - rows, 0, boxes.vectors);
}
// Rows of 128 bytes that do not begin with a line of L2 are asked for in two parts, which tells behind the first ring of stages, that is
// fetched while nobody waits; and those of slabs behind the end of K, where a k-tile has several, are outside as well, but only of the last
// one. (One H100, 25 November 2026: candidates of 350 products in bf16, 80 of them with such rows. 1261 x 640 x 2664 in 128 x 64 takes 19.7
// us, 800 cycles a k-tile; 7923 x 512 x 10888 in 128 x 256 200, with K = 10880 150. 18 x 64 x 832 in 8 x 64 with stages of 256 2.5 us,
// where 3.5 were predicted with such rows as slow as any: H200s and H100s, 26 November 2026, candidates of 427 random products.)
double odd_rows_clk(const Calibration& c, const GemmProblem& p, const KernelConfig& kernel, const FetchedOperand& operand, int row_elems,
                    double rounds) {
  constexpr double kClkPerRowAstride = 5, kShareBehindEnd = 0.2;
  const double rows = static_cast<double>(std::min<std::int64_t>(operand.vectors, operand.tile_vectors)) / operand.sharers;
  const double astride = 1 - static_cast<double>(std::gcd(operand.pitch_bytes, std::int64_t{kSwizzleBytes})) / kSwizzleBytes;
  const std::int64_t slabs = kernel.tile_k / row_elems, slabs_of_k = (p.k + row_elems - 1) / row_elems;
  const double k_tiles = std::max(1.0, std::ceil(static_cast<double>(p.k) / kernel.tile_k));
  const double behind_ring = std::max(0.0, 1 - shared_memory_layout(kernel).stages / (k_tiles * std::max(1.0, rounds)));
  const double slabs_behind = k_tiles * static_cast<double>(slabs) - static_cast<double>(slabs_of_k);
  return rows * (static_cast<double>(slabs) * astride * behind_ring * kClkPerRowAstride +
                 kShareBehindEnd * slabs_behind / k_tiles * c.issue_clk_per_row_outside);
}
// Where a CTA has one tile, it may be a last one, for which the others wait; of several, few are. Beside weights of 4 bits, whose stages
// take longer, less than 8 rows outside are not seen (one H200, 27 November 2026: one row takes 0.93 of the time of eight in 57344 x 8192).
double stage_issue_clk(const Calibration& c, const GemmProblem& p, const KernelConfig& kernel, double rounds) {
  constexpr double kRowsUnseen = 8;
  const int row_elems = kSwizzleBytes / size_bytes(p.type_a);
  double clk = c.issue_clk_per_stage;
  const auto add = [&](const FetchedOperand& operand) {
    const LoadBoxes boxes = load_boxes(operand, kernel.tile_k, row_elems, p.k, p.batch);
    const std::int64_t tiles = std::max<std::int64_t>(1, (operand.vectors + operand.tile_vectors - 1) / operand.tile_vectors);
    const double last = rounds > 1 ? 1 / static_cast<double>(tiles) : 1;
    const double outside = operand.k_major ? static_cast<double>(rows_outside(operand, boxes)) * last
                                           : std::max(0.0, boxes.vectors - static_cast<double>(operand.vectors));
    const int in_tile = operand.block_rows > 0 ? operand.tile_vectors / operand.sharers / boxes.vectors : 1;
    const double seen = dequantises(kernel) ? std::floor(outside / kRowsUnseen) * kRowsUnseen : outside;
    clk += (boxes.whole_tiles ? 1 : boxes.slabs * in_tile) * c.issue_clk_per_box + seen * boxes.slabs * c.issue_clk_per_row_outside;
    if (operand.k_major) clk += odd_rows_clk(c, p, kernel, operand, row_elems, rounds);
  };
  add(fetched_a(p, kernel));
  if (dequantises(kernel))
    clk += static_cast<double>(kernel.tile_n) / kW4BlockColumns * c.issue_clk_per_box;
  else
    add(fetched_b(p, kernel));
  return clk;
}
// Of the rows of a matrix's tiles, the share to fetch, in blocks of 64 that have rows, and the share that a warpgroup multiplies one after
// the other. CTAs of a cluster take as long as the first. In FP8, what a warpgroup promotes takes no less time because another one rests;
// alone it has nobody whose multiplications hide that (one H200, 24 November 2026: 256 groups of 128 x 512 x 7168 in 256 x 128 take 336 us,
// in 128 x 128 310). Where rows are shared out evenly, another tile has them to spare, and nobody is alone (another H200, 28 November 2026:
// 32 x about 204 x 6144 x 7168 in 192 x 128 651 us to 616).
struct RowShares {
  double fetched = 1, multiplied = 1;
};
RowShares shares_with_rows(const GemmProblem& p, const KernelConfig& kernel) {
  constexpr double kAlone = 1.5, kEven = 1.2;
  const std::int64_t cluster_rows = std::int64_t{kernel.tile_m} * kernel.cluster_m, whole = p.m / cluster_rows;
  const std::int64_t rest = std::min<std::int64_t>(p.m % cluster_rows, kernel.tile_m), step = rows_of_step(kernel),
                     block = rows_of_block(kernel);
  const auto in_whole = [rest](std::int64_t unit) { return (rest + unit - 1) / unit * unit; };
  const auto tiles = static_cast<double>(whole + (rest > 0 ? 1 : 0)), rows = static_cast<double>(in_whole(step));
  const auto share = [&](double of_last) { return (static_cast<double>(whole) + of_last) / tiles; };
  const double fetched = share(static_cast<double>(in_whole(block)) / kernel.tile_m);
  if (!promotes(kernel)) return {fetched, share(rows / kernel.tile_m)};
  const int own = blocks_per_warpgroup(kernel) * kWgmmaRows;
  const bool is_lower = rest <= own && sharing_warpgroups(kernel) > 1;
  const double alone = !is_lower ? 1 : evens_out_rows(kernel) && whole > 0 ? kEven : kAlone;
  return {fetched, share(alone * std::min(1.0, rows / own))};
}

// FP8, 256 columns: halves of the tile are multiplied and promoted in turn, which costs tensor cores more than others.
bool is_widest(const KernelConfig& kernel) { return promotes(kernel) && kernel.tile_n >= 2 * kScaleBlockElems; }

constexpr double kFewRounds = 4;  // of groups

// Small factors are those of few tiles an SM, or of products that the tensor cores bind; groups have many tiles, and where they wait for
// memory, it is no faster for it (the same day, 10 sets of groups with 31 to 136 rows in FP8, 4 with 20 rows in bf16). Beside weights of 4
// bits groups that wait for memory have few rows, and other kernels.
double memory_factor_of_groups(const KernelConfig& kernel, double factor, double rounds) {
  // FP8 again when the warp that fetches scales had become faster: one H100, 28 November 2026, candidates of 52 sets.
  constexpr double kSwapped = 1.25, kPingpong = 1.15, kWide = 1.07;
  // Beside short boxes, the same day, an H200, 4 sets (64 x about 99 x 4096 x 7168 in 128 x 256 500 us, in 128 x 128 490; 1.045 before).
  constexpr double kWidest = 1.07;
  const bool pingpong = kernel.schedule == KernelSchedule::pingpong;
  if (dequantises(kernel)) return factor;
  if (!promotes(kernel)) {
    // In bf16 again, the same day, two H200s, candidates of 22 sets: 32 x about 20 x 6144 x 7168 in 128 x 80 672 and in 64 x 96 659 us, 6 x
    // about 1043 x 7168 x 3072 in 128 x 184 449 and in 128 x 192 432.
    // Pairs that share B of 128 x 128: the same day, another H200, 12 sets (32 x about 204 x 7168 x 3072 589 us, in 128 x 192 571 and 584).
    constexpr double kOddWidth = 1.03, kSquarePair = 1.03;
    constexpr int kEvenColumns = 64, kWideColumns = 128;
    const bool odd = kernel.tile_n > kWideColumns && kernel.tile_n % kEvenColumns != 0;
    const bool square_pair = kernel.tile_m == kernel.tile_n && kernel.cluster_m > 1 && rounds > kFewRounds;
    return std::max(factor, pingpong ? 0.95 : 0.97) * (odd ? kOddWidth : square_pair ? kSquarePair : 1);
  }
  if (is_widest(kernel)) return kWidest;
  return std::max(factor, swapped(kernel) ? kSwapped : pingpong ? kPingpong : kernel.tile_n > kScaleBlockElems ? kWide : 1);
}

// So it is for one product where CTAs of FP8 pingpong have had time to get out of step (one H100, 25 November 2026: 1024 x 32768 x 512 in
// 128 x 64, 31 rounds, 52 us where 41 were predicted; 128 x 32768 x 512, four rounds, as predicted).
double memory_factor_of_product(const KernelConfig& kernel, double factor, double rounds) {
  constexpr double kRoundsInStep = 8;
  const bool drifts = promotes(kernel) && kernel.schedule == KernelSchedule::pingpong && rounds > kRoundsInStep;
  return drifts ? memory_factor_of_groups(kernel, factor, rounds) : factor;
}

// Large tiles are as fast for groups as for one product. Those of 256 rows are a little faster beside others than their factor says, to
// which products of many rounds have brought it, where a set is only a few rounds of them (the same 52 sets; contiguous ones again on an
// H200).
double matrix_factor_of_groups(const KernelConfig& kernel, double factor, double rounds) {
  constexpr int kLargeRows = 192;
  constexpr double kOfTwo = 0.88, kOfThree = 1.02;
  if (is_widest(kernel)) return factor;
  if (!promotes(kernel) || kernel.tile_m < kLargeRows) return memory_factor_of_groups(kernel, factor, rounds);
  return rounds > kFewRounds ? factor : factor * (consumer_warpgroups(kernel) > 2 ? kOfThree : kOfTwo);
}

// Scales of single columns take a multiplication for each short sum, for which three warpgroups have little time, and two with 128 rows
// each, and one set of short sums, less (five sets of gradients).
double column_scales_factor(const GemmProblem& p, const KernelConfig& kernel) {
  constexpr int kRowsOfTwo = 256;
  constexpr double kOfTwo = 1.25, kOfThree = 1.1;
  const Scaling of_q = swapped(kernel) ? p.scaling_a : p.scaling_b;
  if (!promotes(kernel) || of_q != Scaling::per_vector_128) return 1;
  return kernel.tile_m >= kRowsOfTwo ? kOfTwo : consumer_warpgroups(kernel) > 2 ? kOfThree : 1;
}

TileCycles tile_cycles(const Calibration& c, const GemmProblem& p, const DeviceSpec& device, const KernelConfig& kernel, double k_tiles,
                       double rounds, const RowShares& rows) {
  const double steps = k_tiles * kernel.tile_k * size_bytes(kernel.type_a) / kDepthBytes;
  TileCycles cycles;
  cycles.multiply = steps * tile_p(kernel) / kWgmmaRows * wgmma_cycles(device, kernel) * c.matrix_cycles_factor * rows.multiplied;
  cycles.compute = cycles.multiply + k_tiles * stage_overhead_clk(c, kernel);
  const double absent_bytes = (1 - rows.fetched) * kernel.tile_m * kernel.tile_k * size_bytes(kernel.type_a);
  const double bytes_q = operand_bytes_q(kernel),
               bytes_p = dequantises(kernel) ? packed_stage_bytes(kernel, p.w4) : operand_bytes_p(kernel);
  const double bytes_clk = (bytes_p + bytes_q - absent_bytes) / c.ingest_bytes_per_clk_per_sm;
  cycles.ingest = k_tiles * overlap({bytes_clk, stage_issue_clk(c, p, kernel, rounds)}, c.overlap_exponent);
  return cycles;
}

// Main loops of a whole tile that the busiest of `units` runs one after the other.
double rounds_of(const SchedulerParams& s, double units) {
  const double tiles = cluster_tiles(s);
  if (s.kind == SchedulerKind::split_k) return std::ceil(tiles * s.splits / units) / s.splits;
  if (s.stream_k_tiles > 0) return std::max(tiles / units, 1.0 / s.k_tiles);
  return std::ceil(tiles / units);
}

// Pieces of the tile that has most.
double most_pieces(const SchedulerParams& s) {
  if (s.kind == SchedulerKind::split_k) return s.splits;
  if (s.stream_k_tiles == 0) return 1;
  const double range_k_tiles = std::max(1.0, static_cast<double>(s.stream_k_tiles) * s.k_tiles / s.stream_k_ranges);
  return 1 + std::ceil(s.k_tiles / range_k_tiles);
}

// Slices of K: one warpgroup hands over a few KB (two H200s, 26 November 2026, candidates with 8 to 64 rows of the suite w4a16). Other
// kernels for weights of 4 bits take longer to begin and to end a piece (one H200 and one H100, 27 November: 64 x 4096 x 4096 in three
// pieces 8.9 us where 6.6 were predicted, in slices 7.9 and 6.8).
double hand_over_us(const Calibration& c, const KernelConfig& kernel, const SchedulerParams& s) {
  constexpr double kOfSlices = 1.0 / 3, kOfCodesUs = 0.6;
  if (k_slices(kernel) > 1) return kOfSlices * c.hand_over_us;
  return c.hand_over_us + (dequantises(kernel) && s.splits > 1 ? kOfCodesUs : 0);
}
double collect_us(const Calibration& c, const KernelConfig& kernel, double clocks_per_us) {
  return static_cast<double>(kernel.tile_m) * kernel.tile_n * sizeof(float) / c.collect_bytes_per_clk_per_sm / clocks_per_us;
}

double reduction_us(const Calibration& c, const KernelConfig& kernel, const SchedulerParams& s, double clocks_per_us) {
  const double others = most_pieces(s) - 1;
  if (others <= 0) return 0;
  const double bytes = static_cast<double>(kernel.tile_m) * kernel.tile_n * sizeof(float);
  if (s.reduction == Reduction::separate)  // all leave the whole tile, and fetch a slice of it from all
    return c.separate_meeting_us +
           (bytes / c.leave_bytes_per_clk_per_sm + s.splits * bytes / slices_of_tile(kernel, s.splits) / c.collect_bytes_per_clk_per_sm) /
               clocks_per_us;
  if (s.reduction == Reduction::cluster)  // each CTA pushes all but its own part, and takes in as much
    return c.cluster_meeting_us + others / s.splits * bytes / c.push_bytes_per_clk_per_sm / clocks_per_us;
  return hand_over_us(c, kernel, s) + (1 + others) * collect_us(c, kernel, clocks_per_us);  // one to leave
}

// SchedulerParams::lead: a hand-over, and what one piece has left, pass while the last piece multiplies, and begin to come before it has.
// (One H200, 27 November 2026, leads of 0 to 4 us in candidates of 10 products in 2 to 15 pieces: the best are 2 to 3.5 us, of large tiles
// no longer ones.)
constexpr double kLeadUs = 2.4;
double stage_of_piece_us(const SchedulerParams& s, double main_loops_us) { return main_loops_us * s.splits / std::max(1, s.k_tiles); }
double hidden_by_lead_us(const Calibration& c, const KernelConfig& kernel, const SchedulerParams& s, double main_loops_us,
                         double clocks_per_us) {
  const double wait_us = c.hand_over_us + 2 * collect_us(c, kernel, clocks_per_us);
  return std::min(s.lead * stage_of_piece_us(s, main_loops_us) / kLeadUs, 1.0) * wait_us / s.splits;
}

// Slices of K: the one with most k-tiles decides, and they meet in shared memory before the next tile's can (one H200, 24 November 2026,
// groups of 2 rows, whose tiles have 8 k-tiles, beside suites with 16 and more).
double slices_clk(const KernelConfig& kernel, const SchedulerParams& s, double rounds, double clk) {
  constexpr double kMeetingClk = 200;
  if (k_slices(kernel) == 1) return clk;
  const double k_tiles = std::max(1.0, static_cast<double>(s.k_tiles) / s.splits), slices = k_slices(kernel);
  return clk * std::ceil(k_tiles / slices) * slices / k_tiles + std::ceil(rounds) * kMeetingClk;
}

// Streaming kernels: each warp goes through its slabs one after the other, every part at the rate of 16 warps of an SM in turn; several
// rows of A are read from more banks than one; all rows come to each SM before the last slab can be multiplied, late, since the kernel
// before has made them; and in a cluster one CTA waits for what the other has added up (one H200, 22 and 23 November 2026,
// `sluice bench` over w4a16 with M = 1 to 8).
constexpr double kStreamingClkPerPart = 45, kStreamingClkOfRows = 3, kStreamingClkPerStrip = 350, kStreamingRowBytesPerClk = 64,
                 kStreamingClkOfMeeting = 200;
// Where weights take no longer than rows do to come, rows are waited for: 8 rows beside 4096 x 4096 take 1.8 us more than one, beside
// 4096 x 14336 1.3 (one H200, 24 November 2026).
constexpr double kStreamingClkOfLateRow = 517, kStreamingShareBesideRows = 0.3;

double streaming_clk(const GemmProblem& p, const KernelConfig& kernel, const SchedulerParams& s, double clusters) {
  const int shares = streaming_shares(kernel);
  const std::int64_t strips = shares * strips_finished(s.tiles_n, shares * static_cast<std::int64_t>(clusters));
  const StreamingShare share = share_of_streaming_warp(strips, longest_share(s.k_tiles, shares));
  const auto rounds = static_cast<double>(share.rounds), slabs = static_cast<double>(share.slabs);
  const double row_bytes = static_cast<double>(p.m) * s.k_tiles * kernel.tile_k * size_bytes(p.type_a) / shares;
  const double clk_of_part = kStreamingClkPerPart + (p.m > 1 ? kStreamingClkOfRows : 0);
  const double meeting = shares > 1 ? kStreamingClkOfMeeting : 0;
  const double weights = rounds * (slabs * kStreamingWarps * clk_of_part + kStreamingClkPerStrip);
  const double late = std::max(0.0, kStreamingClkOfLateRow * static_cast<double>(p.m - 1) - kStreamingShareBesideRows * weights);
  return weights + row_bytes / kStreamingRowBytesPerClk + late + meeting;
}

// How often a CTA of a kernel with rings fetches all rows of A: for every two strips.
double passes_of_ring(const SchedulerParams& s, double units) { return std::ceil(std::ceil(s.tiles_n / units) / kRingStrips); }

// All that comes to an SM, and where warps meet; strips behind the first find other warps still storing theirs (one H200, 26 November 2026:
// 4 x 32192 x 80 5.1 us where 2.8 were predicted, 2 x 30400 x 296 7.6 and 4.6).
double rings_clk(const Calibration& c, const GemmProblem& p, const KernelConfig& kernel, const SchedulerParams& s, double units) {
  constexpr double kMeetingClk = 300, kLaterMeetingClk = 600;
  const double passes = passes_of_ring(s, units);
  const double bytes = std::ceil(s.tiles_n / units) * ring_strip_bytes(kernel) + passes * static_cast<double>(p.m) * kRingRowBytes;
  return s.k_tiles * bytes / c.ingest_bytes_per_clk_per_sm + kMeetingClk + std::max(0.0, passes - 1) * kLaterMeetingClk;
}

// The last strips come no faster than the rings of those CTAs that still have some ask for them, one strip as slowly as two (5120 x 25600
// at M = 1: 68 us, where an even share of memory would take 59; one H200, 23 November 2026; in ranges 59.4, another H200, 26 November).
// Where they are the first as well, their rows come as slowly (14 x 896 x 12352: 15 us; one H100, 25 November 2026), and a CTA that never
// has two strips has half as much on its way (6 x 1024 x 8128: 9.2 us; the same day, 18 products; 35 bytes instead of 40 by those of 26
// November).
double rings_tail_us(const GemmProblem& p, const KernelConfig& kernel, const SchedulerParams& s, double units, double all_us,
                     double clocks_per_us) {
  constexpr double kBytesPerClkOfTwo = 48, kBytesPerClkOfOne = 35;
  if (s.tiles_n == 0) return 0;
  const double last_strips = s.tiles_n - (passes_of_ring(s, units) - 1) * kRingStrips * units;
  const double row_bytes = passes_of_ring(s, units) > 1 ? 0 : static_cast<double>(p.m) * kRingRowBytes;
  const double bytes = kRingStrips * ring_strip_bytes(kernel) + row_bytes;
  const double alone_us = s.k_tiles * bytes / (s.tiles_n <= units ? kBytesPerClkOfOne : kBytesPerClkOfTwo) / clocks_per_us;
  return std::max(0.0, alone_us - all_us * last_strips / s.tiles_n);
}

// The device's memory, beside that which factors were measured with: 1, or less if it is slower.
double share_of_measured_memory(const Calibration& c, const DeviceSpec& device) {
  return device.hbm_gb_per_s / std::max(device.hbm_gb_per_s, c.measured_hbm_gb_per_s_per_sm * device.sm_count);
}

// The factors of kernels with rings hold what a chain of layers gains by them, which on an H200 is more than they lose alone. With slower
// memory and constant weights it is less: on an H100 (0.66 of the rate) the layers of Llama 3 with 1 and 16 rows take 1 to 2% more without
// rings, and the 32 products of llm by themselves 4% less. (Where weights are not constant, a chain takes up to 6% more; 26 November 2026.)
double rings_on_slow_memory(const Calibration& c, const DeviceSpec& device, const GemmProblem& p) {
  constexpr double kLoss = 0.3;
  return p.constant_b ? 1 + kLoss * (1 - share_of_measured_memory(c, device)) : 1;
}

// Of streaming kernels, how often rows of A are fetched: a cluster's CTAs fetch them once between them.
double fetches_of_rows(const KernelConfig& kernel, const SchedulerParams& s, double units) {
  return has_rings(kernel) ? units * passes_of_ring(s, units) : units;
}

// Requests of a GPC's SMs for the same lines count as one, if they meet on their way to L2. CTAs that begin together ask for what they
// share at about the same time, and stay in step for two rounds. What clusters share they fetch once anyway; pieces begin when there is
// room. (One H200, 23 November 2026: 30 products in turn with cuBLASLt, cooperative kernels with tiles of 128 rows and more;
// docs/performance_log.md.) Tiles of pingpong do so where both operands are shared (474 x 3496 x 512 in 128 x 64 5.5 us, others 6.3; 512 x
// 2112 x 7168 26 and 30); with one row of tiles all requests count (128 x 8192 x 28672 137 us, others 126: H200s, 26 November 2026).
double share_of_requests(const GemmProblem& p, const KernelConfig& kernel, const SchedulerParams& s, double rounds) {
  constexpr double kLeft = 0.72, kRoundsInStep = 2;
  constexpr int kFewestRows = 128;
  const bool together = s.splits == 1 && s.stream_k_tiles == 0 && rounds <= kRoundsInStep && kernel.tile_m >= kFewestRows;
  const bool fitted = size_bytes(p.type_a) == 2 && !dequantises(kernel);
  const bool shared = kernel.schedule == KernelSchedule::cooperative || std::min(s.tiles_m, s.tiles_n) > 1;
  return cluster_size(kernel) == 1 && shared && together && fitted ? kLeft : 1;
}

// What neighbours() ask for of what they fetch: a block of tiles' operands once between them.
double requests_of_neighbours(const KernelConfig& kernel, const SchedulerParams& s, int ctas) {
  const int across = std::min(s.cohort, ctas), along = ctas / across;
  const bool along_m = s.raster == Rasterization::along_m;
  const double rows = kernel.tile_m * (along_m ? along : across), columns = kernel.tile_n * (along_m ? across : along);
  return (rows + columns) / (ctas * (kernel.tile_m + kernel.tile_n));
}

// CTAs that share stages by multicast wait for the slowest of them, which pieces, that begin when there is room, feel.
double clusters_of_pieces_factor(const KernelConfig& kernel, const SchedulerParams& s) {
  constexpr double kOfFour = 1.2, kOfPairs = 1.06;
  if (s.splits == 1 || cluster_size(kernel) == 1) return 1;
  return cluster_size(kernel) > 2 ? kOfFour : kOfPairs;
}

// Pingpong's pairs that share the only row of tiles: few of them in the last round ask memory for less than it could bring (two H200s, 26
// November 2026, 128 rows of llm: 128 x 192 in c1x2 takes 1.26 and 1.35 of what was predicted where the last round is 0.27 and 0.03 full,
// 128 x 168 1.21 and 1.37 at 0.59 and 0.31; single CTAs and cooperative pairs 1.12 to 1.2).
double lone_row_factor(const KernelConfig& kernel, const SchedulerParams& s, double waves) {
  constexpr double kOfIdle = 0.5;
  const bool lone = kernel.schedule == KernelSchedule::pingpong && kernel.cluster_n > 1 && s.tiles_m == 1 && s.stream_k_tiles == 0;
  return lone && waves > 1 ? 1 + kOfIdle * (std::ceil(waves) / waves - 1) : 1;
}

// SMs that pieces leave free take the next launch's CTAs before this one's have met. (These three: one H200, 24 November 2026, candidates
// of 40 products in pieces and whole.)
double early_successor_us(const SchedulerParams& s, double busy_share) {
  constexpr double kGain = 0.4, kShareForAll = 0.27;
  return s.reduction == Reduction::separate ? kGain * std::clamp((1 - busy_share) / kShareForAll, 0.0, 1.0) : 0;
}
// When a launch begins beside the one before was asked of whole tiles of 16-bit operands alone, of few rows and of more apart.
constexpr std::int64_t kFewRows = 64;
bool whole_tiles_of_16_bits(const KernelConfig& kernel, const SchedulerParams& s) {
  return !promotes(kernel) && !dequantises(kernel) && s.splits == 1 && s.stream_k_tiles == 0;
}
// So do those that whole tiles leave free, if they are many (one H100, 25 November 2026: candidates of products with 65 to 2600 rows that
// take less than 5 us, 0.4 us faster where less than two thirds of the SMs have a CTA; beside fewer rows nothing was gained. H200s and
// H100s, 26 November: half of that, by the choices among the candidates of 427 random products).
double early_launch_us(const GemmProblem& p, const KernelConfig& kernel, const SchedulerParams& s, double rounds, double busy_share) {
  constexpr double kGain = 0.2, kShareForAny = 0.2, kShareForAll = 0.4;
  if (!whole_tiles_of_16_bits(kernel, s) || p.m <= kFewRows || rounds > 1) return 0;
  return kGain * std::clamp((1 - busy_share - kShareForAny) / (kShareForAll - kShareForAny), 0.0, 1.0);
}
// Beside few rows it shows where there is little to multiply, and not for streaming kernels, of which SMs hold two CTAs: whole tiles on
// more than half of the SMs, or in several rounds, take longer by this than others do (one H200, 26 November 2026: 900 candidates of 136
// random products that take less than 2 us to multiply or fetch; 43 x 6016 x 248 in 64 x 48 3.6 us, in 64 x 96, on half as many SMs, 2.9).
// Pingpong in several rounds does not.
double late_launch_us(const GemmProblem& p, const KernelConfig& kernel, const SchedulerParams& s, double rounds, const PredictedTime& t) {
  constexpr double kLoss = 0.8, kShareForAny = 0.55, kShareForAll = 0.65, kLittleUs = 2;
  if (!whole_tiles_of_16_bits(kernel, s) || p.m > kFewRows || streams(kernel)) return 0;
  const double share = rounds <= 1 ? t.busy_share : kernel.schedule == KernelSchedule::pingpong ? 0 : 1;
  const double little = std::clamp(2 - std::max({t.matrix_us, t.hbm_us, t.l2_us}) / kLittleUs, 0.0, 1.0);
  return kLoss * little * std::clamp((share - kShareForAny) / (kShareForAll - kShareForAny), 0.0, 1.0);
}

// Slices of K: tiles of the same columns side by side ask for weights that are still on their way from memory (two H200s, 26 November 2026:
// 32 x 4096 x 4096 in two tiles of 16 rows takes 6.65 us, in tiles of 32 and two pieces 6.15).
double same_columns_us(const KernelConfig& kernel, const SchedulerParams& s) {
  constexpr double kLoss = 0.4;
  return k_slices(kernel) > 1 && s.tiles_m > 1 ? kLoss : 0;
}

// Slices of K beside up to 8 rows: the warpgroups' sums meet behind the last tile, which tells beside streaming kernels. (One H200, 27
// November 2026: with one row 4096 x 14336 takes 12.1 us in slices and 10.5 by streaming, 57344 x 8192 60.7 and 65.3 at lasting clocks.)
double slices_meet_us(const GemmProblem& p, const KernelConfig& kernel) {
  constexpr double kMeeting = 0.8;
  return k_slices(kernel) > 1 && p.m <= 8 ? kMeeting : 0;
}

// A kernel's factor says how it uses the memory that it was measured with. Slower memory is slow for any kernel: the more of the time is
// memory's own, the less a kernel's way of asking for it shows. (Else the kernel with the smallest factor would be taken wherever memory
// binds: docs/calibration.md, "Other devices".)
double hbm_us(const Calibration& c, const DeviceSpec& device, double bytes, double factor) {
  const double rate = device.hbm_gb_per_s, share = share_of_measured_memory(c, device);
  // With a factor of 1 the two overlap to the time that memory takes.
  const double of_memory = std::pow(1 - std::pow(share, c.overlap_exponent), 1 / c.overlap_exponent);
  return overlap({factor * share, of_memory}, c.overlap_exponent) * bytes / (rate * c.hbm_factor * 1e3);
}

// Tiles whose rows are no whole lines of 128 bytes write parts of lines, which tells where there is little to multiply: this much of D's
// bytes more (one H200, 26 November 2026: 6188 x 15424 x 256 by pingpong in widths of 128 and 192 106 and 110 us, 112 120, 160 to 184 128
// to 142; choices among the candidates of 974 random products 1.040 to 1.039 of the best).
double share_of_broken_lines(const GemmProblem& p, const KernelConfig& kernel) {
  constexpr double kOfWide = 0.35, kOfNarrow = 0.12;
  constexpr int kLineBytes = 128, kNarrow = 128;
  const int bytes = kernel.tile_n * size_bytes(p.type_d);
  if (promotes(kernel) || dequantises(kernel) || bytes < kLineBytes || bytes % kLineBytes == 0) return 0;
  return kernel.tile_n > kNarrow ? kOfWide : kOfNarrow;
}

// Ranges that begin anywhere are each at another of K: what tiles side by side share is fetched for each of them, but for what L2 keeps.
// (One H100, 25 November 2026: 1227 x 448 x 22976 in 128 x 112 takes 89 us where 53 were predicted, 430 x 1280 x 19008 in 128 x 128 71 and
// 48; 761 x 2304 x 12672, 0.82 of a tile for each, 88 and 76.)
double bytes_fetched_again(const DeviceSpec& device, const SchedulerParams& s, double bytes_a, double bytes_b) {
  constexpr double kAlwaysKept = 1.0 / 16;  // of L2: what everybody needs all the time
  if (s.stream_k_tiles == 0) return 0;
  const auto l2_bytes = static_cast<double>(device.l2_bytes);
  const double kept = std::min(1.0, l2_bytes / std::max(1.0, bytes_a + bytes_b));
  const auto by_others = [&](double bytes, std::int32_t clusters) { return bytes < kAlwaysKept * l2_bytes ? 0 : bytes * (clusters - 1); };
  return (1 - kept) * (by_others(bytes_a, clusters_n(s)) + by_others(bytes_b, clusters_m(s)));
}

// The ranges of a hybrid schedule have whole tiles before them, which leave memory idle that ranges would need: what memory takes for them
// beyond the multiplications overlaps with nothing. (One H200, 26 November 2026: 2048 x 8192 x 28672 in 128 x 128 takes 1657 us in whole
// tiles and 2683 with the last 1.8 of 7.8 rounds in ranges; 5812 x 896 x 17728 385 where 258 were predicted.)
double ranges_wait_us(const SchedulerParams& s, double hbm_us, double matrix_us) {
  return std::max(0.0, hbm_us - matrix_us) * s.stream_k_tiles / std::max(1, cluster_tiles(s));
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

// Where a long stream of weights has a CTA each, SMs without one are missed (the same; and in bf16 one H200 and one H100, 26 November 2026,
// candidates of 327 random products and of llm from 16 to 512 rows: 16 x 5120 x 25600 in 80 tiles of 16 x 64 95 us, in ranges of stream-K
// 85).
double missing_sms_us(const KernelConfig& kernel, const PredictedTime& t) {
  constexpr double kIdleShare = 0.4, kFreeStreamUs = 15, kFp8FreeStreamUs = 10;
  if (dequantises(kernel) || streams(kernel) || t.waves > 1) return 0;
  return kIdleShare * (1 - std::min(1.0, t.busy_share)) * std::max(0.0, t.hbm_us - (promotes(kernel) ? kFp8FreeStreamUs : kFreeStreamUs));
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
