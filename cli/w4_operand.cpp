#include "w4_operand.hpp"

#include <algorithm>
#include <optional>
#include <random>

#include <fmt/core.h>

#include "npy.hpp"
#include "operands.hpp"
#include "sluice/w4.hpp"

namespace sluice::cli {
namespace {

constexpr std::int64_t kFewestBlocks = 2, kFewestSlabs = 2;  // columns and elements of K are filled up to so many

Error wrong(std::string message) { return {ErrorCode::invalid_argument, std::move(message)}; }

std::int64_t slab_bytes(const W4Format& format) { return packed_w4_bytes(1, 1, format) / (kFewestBlocks * kFewestSlabs); }

Status check_flags(const std::string& path, const W4Format& format, const W4Flags& flags) {
  const int lies_as = flags.group_size.value_or(format.group_size);
  if ((lies_as == 0 ? 128 : lies_as) != format.group_size)
    return wrong(fmt::format("--w4-group {}: {} holds groups of {}; leave it out, the file says", lies_as, path, format.group_size));
  if (flags.zero_points && !format.zero_points)
    return wrong(fmt::format("--w4-zeros: {} holds no zero points; leave it out, the file says", path));
  return Nothing{};
}

// How many blocks or slabs an extent fills.
std::int64_t filled(std::int64_t extent, std::int64_t unit, std::int64_t fewest) {
  const std::int64_t whole = unit * fewest;
  return (extent + whole - 1) / whole * fewest;
}

Status check_extent(const std::string& path, const char* what, std::int64_t extent, std::int64_t pieces, std::int64_t unit,
                    std::int64_t fewest) {
  if (filled(extent, unit, fewest) == pieces) return Nothing{};
  return wrong(fmt::format("{} = {}, but {} holds weights with {} from {} to {}; pass those that were packed", what, extent, path, what,
                           std::max<std::int64_t>(0, pieces - fewest) * unit + 8, pieces * unit));
}

}  // namespace

Packed::Packed(const PackW4Problem& p) : lines_(static_cast<std::size_t>(packed_w4_bytes(p.n, p.k, p.format)) / sizeof(Line)) {}

std::vector<std::int64_t> packed_shape(const PackW4Problem& p) {
  return {filled(p.n, kBlockColumns, kFewestBlocks), filled(p.k, kSlabElems, kFewestSlabs), slab_bytes(p.format)};
}

std::optional<W4Format> format_of_packed(const NpyArray& array) {
  if (array.type != NpyType::bytes || array.shape.size() != 3 || array.fortran_order) return std::nullopt;
  for (const int group_size : {128, 64, 32})
    for (const bool zero_points : {false, true})
      if (const W4Format format{.group_size = group_size, .zero_points = zero_points}; slab_bytes(format) == array.shape[2]) return format;
  return std::nullopt;
}

Result<W4Operand> read_packed_w4(const std::string& path, std::int64_t n, std::int64_t k, const W4Flags& flags) {
  Result<NpyArray> array = read_npy(path, false);
  if (!array) return array.error();
  const std::optional<W4Format> format = format_of_packed(*array);
  if (!format)
    return Error{ErrorCode::bad_format, fmt::format("{}: holds {} {}, no packed weights of 4 bits; make them with `sluice pack`", path,
                                                    to_string(array->type), shape_text(array->shape))};
  if (n <= 0)
    return wrong(fmt::format("{} does not say how many of its {} columns are B's; pass --n", path, array->shape[0] * kBlockColumns));
  if (Status s = check_flags(path, *format, flags); !s) return s.error();
  if (Status s = check_extent(path, "n", n, array->shape[0], kBlockColumns, kFewestBlocks); !s) return s.error();
  if (Status s = check_extent(path, "k", k, array->shape[1], kSlabElems, kFewestSlabs); !s) return s.error();
  W4Operand operand{.format = *format, .packed = std::move(array->data)};
  operand.format.group_size = flags.group_size.value_or(format->group_size);
  return operand;
}

Result<std::vector<std::byte>> order_columns(const std::vector<std::byte>& a, std::int64_t rows, std::int64_t columns,
                                             const std::string& path) {
  const Result<std::vector<std::int64_t>> order = read_npy_integers(path);
  if (!order) return order.error();
  if (static_cast<std::int64_t>(order->size()) != columns)
    return wrong(fmt::format("--order: {} has {} numbers, but A has {} columns; pass what `sluice pack --order` wrote with these weights",
                             path, order->size(), columns));
  std::vector<bool> seen(order->size());
  for (const std::int64_t column : *order) {
    if (column < 0 || column >= columns || seen[static_cast<std::size_t>(column)])
      return wrong(fmt::format("--order: {} in {} {}; an order has each of 0 to {} once", column, path,
                               column < 0 || column >= columns ? "is no column of A" : "comes twice", columns - 1));
    seen[static_cast<std::size_t>(column)] = true;
  }
  const std::vector<std::int32_t> narrow(order->begin(), order->end());
  std::vector<std::byte> ordered(a.size());
  if (Status s = permute_columns_on_cpu({.m = rows, .k = columns}, a.data(), narrow.data(), ordered.data()); !s) return s.error();
  return ordered;
}

Result<W4Operand> random_w4(std::int64_t matrices, std::int64_t n, std::int64_t k, DataType type, const W4Flags& flags,
                            std::uint64_t seed) {
  constexpr DataType kScales = DataType::bf16;  // the few below are exact in any type
  W4Operand operand{.format = to_w4_format(flags)};
  const Result<PackW4Problem> problem =
      validate(PackW4Problem{.n = n, .k = k, .format = operand.format, .type = type, .type_scales = kScales});
  if (!problem) return problem.error();
  const std::int64_t groups = n * w4_groups(k, operand.format);
  Packed packed(*problem);
  std::vector<std::byte> codes(static_cast<std::size_t>(n * k / 2)), scales(static_cast<std::size_t>(2 * groups));
  std::vector<std::byte> zeros(operand.format.zero_points ? static_cast<std::size_t>(groups) : 0);
  std::mt19937_64 random(seed);
  for (std::int64_t matrix = 0; matrix < matrices; ++matrix) {
    for (std::byte& code : codes) code = static_cast<std::byte>(random());
    for (std::byte& zero : zeros) zero = static_cast<std::byte>(random() % 16);
    for (std::size_t i = 0; i < scales.size(); i += 2) {
      const std::uint64_t bits = random();
      store_element(scales.data() + i, kScales, (4.0 + static_cast<double>(bits % 4)) * (bits % 8 < 4 ? 0x1p-4 : 0x1p-5));
    }
    const PackW4Arguments arguments{
        .codes = codes.data(), .scales = scales.data(), .zeros = zeros.empty() ? nullptr : zeros.data(), .packed = packed.data()};
    if (Status s = pack_w4_on_cpu(*problem, arguments); !s) return s.error();
    operand.packed.insert(operand.packed.end(), packed.bytes().begin(), packed.bytes().end());
  }
  return operand;
}

}  // namespace sluice::cli
