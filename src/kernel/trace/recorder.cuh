// The Trace that records: one thread of each role writes the clock into a buffer of the caller's, at each turning point of each tile. It
// keeps one register, and nobody waits for its stores: what it costs is in docs/trace.md.
#pragma once

#include "core/trace_layout.hpp"
#include "kernel/trace/trace.cuh"
#include "kernel/trace/trace_params.cuh"

namespace sluice {

class Recorder : public NoTrace {
 public:
  SLUICE_DEVICE Recorder(const GemmParams& params, Role role, int warpgroup = 0)
      : NoTrace(params, role, warpgroup),
        params_(static_cast<const TracedGemmParams&>(params).trace),
        track_(arch::cta_in_grid() * kTracksPerCta +
               (role == Role::consumer ? kTracedProducers + warpgroup : arch::thread_in_warpgroup() / 32)),
        role_(role) {
    arch::wait_for_predecessor();  // which may still use the buffer: a traced kernel fetches nothing early
    if (!writes()) return;
    TraceTrack& track = params_.tracks[track_];
    arch::store_global(&track.sm, arch::sm_number());
    arch::store_global(&track.begin_ns, arch::global_time_ns());
    arch::store_global(&track.begin_cycles, arch::clock_cycles());
  }

  // The role has no more tiles.
  SLUICE_DEVICE ~Recorder() {
    if (!writes()) return;
    TraceTrack& track = params_.tracks[track_];
    arch::store_global(&track.tiles, tiles_);
    arch::store_global(&track.end_ns, arch::global_time_ns());
    arch::store_global(&track.end_cycles, arch::clock_cycles());
  }

  SLUICE_DEVICE void begin(const WorkTile& tile) {
    NoTrace::begin(tile);
    ++tiles_;
    if (has_room()) {
      TraceRecord& record = this->record();
      const std::int32_t fields[] = {tile.tile_m, tile.tile_n,     tile.group, tile.k_begin,
                                     tile.k_end,  tile.split_tile, tile.peer,  tile.peers};
      std::int32_t* const to[] = {&record.tile_m, &record.tile_n,     &record.group, &record.k_begin,
                                  &record.k_end,  &record.split_tile, &record.peer,  &record.peers};
      SLUICE_UNROLL
      for (int i = 0; i < 8; ++i) arch::store_global(to[i], fields[i]);
    }
    mark(TraceEvent::taken);
  }

  SLUICE_DEVICE void mark(TraceEvent event) const {
    if (has_room()) arch::store_global(&record().cycles[static_cast<int>(event)], arch::clock_cycles());
    // Else the writing lane runs apart from its warp for the whole main loop, and what the warp loads takes twice as long.
    if (role_ != Role::producing_thread) arch::sync_warp();
  }

  // Waiting twice for the same barrier costs a look at it: the stage is not released in between.
  template <class Ring>
  SLUICE_DEVICE void mark_first_data(const Ring& ring, const typename Ring::Position& at, int k_tiles) const {
    arch::settle_barrier(arch::shared_address(arch::dynamic_shared_memory()));
    mark(TraceEvent::turn);
    if (k_tiles > 0) ring.wait_full(at);
    mark(TraceEvent::first_data);
  }

 private:
  // Asked anew each time: a register that holds the answer is one less in the main loop.
  SLUICE_DEVICE bool writes() const {
    return role_ == Role::producing_thread || (role_ == Role::consumer ? arch::thread_in_warpgroup() : arch::lane()) == 0;
  }
  SLUICE_DEVICE bool has_room() const { return writes() && tiles_ <= params_.tiles_per_track; }
  SLUICE_DEVICE TraceRecord& record() const { return params_.records[track_ * params_.tiles_per_track + tiles_ - 1]; }

  const TraceParams& params_;
  int track_;
  Role role_;
  int tiles_ = 0;
};

}  // namespace sluice
