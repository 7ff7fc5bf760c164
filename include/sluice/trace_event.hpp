// The turning points of a work tile on its way through a kernel, as a traced kernel records them.
#pragma once

#include <cstdint>

namespace sluice {

// In the order in which they happen.
enum class TraceEvent : std::uint8_t {
  taken,           // the role has read what to do
  turn,            // consumer: the tensor cores are its own, for which it waits in pingpong
  first_data,      // consumer: the tile's first stage is full, and the main loop begins
  mainloop_end,    // consumer: its sums are there. Producer: all loads are asked for
  wait_begin,      // a piece of a tile begins to wait for the others
  wait_end,        // and has what it waited for
  epilogue_begin,  // the sums are complete, and go out
  done,            // stored, or left for another piece
};
inline constexpr int kTraceEvents = 8;
inline constexpr int kMostTracedTiles = 4096;  // of one role of one CTA

}  // namespace sluice
