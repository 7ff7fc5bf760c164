#include "planner/cost/memory.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "core/kernel_layout.hpp"
#include "planner/cost/overlap.hpp"
#include "scheduler/tile_order.hpp"

namespace sluice {

double share_of_measured_memory(const Calibration& c, const DeviceSpec& device) {
  return device.hbm_gb_per_s / std::max(device.hbm_gb_per_s, c.measured_hbm_gb_per_s_per_sm * device.sm_count);
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

// Where a long stream of weights has a CTA each, SMs without one are missed (one H200, 24 November 2026, all candidates of the suite fp8;
// and in bf16 one H200 and one H100, 26 November 2026, candidates of 327 random products and of llm from 16 to 512 rows: 16 x 5120 x 25600
// in 80 tiles of 16 x 64 95 us, in ranges of stream-K 85).
double missing_sms_us(const KernelConfig& kernel, const PredictedTime& t) {
  constexpr double kIdleShare = 0.4, kFreeStreamUs = 15, kFp8FreeStreamUs = 10;
  if (dequantises(kernel) || streams(kernel) || t.waves > 1) return 0;
  return kIdleShare * (1 - std::min(1.0, t.busy_share)) * std::max(0.0, t.hbm_us - (promotes(kernel) ? kFp8FreeStreamUs : kFreeStreamUs));
}

// Pingpong's pairs that share the only row of tiles: few of them in the last round ask memory for less than it could bring (two H200s, 26
// November 2026, 128 rows of llm: 128 x 192 in c1x2 takes 1.26 and 1.35 of what was predicted where the last round is 0.27 and 0.03 full,
// 128 x 168 1.21 and 1.37 at 0.59 and 0.31; single CTAs and cooperative pairs 1.12 to 1.2).
double lone_row_factor(const KernelConfig& kernel, const SchedulerParams& s, double waves) {
  constexpr double kOfIdle = 0.5;
  const bool lone = kernel.schedule == KernelSchedule::pingpong && kernel.cluster_n > 1 && s.tiles_m == 1 && s.stream_k_tiles == 0;
  return lone && waves > 1 ? 1 + kOfIdle * (std::ceil(waves) / waves - 1) : 1;
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

}  // namespace sluice
