// How a result is judged.
#pragma once

#include <cstdint>

namespace sluice::bench {

enum class Exactness : std::uint8_t {
  bounded,  // |got - expected| <= gamma_k |alpha| |A||B| + rounding of the epilogue and of the output type, gamma_k with u = 2^-23
  exact,    // integer-valued operands: the same number, rounded once to the output's type
};

}  // namespace sluice::bench
