#include "operands.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <random>

#include <fmt/core.h>

#include "sluice/verify.hpp"

namespace sluice::cli {
namespace {

template <class T>
T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

// Rounded to odd, so that rounding the float again to fewer bits gives what rounding the double at once would have given.
float round_to_odd(double value) {
  const float nearest = static_cast<float>(value);
  if (static_cast<double>(nearest) == value || !std::isfinite(value)) return nearest;
  const bool away = std::abs(static_cast<double>(nearest)) > std::abs(value);
  const float toward_zero = away ? std::nextafter(nearest, 0.0f) : nearest;
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(toward_zero) | 1u);
}

// From Fortran order, where the batch varies fastest, to matrices one after another, each column-major.
std::vector<std::byte> gather_fortran_batch(const Matrices& matrices, int element_bytes) {
  std::vector<std::byte> gathered(matrices.data.size());
  const std::int64_t elements = matrices.rows * matrices.columns;
  for (std::int64_t b = 0; b < matrices.batch; ++b)
    for (std::int64_t i = 0; i < elements; ++i)
      std::memcpy(gathered.data() + (b * elements + i) * element_bytes, matrices.data.data() + (i * matrices.batch + b) * element_bytes,
                  static_cast<std::size_t>(element_bytes));
  return gathered;
}

}  // namespace

double load_element(const std::byte* from, NpyType type) {
  switch (type) {
    case NpyType::bf16:
      return from_bf16_bits(load<std::uint16_t>(from));
    case NpyType::fp16:
      return from_fp16_bits(load<std::uint16_t>(from));
    case NpyType::fp32:
      return load<float>(from);
    case NpyType::fp64:
    case NpyType::bytes:
      break;
  }
  return load<double>(from);
}

bool store_element(std::byte* to, DataType type, double value) {
  bool too_large = false;
  switch (type) {
    case DataType::fp32: {
      const float rounded = static_cast<float>(value);
      std::memcpy(to, &rounded, sizeof rounded);
      too_large = std::isinf(rounded);
      break;
    }
    case DataType::bf16:
    case DataType::fp16: {
      const std::uint16_t bits = type == DataType::bf16 ? to_bf16_bits(round_to_odd(value)) : to_fp16_bits(round_to_odd(value));
      std::memcpy(to, &bits, sizeof bits);
      too_large = std::isinf(type == DataType::bf16 ? from_bf16_bits(bits) : from_fp16_bits(bits));
      break;
    }
    case DataType::e4m3:
    case DataType::e5m2:
      *to = std::byte{type == DataType::e4m3 ? to_e4m3_bits(round_to_odd(value)) : to_e5m2_bits(round_to_odd(value))};
      too_large = std::abs(value) > largest_fp8(type);
      break;
    case DataType::int4:  // comes packed
      break;
  }
  return too_large && (std::isfinite(value) || is_fp8(type));
}

Result<Matrices> to_matrices(NpyArray array, const std::string& path, bool file_holds_transpose) {
  const std::size_t rank = array.shape.size();
  if (rank != 2 && rank != 3)
    return Error{ErrorCode::invalid_argument,
                 fmt::format("{}: has shape {}, {} dimension{}; a matrix has 2 and a batch of matrices 3{}", path, shape_text(array.shape),
                             rank, rank == 1 ? "" : "s", rank < 2 ? ": save array.reshape(rows, columns)" : "")};
  Matrices matrices{.type = array.type,
                    .batched = rank == 3,
                    .batch = rank == 3 ? array.shape[0] : 1,
                    .rows = array.shape[rank - 2],
                    .columns = array.shape[rank - 1],
                    .layout = array.fortran_order ? Layout::column_major : Layout::row_major,
                    .data = std::move(array.data)};
  if (array.fortran_order && matrices.batch > 1) {
    matrices.data = gather_fortran_batch(matrices, size_bytes(matrices.type));
    matrices.rearranged = true;
  }
  if (file_holds_transpose) {
    std::swap(matrices.rows, matrices.columns);
    matrices.layout = matrices.layout == Layout::row_major ? Layout::column_major : Layout::row_major;
  }
  return matrices;
}

void make_row_major(Matrices& matrices) {
  if (matrices.layout == Layout::row_major) return;
  const std::int64_t bytes = size_bytes(matrices.type), elements = matrices.rows * matrices.columns;
  std::vector<std::byte> turned(matrices.data.size());
  for (std::int64_t b = 0; b < matrices.batch; ++b)
    for (std::int64_t row = 0; row < matrices.rows; ++row)
      for (std::int64_t column = 0; column < matrices.columns; ++column)
        std::memcpy(turned.data() + (b * elements + row * matrices.columns + column) * bytes,
                    matrices.data.data() + (b * elements + column * matrices.rows + row) * bytes, static_cast<std::size_t>(bytes));
  matrices.data = std::move(turned);
  matrices.layout = Layout::row_major;
  matrices.rearranged = true;
}

Matrices random_matrices(std::int64_t batch, std::int64_t rows, std::int64_t columns, Layout layout, std::uint64_t seed) {
  Matrices x{.type = NpyType::fp32, .batched = batch > 0, .batch = std::max<std::int64_t>(batch, 1)};
  x.rows = rows, x.columns = columns, x.layout = layout;
  x.data.resize(static_cast<std::size_t>(x.batch * rows * columns) * sizeof(float));
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  for (std::size_t at = 0; at < x.data.size(); at += sizeof(float)) {
    const float value = normal(random);
    std::memcpy(x.data.data() + at, &value, sizeof value);
  }
  return x;
}

std::string elements_are(std::int64_t count, const char* what) {
  return count == 1 ? fmt::format("1 element of {} is", what) : fmt::format("{} elements of {} are", count, what);
}

std::vector<std::byte> convert(std::vector<std::byte> data, NpyType from, DataType to, std::int64_t& too_large) {
  if (same_type(from, to)) return data;
  const std::size_t from_bytes = static_cast<std::size_t>(size_bytes(from)), to_bytes = static_cast<std::size_t>(sluice::size_bytes(to));
  const std::size_t count = data.size() / from_bytes;
  std::vector<std::byte> converted(count * to_bytes);
  for (std::size_t i = 0; i < count; ++i) {
    const double value = load_element(data.data() + i * from_bytes, from);
    if (store_element(converted.data() + i * to_bytes, to, value)) ++too_large;
  }
  return converted;
}

bool same_type(NpyType file, DataType type) {
  return (file == NpyType::bf16 && type == DataType::bf16) || (file == NpyType::fp16 && type == DataType::fp16) ||
         (file == NpyType::fp32 && type == DataType::fp32) || (file == NpyType::bytes && is_fp8(type));
}

}  // namespace sluice::cli
