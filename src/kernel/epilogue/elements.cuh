// Results as they lie in memory, and in staging buffers.
#pragma once

#include <cstdint>
#include <type_traits>

#include "kernel/gemm_params.cuh"

namespace sluice {

// Elements in memory: the 16-bit types as their bits.
template <DataType type>
struct Element {
  static constexpr bool kIsBf16 = type == DataType::bf16;
  using Type = std::conditional_t<type == DataType::fp32, float, std::uint16_t>;

  static SLUICE_DEVICE Type from_float(float x) {
    if constexpr (type == DataType::fp32)
      return x;
    else
      return kIsBf16 ? arch::float_to_bf16(x) : arch::float_to_fp16(x);
  }
  static SLUICE_DEVICE float to_float(Type x) {
    if constexpr (type == DataType::fp32)
      return x;
    else
      return kIsBf16 ? arch::bf16_to_float(x) : arch::fp16_to_float(x);
  }
  static SLUICE_DEVICE std::uint32_t pack(float low, float high) {
    static_assert(type != DataType::fp32);
    return kIsBf16 ? arch::pack_bf16(low, high) : arch::pack_fp16(low, high);
  }
};

// Where a box of D begins.
struct BoxCorner {
  int m;
  int n;
  int batch;
  int row_end;  // of its group
};

// Byte offset of a 16-byte packet in a box whose rows are `row_bytes` long, swizzled as a tensor map of that inner extent swizzles:
// the 128-byte line's number, taken modulo the packets of a row, turns the packet's. (Rows of one packet lie as they are.)
template <int row_bytes>
SLUICE_DEVICE std::uint32_t packet_offset(int row, int packet) {
  constexpr int kRowsPerLine = kSwizzleBytes / row_bytes;
  constexpr int kPackets = row_bytes / 16;
  return static_cast<std::uint32_t>(row * row_bytes + (packet ^ (row / kRowsPerLine % kPackets)) * 16);
}

}  // namespace sluice
