// Multiplies finished sums by scales that do not change along K: one for the whole operand, or one for each of its vectors.
#pragma once

#include "kernel/gemm_params.cuh"
#include "kernel/mainloop/wgmma_consumer.cuh"

namespace sluice {

template <KernelConfig config>
class ScaleSums {
 public:
  static SLUICE_DEVICE void apply(Accumulators<config>& sums, const MainloopParams& params, const WorkTile& tile, int first_block) {
    if (!(whole(params.scale_p) || whole(params.scale_q))) return;
    using TileP = OperandTile<config, Operand::p>;
    using TileQ = OperandTile<config, Operand::q>;
    const int row = TileP::first_vector(tile) + first_block * kWgmmaRows + arch::thread_in_warpgroup() / 32 * 16 + arch::lane() / 4;
    const int column = TileQ::first_vector(tile) + arch::lane() % 4 * 2;
    SLUICE_UNROLL
    for (int rows = 0; rows < Accumulators<config>::kBlocks; ++rows) {
      const float low = scale(params.scale_p, row + rows * kWgmmaRows, tile.group);
      const float high = scale(params.scale_p, row + rows * kWgmmaRows + 8, tile.group);
      SLUICE_UNROLL
      for (int j = 0; j < tile_q(config) / 8; ++j) {
        SLUICE_UNROLL
        for (int i = 0; i < 4; ++i)
          sums.values[rows][4 * j + i] *= (i < 2 ? low : high) * scale(params.scale_q, column + 8 * j + i % 2, tile.group);
      }
    }
  }

 private:
  static SLUICE_DEVICE bool whole(const ScaleParams& scales) { return scales.data != nullptr && !scales.along_k; }
  static SLUICE_DEVICE float scale(const ScaleParams& scales, int vector, int group) {
    if (!whole(scales) || vector >= scales.vectors) return 1.0f;
    return arch::load_global(scales.data + group * scales.batch_stride + vector * scales.vector_stride);
  }
};

}  // namespace sluice
