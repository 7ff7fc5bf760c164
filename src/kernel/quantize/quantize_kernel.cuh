// The quantize kernel: FP8 numbers and their scales from wider ones. Each thread fetches all of its part before it looks at any of it, the
// largest magnitude under each scale is found among the lanes of a strip, or among all threads of a block or a row, and what the threads
// hold is written, scaled: x is read once, but for rows longer than what they hold, whose further parts are read twice.
// core/quantize_config.hpp says how strips and threads go together.
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "arch/streaming.cuh"
#include "core/quantize_config.hpp"
#include "kernel/quantize/quantize_params.hpp"
#include "kernel/quantize/scale_of_block.cuh"

namespace sluice {

template <QuantizeConfig config>
class QuantizeKernel {
 public:
  explicit SLUICE_DEVICE QuantizeKernel(const QuantizeParams& params) : params_(params), place_(first_place(params.strips_in_row)) {}

  SLUICE_DEVICE void run() {
    arch::allow_successor();
    arch::wait_for_predecessor();
    if constexpr (begin_in_turn(config))
      if (arch::cta_in_grid() >= params_.waiting_from && arch::cta_in_grid() < params_.waiting_to) arch::pause_ns(kHeadStartNs);
    if (params_.by_vectors)
      fetch_and_write<true>();
    else
      fetch_and_write<false>();
  }

 private:
  static constexpr bool kScaledByBlock = config.scaling == Scaling::per_block_128, kScaledByRow = config.scaling == Scaling::per_vector;
  static constexpr bool kMultiplies = config.input == QuantizeInput::silu_times;
  static constexpr int kLanes = lanes_per_strip(config);
  static constexpr int kStrips = strips_per_thread(config);
  static constexpr int kWarps = threads_per_cta(config) / 32;
  static constexpr int kVector = vector_elems(config.type_x);
  static constexpr int kWords = kVectorBytes / 4;
  static constexpr int kBeside = kScaledByRow ? threads_per_cta(config) * kVector : kStripElems;  // columns to a thread's next vector
  using Vector = std::uint32_t[kWords];
  using Held = std::conditional_t<kMultiplies, float[kVector], Vector>;  // products, or words as they came

  // The first vector of this thread. The others, one in each of its strips, lie below it in a block, and beside it otherwise.
  struct Place {
    int row;
    int column;
  };
  static SLUICE_DEVICE Place first_place(int strips_in_row) {
    const int team = arch::warp_in_cta() * (32 / kLanes) + arch::lane() / kLanes, cta = arch::cta_in_grid();
    if constexpr (kScaledByRow) return {cta, (arch::warp_in_cta() * 32 + arch::lane()) * kVector};
    Place place;
    if constexpr (kScaledByBlock) {
      const int block_row = cta / strips_in_row;
      place = {block_row * kScaleBlockElems + team * kStrips, (cta - block_row * strips_in_row) * kStripElems};
    } else {
      const std::uint32_t runs_in_row = (strips_in_row + kStrips - 1) / kStrips;
      const std::uint32_t run = static_cast<std::uint32_t>(cta) * teams_per_cta(config) + team;
      place = {static_cast<int>(run / runs_in_row), static_cast<int>(run % runs_in_row) * kStrips * kStripElems};
    }
    place.column += lane_in_strip() * kVector;
    return place;
  }
  static SLUICE_DEVICE int lane_in_strip() { return arch::lane() & (kLanes - 1); }
  // Whether the first element of this thread in that strip is there.
  SLUICE_DEVICE bool inside(int strip) const {
    return kScaledByBlock ? place_.row + strip < params_.m && place_.column < params_.k
                          : place_.row < params_.m && place_.column + strip * kBeside < params_.k;
  }
  // Where it is in a matrix.
  SLUICE_DEVICE std::uint64_t element(int strip, std::uint32_t leading) const {
    const std::uint64_t first = static_cast<std::uint64_t>(static_cast<std::uint32_t>(place_.row)) * leading;
    return first + static_cast<std::uint32_t>(place_.column) + strip * std::uint64_t{kScaledByBlock ? leading : kBeside};
  }

  template <bool by_vectors>
  SLUICE_DEVICE void fetch_and_write() {
    if constexpr (kScaledByRow) return write_row<by_vectors>();
    fetch<by_vectors>();
    if constexpr (kScaledByBlock)
      write_block<by_vectors>();
    else
      write_strips<by_vectors>();
  }

  template <bool by_vectors>
  SLUICE_DEVICE void fetch() {
    if constexpr (kMultiplies) {
      Vector x[kStrips], y[kStrips];
      SLUICE_UNROLL
      for (int s = 0; s < kStrips; ++s) {
        fetch_vector<by_vectors>(params_.x, params_.ldx, s, x[s]);
        fetch_vector<by_vectors>(params_.y, params_.ldy, s, y[s]);
      }
      SLUICE_UNROLL
      for (int s = 0; s < kStrips; ++s) {
        SLUICE_UNROLL
        for (int i = 0; i < kVector; ++i) held_[s][i] = arch::silu(number(x[s], i)) * number(y[s], i);
      }
    } else {
      SLUICE_UNROLL
      for (int s = 0; s < kStrips; ++s) fetch_vector<by_vectors>(params_.x, params_.ldx, s, held_[s]);
    }
  }

  // Zeros where nothing is.
  template <bool by_vectors>
  SLUICE_DEVICE void fetch_vector(const void* matrix, std::uint32_t leading, int strip, Vector& words) const {
    using Bits = std::conditional_t<config.type_x == DataType::fp32, std::uint32_t, std::uint16_t>;
    const Bits* const source = static_cast<const Bits*>(matrix) + element(strip, leading);
    if constexpr (by_vectors) {
      arch::load_streaming(source, inside(strip), words);
    } else {
      constexpr int kPerWord = kVector / kWords;
      SLUICE_UNROLL
      for (int w = 0; w < kWords; ++w) {
        words[w] = 0;
        SLUICE_UNROLL
        for (int i = 0; i < kPerWord; ++i)
          if (holds(strip, w * kPerWord + i))
            words[w] |= static_cast<std::uint32_t>(arch::load_global(source + w * kPerWord + i)) << (16 * i);
      }
    }
  }
  // Whether element i of the vector is there.
  SLUICE_DEVICE bool holds(int strip, int i) const {
    return inside(strip) && place_.column + (kScaledByBlock ? 0 : strip * kBeside) + i < params_.k;
  }

  // Element i of a vector, in fp32.
  static SLUICE_DEVICE float number(const Vector& words, int i) {
    if constexpr (config.type_x == DataType::fp32) {
      return arch::as_float(static_cast<int>(words[i]));
    } else {
      const auto bits = static_cast<std::uint16_t>(words[i / 2] >> (16 * (i % 2)));
      return config.type_x == DataType::bf16 ? arch::bf16_to_float(bits) : arch::fp16_to_float(bits);
    }
  }
  SLUICE_DEVICE float input(int strip, int i) const {
    if constexpr (kMultiplies)
      return held_[strip][i];
    else
      return number(held_[strip], i);
  }

  // Between finding the largest and scaling. A number of 16 bits is widened in an instruction; kept wide in the meantime, they would take
  // twice the registers.
  SLUICE_DEVICE void stay_narrow() {
    if constexpr (!kMultiplies) {
      SLUICE_UNROLL
      for (Vector& words : held_) {
        SLUICE_UNROLL
        for (std::uint32_t& word : words) word = arch::opaque(word);
      }
    }
  }

  SLUICE_DEVICE float largest_in_lane(int strip) const {
    float largest = 0;
    SLUICE_UNROLL
    for (int i = 0; i < kVector; ++i) largest = arch::maximum(largest, fabsf(input(strip, i)));
    return largest;
  }

  SLUICE_DEVICE float largest_in_thread() const {
    float largest = 0;
    SLUICE_UNROLL
    for (int s = 0; s < kStrips; ++s) largest = arch::maximum(largest, largest_in_lane(s));
    return largest;
  }

  template <bool by_vectors>
  SLUICE_DEVICE void write_strips() {
    float largest[kStrips];
    SLUICE_UNROLL
    for (int s = 0; s < kStrips; ++s) largest[s] = largest_in_lane(s);
    SLUICE_UNROLL
    for (int mask = kLanes / 2; mask > 0; mask /= 2) {
      SLUICE_UNROLL
      for (int s = 0; s < kStrips; ++s) largest[s] = arch::maximum(largest[s], arch::shuffle_xor(largest[s], mask));
    }
    // Two divisions cost more than a vector of numbers. Lane s works out the scale of strip s, for all.
    const int mine = lane_in_strip();
    float largest_of_mine = largest[0];
    SLUICE_UNROLL
    for (int s = 1; s < kStrips; ++s)
      if (mine == s) largest_of_mine = largest[s];
    const float scale = scale_of(largest_of_mine), inverse = 1.0f / scale;
    const int column = place_.column - mine * kVector + mine * kStripElems;  // where that strip begins
    if (mine < kStrips && place_.row < params_.m && column < params_.k) store_scale(column, scale);
    stay_narrow();
    SLUICE_UNROLL
    for (int s = 0; s < kStrips; ++s) write<by_vectors>(s, arch::from_lane(inverse, arch::lane() - mine + s));
  }

  template <bool by_vectors>
  SLUICE_DEVICE void write_block() {
    const float scale = scale_of(largest_in_cta(largest_in_thread())), inverse = 1.0f / scale;
    if (arch::warp_in_cta() == 0 && arch::lane() == 0) store_scale(place_.column, scale);
    stay_narrow();
    SLUICE_UNROLL
    for (int s = 0; s < kStrips; ++s) write<by_vectors>(s, inverse);
  }

  // The part of a row that comes last is looked at first, so that the first one is held when the scale is known.
  template <bool by_vectors>
  SLUICE_DEVICE void write_row() {
    constexpr int kPart = kStrips * kBeside;
    const int first = place_.column;
    float largest = 0;
    for (int begin = (params_.k - 1) / kPart * kPart; begin >= 0; begin -= kPart) {
      place_.column = first + begin;
      fetch<by_vectors>();
      largest = arch::maximum(largest, largest_in_thread());
    }
    const float scale = scale_of(largest_in_cta(largest)), inverse = 1.0f / scale;
    if (first == 0) store_scale(0, scale);
    stay_narrow();
    for (int begin = 0; begin < params_.k; begin += kPart) {
      place_.column = first + begin;
      if (begin > 0) fetch<by_vectors>();
      SLUICE_UNROLL
      for (int s = 0; s < kStrips; ++s) write<by_vectors>(s, inverse);
    }
  }

  // Of all threads' values, to all of them.
  static SLUICE_DEVICE float largest_in_cta(float value) {
    SLUICE_UNROLL
    for (int mask = 16; mask > 0; mask /= 2) value = arch::maximum(value, arch::shuffle_xor(value, mask));
    const arch::SharedAddress warps = arch::shared_address(arch::dynamic_shared_memory());
    const int warp = arch::warp_in_cta();  // asked for by all lanes: one that asked alone would wait for the others
    if (arch::lane() == 0) arch::store_shared(warps + 4 * warp, value);
    arch::sync_cta();
    float of_warp[1];  // each in some lane
    arch::load_shared(warps + 4 * (arch::lane() % kWarps), of_warp);
    value = of_warp[0];
    SLUICE_UNROLL
    for (int mask = kWarps / 2; mask > 0; mask /= 2) value = arch::maximum(value, arch::shuffle_xor(value, mask));
    return value;
  }

  SLUICE_DEVICE float scale_of(float largest) const {
    const float scale = scale_of_numbers(config.type_q, largest);
    if (largest == 0.0f) return 1.0f;
    return params_.power_of_two_scales ? power_of_two_from(scale) : scale;
  }
  // The least that is not below a positive normal number; infinity stays.
  static SLUICE_DEVICE float power_of_two_from(float x) {
    constexpr std::uint32_t kFraction = 0x7fffff, kExponent = 0x7f800000;
    return arch::as_float(static_cast<int>((arch::as_bits(x) + kFraction) & kExponent));
  }

  SLUICE_DEVICE void store_scale(int column, float scale) const {
    arch::store_global(params_.scale + params_.scales.at(0, place_.row, column), scale);
  }

  template <bool by_vectors>
  SLUICE_DEVICE void write(int strip, float inverse) const {
    struct alignas(kVector) Bytes {
      std::uint32_t words[kVector / 4];
    } bytes;
    SLUICE_UNROLL
    for (int w = 0; w < kVector / 4; ++w) {
      float scaled[4];
      SLUICE_UNROLL
      for (int i = 0; i < 4; ++i) scaled[i] = input(strip, 4 * w + i) * inverse;
      bytes.words[w] = config.type_q == DataType::e4m3 ? arch::pack_e4m3(scaled) : arch::pack_e5m2(scaled);
    }
    std::uint8_t* const target = params_.q + element(strip, params_.ldq);
    if constexpr (by_vectors) {
      if (inside(strip)) arch::store_global(reinterpret_cast<Bytes*>(target), bytes);
    } else {
      SLUICE_UNROLL
      for (int i = 0; i < kVector; ++i)
        if (holds(strip, i)) arch::store_global(target + i, static_cast<std::uint8_t>(bytes.words[i / 4] >> (8 * (i % 4))));
    }
  }

  const QuantizeParams& params_;
  Place place_;
  Held held_[kStrips];
};

template <QuantizeConfig config>
SLUICE_DEVICE void run_quantize_kernel(const QuantizeParams& params) {
  QuantizeKernel<config>(params).run();
}

}  // namespace sluice
