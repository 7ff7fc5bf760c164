// How much is measured: sets of operands, launches in a graph, rounds.
#pragma once

#include <cstddef>

#include "bench/suites.hpp"

namespace sluice::bench {

// Operands begin at multiples of 1 KB.
constexpr std::size_t padded(std::size_t bytes) { return (bytes + 1023) / 1024 * 1024; }

// Of one set of operands, padded each.
struct SetBytes {
  std::size_t a, b, d, scale_a, scale_b;
  std::size_t dense_b = 0;                 // of weights of 4 bits: the same as the rival multiplies them
  std::size_t codes = 0, code_scales = 0;  // of these before they are packed, once for all sets
  explicit SetBytes(const Shape& shape);
  std::size_t inputs() const { return a + b; }
  std::size_t scales() const { return scale_a + scale_b; }
  std::size_t all() const { return inputs() + scales() + d; }
};

// As much as this many times the L2 cache lies between two uses of the same bytes. Not three times: of what was told to go first a part
// lives for longer than L2 is large, and 8% of 64 x 4096 x 4096 never came from memory (one H100, 27 November 2026).
constexpr std::size_t kRotatingCaches = 16;
inline std::size_t sets_past_cache(std::size_t set_bytes, std::size_t l2_bytes) {
  return kRotatingCaches * l2_bytes / (set_bytes > 0 ? set_bytes : 1) + 1;
}

// How many sets make more than `kRotatingCaches` times the L2 cache: two at least, 1024 at most, and no more than `most_bytes` of memory
// hold beside one output to compare with. 0: not even one fits. Packed weights of 4 bits make as much by themselves, since reading them
// alone is timed over the same sets.
int rotating_set_count(const Shape& shape, std::size_t l2_bytes, std::size_t most_bytes);

// How many launches a graph of about `graph_us` holds: every set at least once, and never under two.
int launches_for(double estimated_us, int sets, double graph_us);

// How many rounds of all competitors `seconds` hold, 7 at least and 25 at most, or 3 of turns whose length was asked for; or as many as are
// given, if that is not 0.
int rounds_within(double seconds, double round_us, int given = 0, double turn_us = 0);

}  // namespace sluice::bench
