// How a result is judged.
#pragma once

#include <cstdint>

namespace sluice::bench {

enum class Exactness : std::uint8_t {
  // |got - expected| <= gamma_k |alpha| |A||B| + rounding of the epilogue and of the output type, gamma_k with u = 2^-23. Sums
  // of FP8 products may lose more: docs/numbers.md.
  bounded,
  exact,  // integer-valued operands, with scales of powers of two: the same number, rounded once to the output's type
};

}  // namespace sluice::bench
