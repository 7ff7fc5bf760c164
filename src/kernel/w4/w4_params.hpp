// What launches pass to the kernels that pack weights of 4 bits and permute columns.
#pragma once

#include <cstdint>

#include "sluice/w4.hpp"

namespace sluice {

// Where something of a column c and a place i along K lies, in elements.
struct W4Strides {
  std::int64_t column, along_k;
};

struct PackW4Params {
  const std::uint32_t* codes;
  const void* scales;
  const void* zeros;
  const std::int32_t* order;  // null: as they lie
  std::uint8_t* packed;
  W4Strides words;   // of the codes. Plain, GPTQ: a word is 8 elements of K of a column. AWQ: 8 columns of an element
  W4Strides groups;  // of the scales, and of plain zero points
  std::int32_t n, k;
  std::int32_t blocks, slabs;
  // Of the format, worked out here because divisions take longer than the rest.
  std::int32_t slab_bytes, scales_per_slab, elems_per_scale;
  std::int32_t group_shift;  // the group of element k is k >> this
  W4Format format;
  W4Source source;
  DataType type, type_scales;
  std::int32_t less_one;  // what GPTQ's zero points lack
  bool by_vectors;        // the words of a column lie one behind another, four of them aligned to 16 bytes
};

struct PermuteColumnsParams {
  const std::uint16_t* from;
  const std::int32_t* order;
  std::uint16_t* to;
  std::int64_t ld_from, ld_to;
  std::int32_t m, k;
  std::int32_t strips;
  bool by_vectors;  // no vector of the result crosses the end of a row, and all are aligned
};

}  // namespace sluice
