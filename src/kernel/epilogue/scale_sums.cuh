// Multiplies finished sums by scales that do not change along K: one for the whole operand, or one for each of its vectors.
#pragma once

#include "kernel/gemm_params.cuh"
#include "kernel/mainloop/wgmma_consumer.cuh"

namespace sluice {

template <KernelConfig config>
class ScaleSums {
 public:
  static SLUICE_DEVICE void apply(Accumulators<config>& sums, const MainloopParams& params, const WorkTile& tile, int first_block) {
    apply(sums, params.scale_p, params.scale_q, tile, first_block);
  }

  // Whether there are any such scales.
  static SLUICE_DEVICE bool any(const MainloopParams& params) { return whole(params.scale_p) || whole(params.scale_q); }

  static SLUICE_DEVICE void apply(Accumulators<config>& sums, const ScaleParams& scale_p, const ScaleParams& scale_q, const WorkTile& tile,
                                  int first_block) {
    if (is_short(config) || !(whole(scale_p) || whole(scale_q))) return;
    using TileP = OperandTile<config, Operand::p>;
    using TileQ = OperandTile<config, Operand::q>;
    const int row = TileP::first_vector(tile) + first_block * kWgmmaRows + first_row_in_block();
    int column = TileQ::first_vector(tile) + arch::lane() % 4 * 2;
    float rows[Accumulators<config>::kBlocks][2];
    SLUICE_UNROLL
    for (int block = 0; block < Accumulators<config>::kBlocks; ++block) {
      rows[block][0] = scale(scale_p, row + block * kWgmmaRows, tile.group);
      rows[block][1] = scale(scale_p, row + block * kWgmmaRows + 8, tile.group);
    }
    SLUICE_UNROLL
    for (int j = 0; j < tile_q(config) / 8; ++j) {
      const float low = scale(scale_q, column + 8 * j, tile.group), high = scale(scale_q, column + 8 * j + 1, tile.group);
      SLUICE_UNROLL
      for (int block = 0; block < Accumulators<config>::kBlocks; ++block) {
        SLUICE_UNROLL
        for (int i = 0; i < 4; ++i) sums.values[block][4 * j + i] *= rows[block][i / 2] * (i % 2 == 0 ? low : high);
      }
      arch::compute_first(sums.values[0][4 * j], column);  // else all columns' scales are loaded at once, into registers there are none of
    }
  }

 private:
  static SLUICE_DEVICE bool whole(const ScaleParams& scales) { return scales.data != nullptr && !scales.strides.along_k; }
  static SLUICE_DEVICE float scale(const ScaleParams& scales, int vector, int group) {
    if (!whole(scales) || vector >= scales.vectors) return 1.0f;
    return arch::load_global(scales.data + scales.strides.at(group, vector, 0));
  }
};

}  // namespace sluice
