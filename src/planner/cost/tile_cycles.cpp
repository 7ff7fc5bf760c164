#include "planner/cost/tile_cycles.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>

#include "core/groups.hpp"
#include "core/kernel_layout.hpp"
#include "core/load_boxes.hpp"
#include "planner/cost/overlap.hpp"

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

double stage_overhead_clk(const Calibration& c, const KernelConfig& kernel) {
  if (kernel.schedule == KernelSchedule::pingpong) return c.stage_overhead_clk_pingpong;
  return consumer_warpgroups(kernel) == 1 ? c.stage_overhead_clk_one_consumer : c.stage_overhead_clk_cooperative;
}

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

}  // namespace

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

}  // namespace sluice
