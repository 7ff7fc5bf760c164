// Quantisation by the letter of its definition, block by block.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "sluice/quantize.hpp"

#include "core/check_quantize.hpp"
#include "core/quantize_config.hpp"
#include "reference/number_conversion.hpp"
#include "reference/parallel.hpp"
#include "reference/scale_of_block.hpp"

namespace sluice {
namespace {

float element(const void* base, DataType type, std::int64_t at) {
  if (type == DataType::fp32) return static_cast<const float*>(base)[at];
  const std::uint16_t bits = static_cast<const std::uint16_t*>(base)[at];
  return type == DataType::bf16 ? bf16_to_float(bits) : fp16_to_float(bits);
}

float input(const QuantizeProblem& p, const QuantizeArguments& arguments, std::int64_t row, std::int64_t column) {
  const float x = element(arguments.x, p.type_x, row * p.ldx + column);
  if (p.input == QuantizeInput::plain) return x;
  const float inverse = 1.0f / (1.0f + std::exp(-x));
  const float silu = inverse < std::numeric_limits<float>::min() ? x * 0.0f : x * inverse;
  return silu * element(arguments.y, p.type_x, row * p.ldy + column);
}

float scale_of(float largest, const QuantizeProblem& p) {
  const float scale = scale_of_block(p.type_q, largest);
  if (!p.power_of_two_scales || std::isinf(scale)) return scale;
  int exponent = 0;
  const float fraction = std::frexp(scale, &exponent);  // in [0.5, 1)
  return std::ldexp(1.0f, fraction == 0.5f ? exponent - 1 : exponent);
}

// The elements in rows [row, row_end) and columns [column, column_end), which share a scale.
void quantize_block(const QuantizeProblem& p, const QuantizeArguments& arguments, std::int64_t row, std::int64_t row_end,
                    std::int64_t column, std::int64_t column_end) {
  float largest = 0;
  for (std::int64_t r = row; r < row_end; ++r)
    for (std::int64_t c = column; c < column_end; ++c) {
      const float magnitude = std::abs(input(p, arguments, r, c));
      if (magnitude > largest) largest = magnitude;  // a NaN never is
    }
  const float scale = scale_of(largest, p), inverse = 1.0f / scale;
  arguments.scale[scale_strides(p).at(0, row, column)] = scale;
  for (std::int64_t r = row; r < row_end; ++r)
    for (std::int64_t c = column; c < column_end; ++c) {
      const float scaled = input(p, arguments, r, c) * inverse;
      static_cast<std::uint8_t*>(arguments.q)[r * p.ldq + c] = p.type_q == DataType::e4m3 ? float_to_e4m3(scaled) : float_to_e5m2(scaled);
    }
}

}  // namespace

Status quantize_on_cpu(const QuantizeProblem& problem, const QuantizeArguments& arguments, int threads) {
  const Result<QuantizeProblem> valid = validate(problem);
  if (!valid) return valid.error();
  const QuantizeProblem& p = *valid;
  if (Status s = check_arguments(p, arguments); !s) return s;
  if (is_empty(p)) return Nothing{};
  const std::int64_t block_rows = p.scaling == Scaling::per_block_128 ? kScaleBlockElems : 1;
  const std::int64_t block_columns = p.scaling == Scaling::per_vector ? p.k : kScaleBlockElems;
  const std::int64_t bands = (p.m + block_rows - 1) / block_rows;
  parallel(bands, thread_count(threads, bands), [&](const auto& next, int) {
    for (std::int64_t band = next(); band >= 0; band = next())
      for (std::int64_t column = 0; column < p.k; column += block_columns)
        quantize_block(p, arguments, band * block_rows, std::min((band + 1) * block_rows, p.m), column,
                       std::min<std::int64_t>(column + block_columns, p.k));
  });
  return Nothing{};
}

}  // namespace sluice
