// A tile of KernelSchedule::sliced_k: each of the consumer warpgroups multiplies every so manyth of its k-tiles, a slice of K. All but the
// first leave their sums in the staging buffers that they have no other use for; the first adds up all slices in their order, whoever had
// them, and goes on alone: the same bits in every run.
#pragma once

#include <bit>
#include <type_traits>

#include "kernel/epilogue/store_tile.cuh"
#include "kernel/mainloop/short_tile.cuh"
#include "kernel/mainloop/slice_position.cuh"
#include "kernel/mainloop/wgmma_consumer.cuh"

namespace sluice {

template <KernelConfig config>
class SlicedTile {
 public:
  // warpgroup: of the consumers. (Asked for in here, once more, it would cost the main loop a move of each descriptor into a register of
  // the warp: 57344 x 8192 at M = 16 79 instead of 65 us.)
  SLUICE_DEVICE SlicedTile(const WorkTile&, int warpgroup) : warpgroup_(warpgroup) {}

  // Once, before the first tile: there is room for sums.
  static SLUICE_DEVICE void begin(int warpgroup) {
    if (warpgroup == 0) arch::named_barrier_arrive(kTaken, kThreads);
  }

  // As ShortTile::multiply(). Each warpgroup has the stages whose number is its own, or that and a multiple of how many they are: so where
  // the tile begins in the ring decides who has which slice.
  template <class Issued>
  SLUICE_DEVICE bool multiply(const MainloopParams& params, const Pipeline<config>& ring, Accumulators<config>& sums,
                              typename Pipeline<config>::Position& at, int k_tiles, Issued&& issued) const {
    const int first = at.stage % kSlices, slice = (warpgroup_ - first + kSlices) % kSlices;
    typename Pipeline<config>::Position begin = at;
    begin.advance(slice);
    ConsumerPosition<config> of_slice(begin);
    Consumer<config>(params, ring, 0).multiply(sums, of_slice, (k_tiles - slice + kSlices - 1) / kSlices, issued);
    at.advance(k_tiles);
    arch::pin_registers(sums.values[0]);  // else copies of them are made while they are the tensor cores'
    return meet(arch::shared_address(ring.stage_p({}) + kLayout.staging_offset), sums, first);
  }

 private:
  static constexpr int kSlices = k_slices(config), kThreads = kSlices * kWarpgroupThreads;
  static constexpr int kLeft = TileStore<config>::kFirstBarrier + 1, kTaken = kLeft + 1;  // the first warpgroup's own lies before them
  static constexpr int kPackets = packets_per_warpgroup(config);
  static constexpr SharedMemoryLayout kLayout = shared_memory_layout(config);
  static constexpr int kBytesOfOne = kLayout.staging_buffers * staging_buffer_bytes(config);
  static_assert(kPackets * kPacketBytes <= kBytesOfOne && Accumulators<config>::kBlocks == 1);

  // first: who has the first slice.
  SLUICE_DEVICE bool meet(arch::SharedAddress buffers, Accumulators<config>& sums, int first) const {
    if (warpgroup_ > 0) {
      arch::named_barrier_sync(kTaken, kThreads);
      leave(buffers, sums);
      arch::named_barrier_arrive(kLeft, kThreads);
      return false;
    }
    arch::named_barrier_sync(kLeft, kThreads);
    add_up(buffers, sums, first);
    arch::named_barrier_arrive(kTaken, kThreads);  // the last tile's is never waited for
    return true;
  }

  SLUICE_DEVICE void leave(arch::SharedAddress buffers, const Accumulators<config>& sums) const {
    SLUICE_UNROLL
    for (int i = 0; i < kPackets; ++i) {
      const float* from = &sums.values[0][i * 4];
      const std::uint32_t words[4] = {std::bit_cast<std::uint32_t>(from[0]), std::bit_cast<std::uint32_t>(from[1]),
                                      std::bit_cast<std::uint32_t>(from[2]), std::bit_cast<std::uint32_t>(from[3])};
      arch::store_shared(buffers + place(warpgroup_, i), words);
    }
  }

  static SLUICE_DEVICE void add_up(arch::SharedAddress buffers, Accumulators<config>& sums, int first) {
    SLUICE_UNROLL
    for (int i = 0; i < kPackets; ++i) {
      float* const mine = &sums.values[0][i * 4];
      float all[4];
      SLUICE_UNROLL
      for (int slice = 0; slice < kSlices; ++slice) {
        const int holder = (first + slice) % kSlices;
        float values[4] = {mine[0], mine[1], mine[2], mine[3]};
        if (holder != 0) arch::load_shared(buffers + place(holder, i), values);
        SLUICE_UNROLL
        for (int e = 0; e < 4; ++e) all[e] = slice == 0 ? values[e] : all[e] + values[e];
      }
      SLUICE_UNROLL
      for (int e = 0; e < 4; ++e) mine[e] = all[e];
    }
  }

  // One packet of all threads after the other.
  static SLUICE_DEVICE std::uint32_t place(int warpgroup, int packet) {
    return static_cast<std::uint32_t>(warpgroup * kBytesOfOne + packet * kPacketBytes + arch::thread_in_warpgroup() * 16);
  }

  int warpgroup_;  // of the consumers
};

// What a consumer warpgroup does of a tile.
template <KernelConfig config>
using ShareOfTile = std::conditional_t<(k_slices(config) > 1), SlicedTile<config>, ShortTile<config>>;

}  // namespace sluice
