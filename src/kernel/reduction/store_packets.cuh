// Stores a part of a tile that is smaller than the epilogue's chunks, straight from the registers. For plain epilogues: alpha is all there
// is.
#pragma once

#include "core/tile_parts.hpp"
#include "kernel/epilogue/finish_elements.cuh"
#include "kernel/mainloop/wgmma_consumer.cuh"

namespace sluice {

// By a consumer warpgroup. first_block: which 64 rows of P it holds. Which element a lane has, TileStore::write_box() says, too.
template <KernelConfig config, DataType type>
SLUICE_DEVICE void store_packets_of(const EpilogueParams& params, const Accumulators<config>& sums, const WorkTile& tile,
                                    const TilePart& part, int first_block) {
  using E = Element<type>;
  constexpr int kPerBlock = packets_per_block(config);
  typename E::Type* const d = static_cast<typename E::Type*>(params.d) + tile.group * params.batch_stride_d_elems;
  const int lane = arch::lane(), first_p = arch::thread_in_warpgroup() / 32 * 16 + lane / 4, first_q = lane % 4 * 2;
  SLUICE_NO_UNROLL
  for (int packet = part.begin; packet < part.end; ++packet) {
    // Registers need indices known to the compiler.
    float x[4] = {};
    SLUICE_UNROLL
    for (int i = 0; i < packets_per_warpgroup(config); ++i) {
      SLUICE_UNROLL
      for (int e = 0; e < 4; ++e) x[e] = i == packet ? sums.values[i / kPerBlock][i % kPerBlock * 4 + e] : x[e];
    }
    SLUICE_UNROLL
    for (int e = 0; e < 4; ++e) {
      const int p = (first_block + packet / kPerBlock) * kWgmmaRows + first_p + e / 2 * 8, q = packet % kPerBlock * 8 + first_q + e % 2;
      const int m = tile.first_row + (swapped(config) ? q : p), n = tile.tile_n * config.tile_n + (swapped(config) ? p : q);
      if (m < params.m && n < params.n) arch::store_global(d + m * params.ldd_elems + n, E::from_float(params.alpha * x[e]));
    }
  }
}

template <KernelConfig config>
SLUICE_DEVICE void store_packets(const EpilogueParams& params, const Accumulators<config>& sums, const WorkTile& tile, const TilePart& part,
                                 int first_block) {
  with_data_type(params.type_d, [&]<DataType type>() { store_packets_of<config, type>(params, sums, tile, part, first_block); });
}

}  // namespace sluice
