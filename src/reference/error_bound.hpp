// What a correct kernel may return for one element.
#pragma once

#include <cstdint>

#include "sluice/problem.hpp"

#include "core/scale_layout.hpp"

namespace sluice {

// One element's row of A times its column of B, in double precision.
struct ElementSums {
  double product = 0;                           // of the signed terms, times their scales
  double magnitude = 0;                         // of their absolute values
  bool integers = true;                         // all elements of the row and the column are, before scaling
  double largest_block = 0;                     // FP8: the largest sum of absolute values over 128 of K, before scaling
  double scale_granule = 1.0;                   // a power of two up to 1: every product of scales is a multiple of it
  double lost = 0;                              // FP8: what the tensor cores may lose of the sums over 128 of K, times scales
  std::int64_t short_elems = kScaleBlockElems;  // FP8: elements of K of a sum that is promoted
  double rounding = 0;                          // of each weight of 4 bits, of its own size: 0 where none is
};

// FP8 products are added by the tensor cores 32 of K at a time. What one such step may lose, of products up to `largest` and a sum so far
// of at most `sum`.
inline constexpr int kFp8StepElems = 32;
double lost_in_fp8_step(double largest, double sum);

// The largest power of two up to 1 of which a scale is a multiple. Of 0 and of what is not finite: 1.
double granule_of(float scale);

struct ElementBound {
  double reference = 0;
  double lowest = 0;  // of the output type, both ends included
  double highest = 0;
  bool anything = false;  // fp32 may overflow on the way: no result is wrong
  bool nan_allowed = false;
};

// `c` and `bias` are 0 where the problem has none.
ElementBound bound_element(const GemmProblem& problem, const ElementSums& sums, double c, double bias);

enum class ElementVerdict : std::uint8_t { right, wrong, not_a_number };

struct Judgement {
  ElementVerdict verdict = ElementVerdict::right;
  double ratio = 0;  // |got - reference| / bound, above 1 where the verdict is not right
};
Judgement judge(const ElementBound& bound, double got);

}  // namespace sluice
