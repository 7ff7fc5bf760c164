// The small vocabulary shared by problems, plans and kernels.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace sluice {

enum class DataType : std::uint8_t { bf16, fp16, fp32 };

// How a matrix lies in memory. row_major: elements of a row are adjacent.
enum class Layout : std::uint8_t { row_major, column_major };

enum class Activation : std::uint8_t { none, relu, gelu_tanh, silu };

// per_row: bias[m], one value for each row of D. per_column: bias[n], one value for each column.
enum class Bias : std::uint8_t { none, per_row, per_column };

constexpr int size_bytes(DataType type) { return type == DataType::fp32 ? 4 : 2; }

const char* to_string(DataType type);
const char* to_string(Layout layout);
const char* to_string(Activation activation);
const char* to_string(Bias bias);

std::optional<DataType> parse_data_type(std::string_view text);
std::optional<Layout> parse_layout(std::string_view text);
std::optional<Activation> parse_activation(std::string_view text);
std::optional<Bias> parse_bias(std::string_view text);

}  // namespace sluice
