// How candidates for one product compare beyond the parts of the cost model, as measured times have taught it.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>

#include "sluice/calibration.hpp"

namespace sluice {

// THE list of what is known of a candidate, in the order of LearntComparison::inputs.
inline constexpr auto kLearntInputs = std::to_array<std::string_view>({
    "pingpong", "streaming", "sliced",  "swapped", "tile_m",    "tile_n",       "tile_k", "cluster_m", "cluster_n", "rows", "columns",
    "depth",    "k_tiles",   "ranges",  "hybrid",  "reduction", "rounds",       "last",   "full",      "matrix",    "hbm",  "l2",
    "reducing", "starting",  "storing", "total",   "rows_used", "columns_used", "busy",   "astride_k", "astride_n",
});
using LearntInputs = std::array<float, kLearntInputs.size()>;

LearntInputs learnt_inputs(const GemmProblem& problem, const DeviceSpec& device, const Candidate& candidate);

// tanh to within 0.03, of operations that a compiler vectorises (its continued fraction: Abramowitz and Stegun, 4.5.70, cut off); flat from
// 3 on.
inline float squashed(float x) {
  const float within = x < -3.0f ? -3.0f : x > 3.0f ? 3.0f : x, square = within * within;
  return within * (27.0f + square) / (27.0f + 9.0f * square);
}

// LearntComparison::operands of a product whose candidates can be compared, or nothing: products of groups and of a batch are not asked
// about, nor FP8 beside weights of 4 bits.
std::string learnt_operands(const GemmProblem& problem);

// How far from the fastest predicted time candidates may be to be compared.
inline constexpr double kLearntWithin = 1.45;

// Adds what has been learnt to what was predicted of the candidates that can run. The one with the least predicted time keeps it.
void compare_as_learnt(const Calibration& calibration, const GemmProblem& problem, const DeviceSpec& device,
                       std::span<Candidate> candidates);

Status check_learnt(const Calibration& calibration);

}  // namespace sluice
