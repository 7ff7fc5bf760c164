// A short ring of work tiles between the warp that works out who does what (the dispatcher) and those who do it. What a tile costs to find
// is paid beside the main loop, once a CTA.
#pragma once

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

  // By one warp, before a fence and the barrier that lets the roles begin. `first_is_put`: slot 0 is filled before that barrier, too, so
  // that nobody need wait for it.
  SLUICE_DEVICE void init(bool first_is_put) {
    const int lane = arch::lane();
    if (lane < kWorkSlots) {
      arch::barrier_init(&full_[lane], 1);
      arch::barrier_init(&empty_[lane], kTakers);
      arch::note_barrier(&full_[lane], "work full", lane);
      arch::note_barrier(&empty_[lane], "work empty", lane);
      if (lane == 0 && first_is_put) arch::barrier_arrive(&full_[0]);
    }
  }

  // One thread deals; peers == 0 says that there is no more.
  SLUICE_DEVICE void put_first(const WorkTile& tile) const { write(tile, slots_); }
  SLUICE_DEVICE void put(const WorkTile& tile, Position& at) const {
    arch::barrier_wait(&empty_[at.stage], at.parity ^ 1);
    write(tile, slots_ + at.stage * kWorkSlotBytes);
    arch::barrier_arrive(&full_[at.stage]);
    at.advance();
  }

  // The tile at hand. It may be read again until it is released: what is not held in registers leaves them to the accumulators.
  SLUICE_DEVICE WorkTile read(const Position& at) const {
    arch::barrier_wait(&full_[at.stage], at.parity);
    const arch::SharedAddress slot = slots_ + at.stage * kWorkSlotBytes;
    std::uint32_t where[4], what[4];
    arch::load_shared(slot, where);
    arch::load_shared(slot + 16, what);
    WorkTile tile;
    tile.tile_m = number(where[0]);
    tile.tile_n = number(where[1]);
    tile.group = number(where[2]);
    tile.split_tile = number(where[3]);
    tile.k_begin = number(what[0]);
    tile.k_end = number(what[1]);
    tile.peer = number(what[2]);
    tile.peers = number(what[3]);
    return tile;
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

  static SLUICE_DEVICE void write(const WorkTile& tile, arch::SharedAddress slot) {
    const std::uint32_t where[4] = {bits(tile.tile_m), bits(tile.tile_n), bits(tile.group), bits(tile.split_tile)};
    const std::uint32_t what[4] = {bits(tile.k_begin), bits(tile.k_end), bits(tile.peer), bits(tile.peers)};
    arch::store_shared(slot, where);
    arch::store_shared(slot + 16, what);
  }

  static SLUICE_DEVICE std::uint32_t bits(std::int32_t x) { return static_cast<std::uint32_t>(x); }
  static SLUICE_DEVICE std::int32_t number(std::uint32_t x) { return static_cast<std::int32_t>(x); }

  arch::SharedAddress slots_;
  arch::Barrier* full_;
  arch::Barrier* empty_;
};

}  // namespace sluice
