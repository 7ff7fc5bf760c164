// What pack_w4(), permute_columns() and their brothers ask of their arguments.
#pragma once

#include <cstdint>

#include "sluice/w4.hpp"

namespace sluice {

inline constexpr int kW4PackedAlignmentBytes = 256;  // a product's copies begin at slabs, and a batch of matrices follow one another

Status check_w4_type(const char* name, DataType type);
Status check_w4_shape(std::int64_t n, std::int64_t k, const W4Format& format);

// `problem` is validated.
Status check_arguments(const PackW4Problem& problem, const PackW4Arguments& arguments);
Status check_packed_w4(std::int64_t n, std::int64_t k, const W4Format& format, DataType type, const void* packed, const void* weights);

// With every kPacked replaced by its value.
Result<PermuteColumnsProblem> validate(const PermuteColumnsProblem& problem);
bool is_empty(const PermuteColumnsProblem& problem);
Status check_arguments(const PermuteColumnsProblem& problem, const void* from, const std::int32_t* order, const void* to);

}  // namespace sluice
