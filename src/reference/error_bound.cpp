#include "reference/error_bound.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/check_arguments.hpp"
#include "reference/rounding.hpp"

namespace sluice {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kLargestFp32 = std::numeric_limits<float>::max();
constexpr double kSmallestFp32 = 0x1p-149;
constexpr double kExactIntegers = 0x1p24;      // fp32 holds every integer up to here
constexpr double kUnitAccumulation = 0x1p-23;  // the tensor cores truncate
constexpr double kUnitEpilogue = 0x1p-24;      // ordinary fp32 arithmetic rounds
constexpr double kSteepestSlope = 1.13;        // of GELU; SiLU's is 1.10
// Of x, for fp32 evaluations of x times a sigmoid or a tanh through the GPU's ex2.approx and rcp.approx (2 ulp each), whose argument
// has been rounded as well. Smaller than half an ulp of fp16, so that tanh.approx (2^-11) does not pass.
constexpr double kActivationError = 0x1p-19;

bool is_integer(double value) { return std::nearbyint(value) == value; }

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

// Of x, the argument of the activation.
double error_before_activation(const GemmProblem& p, const ElementSums& sums, double c, double bias) {
  const double alpha = p.epilogue.alpha, beta_c = p.epilogue.beta * c;
  const double product = std::abs(alpha * sums.product), all = std::abs(alpha) * sums.magnitude + std::abs(beta_c) + std::abs(bias);
  if (sums.integers && is_integer(alpha) && is_integer(beta_c) && is_integer(p.epilogue.beta) && is_integer(bias) && all < kExactIntegers &&
      sums.magnitude < kExactIntegers)
    return 0;
  const double ku = static_cast<double>(p.k) * kUnitAccumulation;
  double error = reads_a_and_b(p) ? ku / (1 - ku) * std::abs(alpha) * sums.magnitude : 0.0;
  const bool plain = alpha == 1 && !reads_c(p) && p.epilogue.bias == Bias::none;
  if (!plain) error += 4 * kUnitEpilogue * (product + error + std::abs(beta_c) + std::abs(bias));
  return error + (static_cast<double>(p.k) * std::max(1.0, std::abs(alpha)) + 4) * kSmallestFp32;
}

}  // namespace

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
