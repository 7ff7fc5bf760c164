// Scales of FP8 operands: docs/numbers.md says what they mean and where they lie.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "sluice/types.hpp"

namespace sluice {

// What the numbers of an FP8 matrix are to be multiplied by. Scales are fp32. A "vector" is a row of A or D, or a column of B; of D, read N
// for K.
//   per_tensor      one number
//   per_vector      one for each vector
//   per_vector_128  one for each vector and each 128 of K ("1x128")
//   per_block_128   one for each 128 vectors and each 128 of K ("128x128"); blocks at the edges have theirs, too
//
// In GemmProblem: scales lie as a matrix with a row for each vector or block of 128, and a column for each 128 of K, the last one maybe
// short: ceil(m / 128) x ceil(k / 128) with per_block_128 of A. row_major: the scales of a vector are adjacent. per_vector: adjacent, no
// leading dimension. Strides in elements; a batch stride of 0 repeats (not of scales that are written).
//
// Of a D in FP8, beside operands in FP8. What would be D in fp32 is multiplied by 1 / scale, and rounded as quantize() rounds:
//   none            the scale is 1
//   per_tensor      the caller gives it
//   per_vector_128  it is found as quantize() finds it, from each 128 columns of a row, and written: q and scale are those of quantize()
//                   for D in fp32, to the bit, and can be A of the next product
// The bias is fp32, and beta is 0.
enum class Scaling : std::uint8_t { none, per_tensor, per_vector, per_vector_128, per_block_128 };

// Whether there is a scale for each 128 of K.
constexpr bool scales_along_k(Scaling scaling) { return scaling == Scaling::per_vector_128 || scaling == Scaling::per_block_128; }

// Of the bias beside a D of some type.
constexpr DataType bias_type(DataType type_d) { return is_fp8(type_d) ? DataType::fp32 : type_d; }

const char* to_string(Scaling scaling);  // "none", "tensor", "vector", "1x128", "128x128"
std::optional<Scaling> parse_scaling(std::string_view text);

}  // namespace sluice
