// What both the summary and the Chrome trace are made of.
#pragma once

#include "sluice/trace.hpp"

namespace sluice {

inline bool is_consumer(const Trace& trace, const TracedTile& tile) {
  return trace.tracks[static_cast<std::size_t>(tile.track)].role >= TraceRole::consumer_0;
}

}  // namespace sluice
