#include "planner/cost/launch.hpp"

#include <algorithm>
#include <cstdint>

#include "core/kernel_layout.hpp"

namespace sluice {
namespace {

// When a launch begins beside the one before was asked of whole tiles of 16-bit operands alone, of few rows and of more apart.
constexpr std::int64_t kFewRows = 64;

bool whole_tiles_of_16_bits(const KernelConfig& kernel, const SchedulerParams& s) {
  return !promotes(kernel) && !dequantises(kernel) && s.splits == 1 && s.stream_k_tiles == 0;
}

}  // namespace

// SMs that pieces leave free take the next launch's CTAs before this one's have met. (One H200, 24 November 2026, candidates of 40
// products in pieces and whole.)
double early_successor_us(const SchedulerParams& s, double busy_share) {
  constexpr double kGain = 0.4, kShareForAll = 0.27;
  return s.reduction == Reduction::separate ? kGain * std::clamp((1 - busy_share) / kShareForAll, 0.0, 1.0) : 0;
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

}  // namespace sluice
