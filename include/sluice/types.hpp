// The small vocabulary shared by problems, plans and kernels.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace sluice {

// e4m3, e5m2: 8 bits, with 4 and 5 of exponent (OCP 8-bit Floating Point Specification, 2023). As operands only, always with K contiguous.
enum class DataType : std::uint8_t { bf16, fp16, fp32, e4m3, e5m2 };

// How a matrix lies in memory. row_major: elements of a row are adjacent.
enum class Layout : std::uint8_t { row_major, column_major };

enum class Activation : std::uint8_t { none, relu, gelu_tanh, silu };

// per_row: bias[m], one value for each row of D. per_column: bias[n], one value for each column.
enum class Bias : std::uint8_t { none, per_row, per_column };

// What the numbers of an FP8 operand are to be multiplied by. Scales are fp32. A "vector" is a row of A or a column of B.
//   per_tensor      one number
//   per_vector      one for each vector
//   per_vector_128  one for each vector and each 128 of K ("1x128")
//   per_block_128   one for each 128 vectors and each 128 of K ("128x128"); blocks at the edges have theirs, too
enum class Scaling : std::uint8_t { none, per_tensor, per_vector, per_vector_128, per_block_128 };

constexpr bool is_fp8(DataType type) { return type == DataType::e4m3 || type == DataType::e5m2; }
constexpr int size_bytes(DataType type) { return type == DataType::fp32 ? 4 : is_fp8(type) ? 1 : 2; }

// Whether there is a scale for each 128 of K.
constexpr bool scales_along_k(Scaling scaling) { return scaling == Scaling::per_vector_128 || scaling == Scaling::per_block_128; }

const char* to_string(DataType type);
const char* to_string(Layout layout);
const char* to_string(Activation activation);
const char* to_string(Bias bias);
const char* to_string(Scaling scaling);  // "none", "tensor", "vector", "1x128", "128x128"

std::optional<DataType> parse_data_type(std::string_view text);
std::optional<Layout> parse_layout(std::string_view text);
std::optional<Activation> parse_activation(std::string_view text);
std::optional<Bias> parse_bias(std::string_view text);
std::optional<Scaling> parse_scaling(std::string_view text);

}  // namespace sluice
