// What a launch passes to a GEMM kernel about scales.
#pragma once

#include <cstdint>

#include "core/scale_layout.hpp"

namespace sluice {

// Of one FP8 operand.
struct ScaleParams {
  const float* data;  // null: none
  ScaleStrides strides;
  std::int32_t vectors;  // of the operand
  bool adjacent;         // those of neighbouring vectors are neighbours
  bool runs;             // and those of a tile that begins at a multiple of kRunWords are whole packets
  bool anywhere;         // a group begins where it likes, and so do its tiles
};

inline constexpr int kRunWords = 4;  // in the 16 bytes that the copy engine takes

SLUICE_HOST_DEVICE inline bool are_adjacent(const ScaleStrides& strides) {
  return strides.along_k && strides.block_shift == 0 && strides.vector == 1;
}
SLUICE_HOST_DEVICE inline bool come_in_runs(const float* data, const ScaleStrides& strides, std::int64_t vectors) {
  constexpr std::int64_t kWords = kRunWords;
  return are_adjacent(strides) && vectors % kWords == 0 && strides.k_block % kWords == 0 && strides.batch % kWords == 0 &&
         reinterpret_cast<std::uintptr_t>(data) % (kWords * sizeof(float)) == 0;
}

SLUICE_HOST_DEVICE inline ScaleParams scales_of(const float* data, Scaling scaling, const ScaleStrides& strides, std::int64_t vectors,
                                                bool tiles_begin_anywhere) {
  if (scaling == Scaling::none) return {};
  return {.data = data,
          .strides = strides,
          .vectors = static_cast<std::int32_t>(vectors),
          .adjacent = are_adjacent(strides),
          .runs = come_in_runs(data, strides, vectors),
          .anywhere = tiles_begin_anywhere};
}

// Of D in FP8.
struct ResultScaleParams {
  float* data;  // null: none
  ScaleStrides strides;
};

}  // namespace sluice
