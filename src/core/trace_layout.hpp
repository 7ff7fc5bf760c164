// What a traced kernel writes, and where: read by the trace room, written by kernel/trace/.
#pragma once

#include <cstddef>
#include <cstdint>

#include "sluice/trace_event.hpp"

namespace sluice {

// One role of one CTA. Both clocks at its beginning and its end tell how they belong together.
struct alignas(16) TraceTrack {
  std::int32_t sm;
  std::int32_t tiles;  // that it had, more perhaps than there was room for
  std::uint64_t begin_ns;
  std::uint64_t begin_cycles;
  std::uint64_t end_ns;
  std::uint64_t end_cycles;
};

// One work tile of a role. Events that did not happen stay 0.
struct alignas(16) TraceRecord {
  std::int32_t tile_m;
  std::int32_t tile_n;
  std::int32_t group;
  std::int32_t k_begin;
  std::int32_t k_end;
  std::int32_t split_tile;
  std::int32_t peer;
  std::int32_t peers;
  std::uint64_t cycles[kTraceEvents];
};

// Tracks of a CTA: its producing warps, then its consumer warpgroups.
inline constexpr int kTracedProducers = 3, kTracedConsumers = 3, kTracksPerCta = kTracedProducers + kTracedConsumers;

// First all tracks, then the records of each.
constexpr std::size_t trace_records_offset(int ctas) { return static_cast<std::size_t>(ctas) * kTracksPerCta * sizeof(TraceTrack); }
constexpr std::size_t trace_layout_bytes(int ctas, int tiles_per_track) {
  return trace_records_offset(ctas) +
         static_cast<std::size_t>(ctas) * kTracksPerCta * static_cast<std::size_t>(tiles_per_track) * sizeof(TraceRecord);
}
// For how many tiles of each role a buffer has room.
constexpr int traced_tiles_per_track(int ctas, std::size_t bytes) {
  if (ctas <= 0 || bytes < trace_layout_bytes(ctas, 1)) return 0;
  const std::size_t tiles = (bytes - trace_records_offset(ctas)) / (static_cast<std::size_t>(ctas) * kTracksPerCta * sizeof(TraceRecord));
  return tiles < kMostTracedTiles ? static_cast<int>(tiles) : kMostTracedTiles;
}

}  // namespace sluice
