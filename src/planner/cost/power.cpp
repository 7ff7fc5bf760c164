#include "planner/cost/power.hpp"

#include <algorithm>

#include "core/check_scheduler.hpp"
#include "core/groups.hpp"
#include "core/kernel_layout.hpp"
#include "core/launched_clusters.hpp"
#include "planner/peak.hpp"

namespace sluice {
namespace {

// GB that L2 hands out for each TFLOP: a CTA's rows of A for as many columns as its cluster has, and the other way round. Tiles by place
// fetch apart, but their requests meet.
double gb_per_tflop(const GemmProblem& p, const DeviceSpec& device, const Candidate& candidate) {
  constexpr double kOfRequestsThatMeet = 0.7;
  const KernelConfig& kernel = candidate.kernel;
  const double bytes = size_bytes(kernel.type_a) / 2.0;  // of an operand for each operation, if nothing were used twice
  const double fetched = 1e3 * bytes * (1.0 / (kernel.tile_n * kernel.cluster_n) + 1.0 / (kernel.tile_m * kernel.cluster_m));
  return dealt_by_place(p, device, kernel, candidate.scheduler) ? kOfRequestsThatMeet * fetched : fetched;
}

}  // namespace

// At its power limit a GPU lowers the clock until what it draws fits, within some 50 ms. Cycles count less then, since whoever needs fewer
// of them draws more in each, and bytes that L2 hands out count beside them: 1.5% of the time for each GB a TFLOP. What was learnt is of
// turns of 2 ms, in which all candidates share one clock and nothing but cycles differs, so half of it is left. Ranges that end within
// tiles keep more SMs busy, which is worth less here, and what they hand over costs. (Candidates of 100 products from 256 rows on in turns
// of 0.1 s, H200s, 29 November 2026; docs/calibration.md, "At the power limit".) It sets in where a product is predicted to run at 0.85 of
// the sustained rate.
void count_power(const GemmProblem& p, const DeviceSpec& device, std::span<Candidate> candidates) {
  constexpr double kOfGbPerTflop = 0.015, kLeast = 6.5, kUsual = 7.8, kMost = 17.8, kOfPieces = 0.015, kOfLearnt = 0.5, kFreeShare = 0.85,
                   kBoundShare = 0.95;
  if (device.sustained_fraction >= 1 || is_grouped(p) || is_grouped_along_k(p) || is_general(p)) return;
  const double least_us = flops(p) / (peak_tflop_per_s(device, p.type_a) * 1e6 * device.sustained_fraction);
  for (Candidate& candidate : candidates) {
    const KernelConfig& kernel = candidate.kernel;
    if (candidate.verdict != CandidateVerdict::slower || promotes(kernel) || dequantises(kernel)) continue;
    PredictedTime& t = candidate.predicted;
    const double bound = std::clamp((least_us / t.total_us - kFreeShare) / (kBoundShare - kFreeShare), 0.0, 1.0);
    if (bound == 0) continue;
    const double bytes = kOfGbPerTflop * (std::clamp(gb_per_tflop(p, device, candidate), kLeast, kMost) - kUsual);
    const double by_cycles = t.total_us - bound * kOfLearnt * t.learnt_us;
    const double pieces = is_stream_k(candidate.scheduler) ? kOfPieces : 0;
    t.power_us = by_cycles * (1 + bound * (bytes + pieces)) - t.total_us;
    t.total_us += t.power_us;
  }
}

}  // namespace sluice
