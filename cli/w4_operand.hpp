// B of `sluice gemm` as packed weights of 4 bits: from a file of `sluice pack`, or random.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "planning.hpp"
#include "sluice/types.hpp"
#include "sluice/w4_format.hpp"

namespace sluice::cli {

struct W4Operand {
  W4Format format;
  std::vector<std::byte> packed;  // matrices one after another
};

// A file says its format but for whole columns, which lie as groups of 128 do, and for the type of the scales; and n and k no nearer than
// the tiles that they fill.
Result<W4Operand> read_packed_w4(const std::string& path, std::int64_t n, std::int64_t k, const W4Flags& flags);

// Random codes, zero points and scales, of so many matrices. Scales have few bits, so that bf16 holds the weights as they are.
Result<W4Operand> random_w4(std::int64_t matrices, std::int64_t n, std::int64_t k, DataType type, const W4Flags& flags, std::uint64_t seed);

}  // namespace sluice::cli
