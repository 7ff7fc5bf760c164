// Scales of FP8 operands: docs/numbers.md says what they mean and where they lie.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace sluice {

// What the numbers of an FP8 operand are to be multiplied by. Scales are fp32. A "vector" is a row of A or a column of B.
//   per_tensor      one number
//   per_vector      one for each vector
//   per_vector_128  one for each vector and each 128 of K ("1x128")
//   per_block_128   one for each 128 vectors and each 128 of K ("128x128"); blocks at the edges have theirs, too
enum class Scaling : std::uint8_t { none, per_tensor, per_vector, per_vector_128, per_block_128 };

// Whether there is a scale for each 128 of K.
constexpr bool scales_along_k(Scaling scaling) { return scaling == Scaling::per_vector_128 || scaling == Scaling::per_block_128; }

const char* to_string(Scaling scaling);  // "none", "tensor", "vector", "1x128", "128x128"
std::optional<Scaling> parse_scaling(std::string_view text);

}  // namespace sluice
