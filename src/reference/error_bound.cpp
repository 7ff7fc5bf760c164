#include "reference/error_bound.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "core/check_arguments.hpp"
#include "core/scale_layout.hpp"
#include "reference/rounding.hpp"

namespace sluice {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kLargestFp32 = std::numeric_limits<float>::max();
constexpr double kSmallestFp32 = 0x1p-149;
constexpr double kSmallestNormalFp32 = 0x1p-126;
constexpr double kExactIntegers = 0x1p24;      // fp32 holds every integer up to here
constexpr double kUnitAccumulation = 0x1p-23;  // the tensor cores truncate
constexpr double kUnitEpilogue = 0x1p-24;      // ordinary fp32 arithmetic rounds
// The tensor cores shift 32 products and the sum so far to the exponent of the largest of them and cut off what is below its 14th bit
// (DeepSeek-V3, arXiv 2412.19437, section 3.3.2: "around 14 bits"). Each of the 33 may lose a unit, and what is kept of their sum one more.
constexpr double kUnitFp8 = 0x1p-13;
constexpr int kFp8Cuts = kFp8StepElems + 2;
constexpr double kExactFp8Integers = 0x1p13;
constexpr double kSteepestSlope = 1.13;  // of GELU; SiLU's is 1.10
// Of x, for fp32 evaluations of x times a sigmoid or a tanh through the GPU's ex2.approx and rcp.approx (2 ulp each), whose argument
// has been rounded as well. Smaller than half an ulp of fp16, so that tanh.approx (2^-11) does not pass.
constexpr double kActivationError = 0x1p-19;

bool is_integer(double value) { return std::nearbyint(value) == value; }

double short_sums(const GemmProblem& p, const ElementSums& sums) {
  return std::ceil(static_cast<double>(p.k) / static_cast<double>(sums.short_elems));
}

double activate(Activation activation, double x) {
  switch (activation) {
    case Activation::none:
      break;
    case Activation::relu:
      return x < 0 ? 0 : x;
    case Activation::gelu_tanh:
      return 0.5 * x * (1 + std::tanh(std::sqrt(2 / 3.14159265358979323846) * (x + 0.044715 * x * x * x)));
    case Activation::silu:
      return x / (1 + std::exp(-x));
  }
  return x;
}

bool is_smooth(Activation activation) { return activation == Activation::gelu_tanh || activation == Activation::silu; }

ElementBound bound_not_finite(Activation activation, double x) {
  ElementBound bound;
  if (std::isnan(x)) {
    bound.reference = bound.lowest = bound.highest = x;
    bound.nan_allowed = true;
  } else {
    bound.reference = activation == Activation::none || x > 0 ? x : 0.0;
    bound.lowest = bound.highest = bound.reference;
    bound.nan_allowed = is_smooth(activation) && x < 0;  // 0 in the limit, minus infinity times 0 in most formulas
  }
  return bound;
}

// Whether all sums of products are exact, in whatever order: multiples of one power of two, with few enough bits.
bool sums_are_exact(const GemmProblem& p, const ElementSums& sums) {
  if (!sums.integers || sums.rounding > 0 || sums.scale_granule < kSmallestNormalFp32) return false;
  if (!(sums.magnitude < kExactIntegers * sums.scale_granule)) return false;
  return !is_fp8(p.type_a) || sums.largest_block < kExactFp8Integers;
}

double error_of_sums(const GemmProblem& p, const ElementSums& sums) {
  const auto gamma = [](double steps) { return steps * kUnitAccumulation / (1 - steps * kUnitAccumulation); };
  if (!is_fp8(p.type_a)) return (gamma(static_cast<double>(p.k)) + sums.rounding) * sums.magnitude;
  // Short sums are scaled and added up in ordinary fp32: two roundings for each, and some for the scales.
  constexpr double kScaleSteps = 4;
  return sums.lost + gamma(short_sums(p, sums) + kScaleSteps) * (sums.magnitude + sums.lost);
}

// What fp32's smallest number may hide in sums and in products of scales.
double underflow_of_sums(const GemmProblem& p, const ElementSums& sums) {
  return (is_fp8(p.type_a) ? short_sums(p, sums) * (1 + sums.largest_block) : static_cast<double>(p.k)) * kSmallestFp32;
}

// Of x, the argument of the activation.
double error_before_activation(const GemmProblem& p, const ElementSums& sums, double c, double bias) {
  const double alpha = p.epilogue.alpha, beta_c = p.epilogue.beta * c;
  const double product = std::abs(alpha * sums.product), all = std::abs(alpha) * sums.magnitude + std::abs(beta_c) + std::abs(bias);
  if (sums_are_exact(p, sums) && is_integer(alpha) && is_integer(beta_c) && is_integer(p.epilogue.beta) && is_integer(bias) &&
      all < kExactIntegers * sums.scale_granule)
    return 0;
  double error = reads_a_and_b(p) ? error_of_sums(p, sums) * std::abs(alpha) : 0.0;
  const bool plain = alpha == 1 && !reads_c(p) && p.epilogue.bias == Bias::none;
  if (!plain) error += 4 * kUnitEpilogue * (product + error + std::abs(beta_c) + std::abs(bias));
  return error + underflow_of_sums(p, sums) * std::max(1.0, std::abs(alpha)) + 4 * kSmallestFp32;
}

}  // namespace

double lost_in_fp8_step(double largest, double sum) { return kFp8Cuts * kUnitFp8 * std::max(largest, sum); }

double granule_of(float scale) {
  if (scale == 0 || !std::isfinite(scale)) return 1;
  constexpr int kSignificandBits = 24;
  const int exponent = std::ilogb(scale) - (kSignificandBits - 1);
  const auto digits = static_cast<std::uint32_t>(std::scalbn(std::abs(static_cast<double>(scale)), -exponent));
  return std::min(1.0, std::scalbn(1.0, exponent + std::countr_zero(digits)));
}

ElementBound bound_element(const GemmProblem& p, const ElementSums& sums, double c, double bias) {
  const double alpha = p.epilogue.alpha, beta_c = p.epilogue.beta * c;
  const double x = (reads_a_and_b(p) ? alpha * sums.product : 0.0) + beta_c + bias;
  const Activation activation = p.epilogue.activation;
  if (!std::isfinite(x)) return bound_not_finite(activation, x);

  ElementBound bound;
  bound.reference = activate(activation, x);
  const double on_the_way = std::max(1.0, std::abs(alpha)) * sums.magnitude + std::abs(beta_c) + std::abs(bias);
  bound.anything = on_the_way >= kLargestFp32;
  if (bound.anything) return bound;

  const double error = error_before_activation(p, sums, c, bias);
  double lowest, highest;
  if (is_smooth(activation)) {
    const double after = kSteepestSlope * error + kActivationError * (std::abs(x) + error);
    lowest = bound.reference - after;
    highest = bound.reference + after;
  } else {
    lowest = activate(activation, x - error);
    highest = activate(activation, x + error);
  }
  // Rounding is monotone: what lies between two numbers rounds to between their roundings.
  bound.lowest = round_to(p.type_d, lowest);
  bound.highest = round_to(p.type_d, highest);
  return bound;
}

Judgement judge(const ElementBound& bound, double got) {
  if (bound.anything) return {};
  if (std::isnan(got)) return bound.nan_allowed ? Judgement{} : Judgement{ElementVerdict::not_a_number, kInfinity};
  const bool right = got >= bound.lowest && got <= bound.highest;  // false where the reference is a NaN
  if (right && !std::isfinite(got)) return {};
  const double distance = std::abs(got - bound.reference);
  const double allowed = std::max(std::abs(bound.highest - bound.reference), std::abs(bound.lowest - bound.reference));
  double ratio = distance == 0 ? 0 : allowed > 0 ? distance / allowed : kInfinity;
  if (right) return {ElementVerdict::right, ratio};
  // With a tie in the rounding the wrong neighbour is as near as the right one, and compared with infinity nothing is far.
  if (!(ratio > 1)) ratio = std::isfinite(bound.reference) && std::isfinite(got) ? std::nextafter(1.0, 2.0) : kInfinity;
  return {ElementVerdict::wrong, ratio};
}

}  // namespace sluice
