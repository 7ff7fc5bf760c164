// Results in FP8: what D would be in fp32, times the reciprocal of its scale. A scale for all of D is given, and applied where elements are
// finished one by one. Those of each 128 columns of a row are found before, by the warpgroup that holds them all in its accumulators:
// the greatest magnitude of a row is in four lanes.
#pragma once

#include <cmath>
#include <cstdint>

#include "arch/streaming.cuh"
#include "kernel/epilogue/finish_elements.cuh"
#include "kernel/mainloop/wgmma_consumer.cuh"
#include "kernel/quantize/scale_of_block.cuh"

namespace sluice {

// Whether alpha, bias, activation and scales have been applied, where the accumulators are (RowScales), and only rounding is left.
template <KernelConfig config>
SLUICE_DEVICE bool applied_to_sums(const EpilogueParams& params) {
  return can_find_scales(config) && params.scale_d.data != nullptr && params.scale_d.strides.along_k;
}

// By what elements of a matrix of D remain to be multiplied.
template <KernelConfig config>
SLUICE_DEVICE float inverse_scale(const EpilogueParams& params, int batch) {
  if (params.scale_d.data == nullptr || applied_to_sums<config>(params)) return 1.0f;
  return 1.0f / arch::load_global(params.scale_d.data + params.scale_d.strides.at(batch, 0, 0));
}

// x = activation(x + bias), neighbours in a row of D.
template <int size>
SLUICE_DEVICE void add_bias_and_activate(const EpilogueParams& params, int m, int n, int batch, float (&x)[size]) {
  if (params.bias_kind == Bias::per_row) {
    const float bias = arch::load_global(static_cast<const float*>(params.bias) + m);
    SLUICE_UNROLL
    for (float& value : x) value += bias;
  } else if (params.bias_kind != Bias::none) {
    const int count = params.n - n < size ? params.n - n : size;
    const std::int64_t first = params.bias_kind == Bias::per_group_column ? static_cast<std::int64_t>(batch) * params.n : 0;
    Neighbours<DataType::fp32, size>::add(x, 1.0f, params.bias, first + n, count, params.aligned_bias);
  }
  SLUICE_UNROLL
  for (float& value : x) value = activate(value, params.activation);
}

// D[m, n .. n + 4) from alpha A B, or from what RowScales has left.
template <KernelConfig config>
SLUICE_DEVICE void finish_in_fp8(const EpilogueParams& params, int m, int n, int batch, float (&x)[4], float inverse) {
  if (!applied_to_sums<config>(params)) {
    add_bias_and_activate(params, m, n, batch, x);
    SLUICE_UNROLL
    for (float& value : x) value *= inverse;
  }
  const std::uint32_t bytes = params.type_d == DataType::e4m3 ? arch::pack_e4m3(x) : arch::pack_e5m2(x);
  std::uint8_t* const target = static_cast<std::uint8_t*>(params.d) + batch * params.batch_stride_d_elems + m * params.ldd_elems + n;
  if (params.n - n >= 4 && params.aligned_d) {
    arch::store_global(reinterpret_cast<std::uint32_t*>(target), bytes);
  } else {
    SLUICE_UNROLL
    for (int i = 0; i < 4; ++i)
      if (i < params.n - n) arch::store_global(target + i, static_cast<std::uint8_t>(bytes >> (8 * i)));
  }
}

// Finds the scales of a warpgroup's rows of a tile, which is one block of 128 columns, writes them, and leaves in place of the sums what is
// to be rounded.
template <KernelConfig config>
class RowScales {
 public:
  static SLUICE_DEVICE void apply(const EpilogueParams& params, Accumulators<config>& sums, const WorkTile& tile, int first_block) {
    if (!applied_to_sums<config>(params)) return;
    const int column = tile.tile_n * config.tile_n;
    SLUICE_UNROLL
    for (int block = 0; block < Accumulators<config>::kBlocks; ++block) {
      const int row = tile.first_row + (first_block + block) * kWgmmaRows + first_row_in_block();
      float(&values)[kCount] = sums.values[block];
      finish(params, values, tile, row, column + arch::lane() % 4 * 2);
      float largest[2] = {0.0f, 0.0f};
      SLUICE_UNROLL
      for (int i = 0; i < kCount; ++i) largest[i % 4 / 2] = arch::maximum(largest[i % 4 / 2], fabsf(values[i]));
      float inverse[2];
      SLUICE_UNROLL
      for (int half = 0; half < 2; ++half) {
        SLUICE_UNROLL
        for (int mask = 1; mask < 4; mask *= 2) largest[half] = arch::maximum(largest[half], arch::shuffle_xor(largest[half], mask));
        const float scale = scale_of_block(params.type_d, largest[half]);
        inverse[half] = 1.0f / scale;
        const int its_row = row + 8 * half;
        if (arch::lane() % 4 == 0 && its_row < tile.row_end && column < params.n)
          arch::store_global(params.scale_d.data + params.scale_d.strides.at(tile.group, its_row, column), scale);
      }
      SLUICE_UNROLL
      for (int i = 0; i < kCount; ++i) values[i] *= inverse[i % 4 / 2];
    }
  }

 private:
  static constexpr int kCount = Accumulators<config>::kPerBlock;

  // What D is in fp32, and 0 behind its last column. Values 4 j to 4 j + 3 are columns 8 j + {0, 1} from `column` on of rows `row` and
  // `row` + 8.
  static SLUICE_DEVICE void finish(const EpilogueParams& params, float (&values)[kCount], const WorkTile& tile, int row, int column) {
    SLUICE_UNROLL
    for (float& value : values) value *= params.alpha;
    arch::pin_registers(values);  // rounded, before a bias is added, as in fp32
    if (params.bias_kind != Bias::none || params.activation != Activation::none) {
      // The code for one packet, to which all registers come in turn: they need indices known to the compiler, and there are too many of
      // them for as many copies of an activation.
      SLUICE_NO_UNROLL
      for (int j = 0; j < kCount / 4; ++j) {
        float upper[2] = {values[0], values[1]}, lower[2] = {values[2], values[3]};
        if (row < tile.row_end) add_bias_and_activate(params, row, column + 8 * j, tile.group, upper);
        if (row + 8 < tile.row_end) add_bias_and_activate(params, row + 8, column + 8 * j, tile.group, lower);
        SLUICE_UNROLL
        for (int i = 0; i + 4 < kCount; ++i) values[i] = values[i + 4];
        values[kCount - 4] = upper[0], values[kCount - 3] = upper[1], values[kCount - 2] = lower[0], values[kCount - 1] = lower[1];
      }
    }
    if (params.n - tile.tile_n * config.tile_n >= config.tile_n) return;
    SLUICE_UNROLL
    for (int i = 0; i < kCount; ++i)
      if (column + i / 4 * 8 + i % 2 >= params.n) values[i] = 0.0f;
  }
};

}  // namespace sluice
