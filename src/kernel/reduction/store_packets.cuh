// Stores a part of a tile that is smaller than the epilogue's chunks, straight from the registers. For plain epilogues: alpha is all there
// is.
#pragma once

#include "core/tile_parts.hpp"
#include "kernel/epilogue/finish_elements.cuh"
#include "kernel/mainloop/wgmma_consumer.cuh"

namespace sluice {

// By a consumer warpgroup. first_block: which 64 rows of P it holds. Which element a lane has, TileStore::write_box() says, too.
template <KernelConfig config>
SLUICE_DEVICE void store_packet(const EpilogueParams& params, const float (&values)[4], const WorkTile& tile, int packet, int first_block) {
  constexpr int kPerBlock = packets_per_block(config);
  const int lane = arch::lane(), q = packet % kPerBlock * 8 + lane % 4 * 2;
  const int p = (first_block + packet / kPerBlock) * kWgmmaRows + arch::thread_in_warpgroup() / 32 * 16 + lane / 4;
  const int m = tile.first_row + (swapped(config) ? q : p), n = tile.tile_n * config.tile_n + (swapped(config) ? p : q);
  const std::int64_t at = tile.group * params.batch_stride_d_elems + m * params.ldd_elems + n;
  with_data_type(params.type_d, [&]<DataType type>() {
    using E = Element<type>;
    typename E::Type* const d = static_cast<typename E::Type*>(params.d) + at;
    SLUICE_UNROLL
    for (int e = 0; e < 4; ++e) {
      const int down = swapped(config) ? e % 2 : e / 2 * 8, right = swapped(config) ? e / 2 * 8 : e % 2;
      if (m + down < params.m && n + right < params.n)
        arch::store_global(d + down * params.ldd_elems + right, E::from_float(params.alpha * values[e]));
    }
  });
}

// Registers need indices known to the compiler.
template <KernelConfig config>
SLUICE_DEVICE void put_packet(Accumulators<config>& sums, int packet, const float (&values)[4]) {
  constexpr int kPerBlock = packets_per_block(config);
  SLUICE_UNROLL
  for (int i = 0; i < packets_per_warpgroup(config); ++i) {
    SLUICE_UNROLL
    for (int e = 0; e < 4; ++e) {
      float& sum = sums.values[i / kPerBlock][i % kPerBlock * 4 + e];
      sum = i == packet ? values[e] : sum;
    }
  }
}

template <KernelConfig config>
SLUICE_DEVICE void store_packets(const EpilogueParams& params, const Accumulators<config>& sums, const WorkTile& tile, const TilePart& part,
                                 int first_block) {
  constexpr int kPerBlock = packets_per_block(config);
  SLUICE_NO_UNROLL
  for (int packet = part.begin; packet < part.end; ++packet) {
    float values[4] = {};
    SLUICE_UNROLL
    for (int i = 0; i < packets_per_warpgroup(config); ++i) {
      SLUICE_UNROLL
      for (int e = 0; e < 4; ++e) values[e] = i == packet ? sums.values[i / kPerBlock][i % kPerBlock * 4 + e] : values[e];
    }
    store_packet<config>(params, values, tile, packet, first_block);
  }
}

}  // namespace sluice
