// Packed weights of 4 bits in memory and in files of `sluice pack`, and as B of `sluice gemm`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "npy.hpp"
#include "planning.hpp"
#include "sluice/types.hpp"
#include "sluice/w4.hpp"

namespace sluice::cli {

inline constexpr std::int64_t kBlockColumns = 64, kSlabElems = 128;

// Memory aligned as packed weights must be.
class Packed {
 public:
  explicit Packed(const PackW4Problem& problem);
  void* data() { return lines_.data(); }
  std::span<const std::byte> bytes() const { return std::as_bytes(std::span(lines_)); }

 private:
  struct alignas(256) Line {
    std::byte bytes[256];
  };
  std::vector<Line> lines_;
};

// Of the array in a file: [blocks of 64 columns, slabs of 128 elements of K, bytes of a slab].
std::vector<std::int64_t> packed_shape(const PackW4Problem& problem);
// The bytes of a slab tell the formats apart, but for whole columns, which lie as groups of 128 do. Nothing: no array of that kind.
std::optional<W4Format> format_of_packed(const NpyArray& array);

struct W4Operand {
  W4Format format;
  std::vector<std::byte> packed;  // matrices one after another
};

// A file says its format but for whole columns, which lie as groups of 128 do, and for the type of the scales; and n and k no nearer than
// the tiles that they fill.
Result<W4Operand> read_packed_w4(const std::string& path, std::int64_t n, std::int64_t k, const W4Flags& flags);

// A, row-major and of 16 bits, with its columns in the order of K that `sluice pack --order` wrote for a layer with act-order: A[:, order].
Result<std::vector<std::byte>> order_columns(const std::vector<std::byte>& a, std::int64_t rows, std::int64_t columns,
                                             const std::string& path);

// Random codes, zero points and scales, of so many matrices. Scales have few bits, so that bf16 holds the weights as they are.
Result<W4Operand> random_w4(std::int64_t matrices, std::int64_t n, std::int64_t k, DataType type, const W4Flags& flags, std::uint64_t seed);

}  // namespace sluice::cli
