// The small vocabulary shared by problems, plans and kernels.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace sluice {

// e4m3, e5m2: 8 bits, with 4 and 5 of exponent (OCP 8-bit Floating Point Specification, 2023). As operands always with K contiguous.
// int4: weights of 4 bits with scales, packed (sluice/w4.hpp). As B only, beside an A of 16 bits or of e4m3.
enum class DataType : std::uint8_t { bf16, fp16, fp32, e4m3, e5m2, int4 };

// How a matrix lies in memory. row_major: elements of a row are adjacent.
enum class Layout : std::uint8_t { row_major, column_major };

enum class Activation : std::uint8_t { none, relu, gelu_tanh, silu };

// per_row: bias[m], one value for each row of D; per_column: bias[n]; per_group_column: bias[batch, n], each matrix's or group's its own.
enum class Bias : std::uint8_t { none, per_row, per_column, per_group_column };

constexpr bool is_fp8(DataType type) { return type == DataType::e4m3 || type == DataType::e5m2; }
// Of one element. Weights of 4 bits come packed, and are counted in bytes.
constexpr int size_bytes(DataType type) { return type == DataType::fp32 ? 4 : is_fp8(type) || type == DataType::int4 ? 1 : 2; }

const char* to_string(DataType type);
const char* to_string(Layout layout);
const char* to_string(Activation activation);
const char* to_string(Bias bias);

std::optional<DataType> parse_data_type(std::string_view text);
std::optional<Layout> parse_layout(std::string_view text);
std::optional<Activation> parse_activation(std::string_view text);
std::optional<Bias> parse_bias(std::string_view text);

}  // namespace sluice
