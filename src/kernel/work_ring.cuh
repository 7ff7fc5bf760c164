// A short ring of work tiles between the warp that works out who does what (the dispatcher) and those who do it. What a tile costs to find
// is paid beside the main loop, once a CTA.
#pragma once

#include <bit>

#include "sluice/schedule.hpp"

#include "arch/arch.cuh"
#include "core/kernel_layout.hpp"
#include "kernel/pipeline.cuh"

namespace sluice {

template <KernelConfig config>
class WorkRing {
 public:
  using Position = RingPosition<kWorkSlots>;

  SLUICE_DEVICE explicit WorkRing(std::byte* shared)
      : slots_(arch::shared_address(shared + kLayout.work_offset)),
        full_(reinterpret_cast<arch::Barrier*>(shared + kLayout.work_barrier_offset)),
        empty_(full_ + kWorkSlots) {}

  // By one thread, before a fence and the barrier that lets the roles begin. `first_is_put`: slot 0 is filled before that barrier, too.
  SLUICE_DEVICE void init(bool first_is_put) const {
    SLUICE_UNROLL
    for (int i = 0; i < kWorkSlots; ++i) {
      arch::barrier_init(&full_[i], 1);
      arch::barrier_init(&empty_[i], kTakers);
      arch::note_barrier(&full_[i], "work full", i);
      arch::note_barrier(&empty_[i], "work empty", i);
    }
    if (first_is_put) arch::barrier_arrive(&full_[0]);
  }

  // One thread deals; peers == 0 says that there is no more.
  SLUICE_DEVICE void put_first(const WorkTile& tile) const { write(tile, slots_); }
  SLUICE_DEVICE void put_end(Position& at) const { put({.peers = 0}, at); }
  SLUICE_DEVICE void put(const WorkTile& tile, Position& at) const {
    arch::barrier_wait(&empty_[at.stage], at.parity ^ 1);
    write(tile, slots_ + at.stage * kWorkSlotBytes);
    arch::barrier_arrive(&full_[at.stage]);
    at.advance();
  }

  // This CTA's part of a tile. The scheduler deals in tiles of a cluster's first CTA.
  static SLUICE_DEVICE WorkTile of_this_cta(WorkTile tile) {
    if constexpr (cluster_size(config) > 1) {
      tile.tile_m += arch::cta_in_cluster() % config.cluster_m;
      tile.tile_n += arch::cta_in_cluster() / config.cluster_m;
    }
    tile.first_row += tile.tile_m * config.tile_m;
    return tile;
  }

  // The tile at hand. It may be read again until it is released: what is not held in registers leaves them to the accumulators.
  SLUICE_DEVICE WorkTile read(const Position& at) const {
    arch::barrier_wait(&full_[at.stage], at.parity);
    const arch::SharedAddress slot = slots_ + at.stage * kWorkSlotBytes;
    Packets packets;
    SLUICE_UNROLL
    for (std::uint32_t i = 0; i < 3; ++i) arch::load_shared(slot + 16 * i, packets.words[i]);
    return std::bit_cast<WorkTile>(packets);
  }

  // Producers and consumers release every tile: whole warps, or a single thread that alone stands for its warp.
  SLUICE_DEVICE void release(Position& at) const {
    arch::sync_warp();
    if (arch::lane() == 0) arch::barrier_arrive(&empty_[at.stage]);
    at.advance();
  }
  SLUICE_DEVICE void release_alone(Position& at) const {
    arch::barrier_arrive(&empty_[at.stage]);
    at.advance();
  }

 private:
  static constexpr SharedMemoryLayout kLayout = shared_memory_layout(config);
  static constexpr int kTakers = producing_warps(config) + kWarpsPerWarpgroup * consumer_warpgroups(config);

  struct Packets {
    std::uint32_t words[3][4];
  };
  static_assert(sizeof(WorkTile) == kWorkSlotBytes && sizeof(Packets) == kWorkSlotBytes);

  static SLUICE_DEVICE void write(const WorkTile& tile, arch::SharedAddress slot) {
    const Packets packets = std::bit_cast<Packets>(tile);
    SLUICE_UNROLL
    for (std::uint32_t i = 0; i < 3; ++i) arch::store_shared(slot + 16 * i, packets.words[i]);
  }

  arch::SharedAddress slots_;
  arch::Barrier* full_;
  arch::Barrier* empty_;
};

}  // namespace sluice
