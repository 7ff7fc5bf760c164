// The kernel that packs weights of 4 bits. A CTA makes a slab, read and written once: each thread brings together the 16 bytes of codes
// that a thread of a product's warpgroup will take of a chunk (core/w4_packing.hpp), and at most one scale and zero point.
#pragma once

#include <cstdint>

#include "arch/arch.cuh"
#include "core/w4_layout.hpp"
#include "core/w4_packing.hpp"
#include "kernel/w4/w4_params.hpp"

namespace sluice {

// 64 registers for each thread: 16 words of codes, of which 4 CTAs have 64 KB on their way.
inline constexpr int kPackW4CtasPerSm = 4;

class PackW4Kernel {
 public:
  explicit SLUICE_DEVICE PackW4Kernel(const PackW4Params& params) : p_(params) {
    // Neighbouring CTAs read what lies side by side: along K where a column's codes do, else along N.
    const int cta = arch::cta_in_grid();
    const bool along_k = p_.source == W4Source::plain;
    const int across = along_k ? p_.slabs : p_.blocks;
    const int outer = cta / across, inner = cta - outer * across;
    block_ = along_k ? outer : inner;
    slab_ = along_k ? inner : outer;
    target_ = p_.packed + (static_cast<std::int64_t>(block_) * p_.slabs + slab_) * p_.slab_bytes;
  }

  SLUICE_DEVICE void run() const {
    arch::wait_for_predecessor();
    const int thread = arch::warp_in_cta() * 32 + arch::lane();
    if (is_fp8(p_.type))
      store_codes<DataType::e4m3>(thread);
    else
      store_codes<DataType::bf16>(thread);
    store_scale(thread);
  }

 private:
  static constexpr int kChunkThreads = kPackW4Threads / kW4ChunksPerSlab;
  static constexpr int kSteps = kW4StepsPerChunk;         // a word of each
  static constexpr int kWordsAlongK = kW4ChunkElems / 8;  // of a column of a chunk
  struct alignas(16) Vector {
    std::uint32_t words[4];
  };

  // Beside activations of 16 bits, whichever, or of 8.
  template <DataType type>
  SLUICE_DEVICE void store_codes(int thread) const {
    const int chunk = thread / kChunkThreads, in_chunk = thread % kChunkThreads;
    const int column = block_ * kW4BlockColumns + w4_first_column(in_chunk), k = slab_ * kW4SlabElems + chunk * kW4ChunkElems;
    std::uint8_t* const target = target_ + chunk * kW4ChunkBytes + in_chunk * 16;
    const bool whole = (slab_ + 1) * kW4SlabElems <= p_.k && (block_ + 1) * kW4BlockColumns <= p_.n;
    const bool along_k = p_.order == nullptr && p_.source != W4Source::awq;
    if (whole && (along_k || !is_fp8(type))) {
      Vector codes{};
      if (!along_k) {
        SLUICE_UNROLL
        for (int step = 0; step < kSteps; ++step) codes.words[step] = word_of_elements<true, type>(column, k, in_chunk, step);
      } else if constexpr (is_fp8(type)) {
        take_halves_along_k(column, k, in_chunk % 4, codes.words);
      } else {
        take_bytes_along_k(column, k, in_chunk % 4, codes.words);
      }
      arch::store_global(reinterpret_cast<Vector*>(target), codes);
    } else {
      // Slabs at the edges are few: for them, code matters more than time. So it does beside e4m3, where codes come one by one.
      SLUICE_NO_UNROLL
      for (int step = 0; step < kSteps; ++step)
        arch::store_global(reinterpret_cast<std::uint32_t*>(target) + step, word_of_elements<false, type>(column, k, in_chunk, step));
    }
  }

  // From words of 8 elements of a column: of each the thread takes the same byte, two neighbours along K. Lanes of a quad read the same
  // words.
  SLUICE_DEVICE void take_bytes_along_k(int column, int k, int byte, std::uint32_t (&codes)[kSteps]) const {
    SLUICE_UNROLL
    for (int high = 0; high < 2; ++high) {
      std::uint32_t words[kWordsAlongK];
      load_words(column + 8 * high, k, words);
      SLUICE_UNROLL
      for (int i = 0; i < kWordsAlongK; ++i) {
        const std::uint32_t two = words[i] >> (8 * byte) & 0xff;
        codes[i / 2] |= ((two & 0x0f) | (two & 0xf0) << 12) << (4 * (high + i % 2 * 2));
      }
    }
  }

  // Beside activations of 8 bits: of every second word one half, four neighbours along K.
  SLUICE_DEVICE void take_halves_along_k(int column, int k, int half, std::uint32_t (&codes)[kSteps]) const {
    SLUICE_UNROLL
    for (int high = 0; high < 2; ++high) {
      const std::uint32_t* const source = p_.codes + (column + 8 * high) * p_.words.column + (k / 8 + half / 2) * p_.words.along_k;
      std::uint32_t words[kSteps];
      SLUICE_UNROLL
      for (int step = 0; step < kSteps; ++step) words[step] = arch::load_global(source + 2 * step * p_.words.along_k);
      SLUICE_UNROLL
      for (int step = 0; step < kSteps; ++step) codes[step] |= (words[step] >> (half % 2 * 16) & 0xffff) << (16 * high);
    }
  }

  SLUICE_DEVICE void load_words(int column, int k, std::uint32_t (&words)[kWordsAlongK]) const {
    const std::uint32_t* const source = p_.codes + column * p_.words.column + k / 8 * p_.words.along_k;
    if (p_.by_vectors) {
      SLUICE_UNROLL
      for (int v = 0; v < kWordsAlongK / 4; ++v) {
        const Vector four = arch::load_global(reinterpret_cast<const Vector*>(source) + v);
        SLUICE_UNROLL
        for (int i = 0; i < 4; ++i) words[4 * v + i] = four.words[i];
      }
    } else {
      SLUICE_UNROLL
      for (int i = 0; i < kWordsAlongK; ++i) words[i] = arch::load_global(source + i * p_.words.along_k);
    }
  }

  // From words of 8 columns, or of rows of K in another order: of each the thread takes one code. `whole`: all columns and elements are
  // there.
  template <bool whole, DataType type>
  SLUICE_DEVICE std::uint32_t word_of_elements(int column, int k, int in_chunk, int step) const {
    constexpr int kAlongK = 4;  // elements of a word, each in two columns
    int elements[kAlongK], rows[kAlongK];
    SLUICE_UNROLL
    for (int i = 0; i < kAlongK; ++i) {
      elements[i] = k + w4_element_at(in_chunk, step, i, type);
      rows[i] = p_.order != nullptr && (whole || elements[i] < p_.k) ? arch::load_global(p_.order + elements[i]) : elements[i];
    }
    std::uint32_t word = 0;
    SLUICE_UNROLL
    for (int i = 0; i < 2 * kAlongK; ++i) {
      const int element = elements[i / 2], of_column = column + i % 2 * 8;
      const bool there = whole || (of_column < p_.n && element < p_.k);
      const int one = there ? code(of_column, rows[i / 2]) : padding_code(of_column, element);
      word |= static_cast<std::uint32_t>(one) << (4 * w4_nibble(i % 2, i / 2, type));
    }
    return word;
  }
  SLUICE_DEVICE int code(int column, int row) const {
    const bool awq = p_.source == W4Source::awq;
    const std::int64_t at = (awq ? column / 8 : column) * p_.words.column + (awq ? row : row / 8) * p_.words.along_k;
    return static_cast<int>(arch::load_global(p_.codes + at) >> (4 * (awq ? awq_nibble(column) : row % 8)) & 15);
  }

  // Beyond the columns, or beyond K.
  SLUICE_DEVICE int padding_code(int column, int element) const {
    const int begin = element & -p_.elems_per_scale;  // a power of two
    return w4_padding_code(is_there(column, begin) ? zero(column, begin) : kW4MiddleCode);
  }

  // Whether elements of that column, from `begin` on, share a scale.
  SLUICE_DEVICE bool is_there(int column, int begin) const { return column < p_.n && begin < p_.k; }

  SLUICE_DEVICE void store_scale(int thread) const {
    const int part = thread / kW4BlockColumns;
    if (part >= p_.scales_per_slab) return;
    const int c = w4_column_at_place(thread % kW4BlockColumns);
    const int column = block_ * kW4BlockColumns + c, begin = slab_ * kW4SlabElems + part * p_.elems_per_scale;
    const bool there = is_there(column, begin);
    arch::store_global(reinterpret_cast<std::uint16_t*>(target_ + w4_scale_byte(c, part)), there ? scale(column, begin) : std::uint16_t{0});
    if (p_.format.zero_points)
      arch::store_global(target_ + w4_zero_byte(c, part, p_.format),
                         static_cast<std::uint8_t>(there ? zero(column, begin) : kW4MiddleCode));
  }

  SLUICE_DEVICE std::uint16_t scale(int column, int begin) const {
    const std::int64_t at = column * p_.groups.column + (begin >> p_.group_shift) * p_.groups.along_k;
    float scale;
    if (p_.type_scales == DataType::fp32) {
      scale = arch::load_global(static_cast<const float*>(p_.scales) + at);
    } else {
      const std::uint16_t bits = arch::load_global(static_cast<const std::uint16_t*>(p_.scales) + at);
      scale = p_.type_scales == DataType::bf16 ? arch::bf16_to_float(bits) : arch::fp16_to_float(bits);
    }
    return w4_scale_type(p_.type) == DataType::bf16 ? arch::float_to_bf16(scale) : arch::float_to_fp16(scale);
  }

  SLUICE_DEVICE int zero(int column, int begin) const {
    if (!p_.format.zero_points) return kW4MiddleCode;
    const std::int64_t group = begin >> p_.group_shift;
    if (p_.source == W4Source::plain)
      return arch::load_global(static_cast<const std::uint8_t*>(p_.zeros) + column * p_.groups.column + group * p_.groups.along_k);
    const std::uint32_t word = arch::load_global(static_cast<const std::uint32_t*>(p_.zeros) + group * (p_.n / 8) + column / 8);
    const int nibble = p_.source == W4Source::awq ? awq_nibble(column) : column % 8;
    return static_cast<int>(word >> (4 * nibble) & 15) + p_.less_one;
  }

  const PackW4Params& p_;
  std::uint8_t* target_;
  int block_, slab_;
};

SLUICE_DEVICE void run_pack_w4_kernel(const PackW4Params& params) { PackW4Kernel(params).run(); }

}  // namespace sluice
