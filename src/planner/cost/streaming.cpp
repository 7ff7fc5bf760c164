#include "planner/cost/streaming.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "core/kernel_layout.hpp"
#include "core/streaming_layout.hpp"
#include "planner/cost/memory.hpp"

namespace sluice {
namespace {

// Streaming kernels: each warp goes through its slabs one after the other, every part at the rate of 16 warps of an SM in turn; several
// rows of A are read from more banks than one; all rows come to each SM before the last slab can be multiplied, late, since the kernel
// before has made them; and in a cluster one CTA waits for what the other has added up (one H200, 22 and 23 November 2026,
// `sluice bench` over w4a16 with M = 1 to 8).
constexpr double kStreamingClkPerPart = 45, kStreamingClkOfRows = 3, kStreamingClkPerStrip = 350, kStreamingRowBytesPerClk = 64,
                 kStreamingClkOfMeeting = 200;
// Where weights take no longer than rows do to come, rows are waited for: 8 rows beside 4096 x 4096 take 1.8 us more than one, beside
// 4096 x 14336 1.3 (one H200, 24 November 2026).
constexpr double kStreamingClkOfLateRow = 517, kStreamingShareBesideRows = 0.3;

// How often a CTA of a kernel with rings fetches all rows of A: for every two strips.
double passes_of_ring(const SchedulerParams& s, double units) { return std::ceil(std::ceil(s.tiles_n / units) / kRingStrips); }

}  // namespace

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

}  // namespace sluice
