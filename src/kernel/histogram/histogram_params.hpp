// What a launch passes to a histogram kernel.
#pragma once

#include <cstdint>

namespace sluice {

struct HistogramParams {
  const void* vectors;         // the first sample at a multiple of 16 bytes
  std::uint64_t vector_count;  // whole vectors from there
  const void* head;            // samples before
  const void* tail;            // and behind
  std::int32_t head_elems, tail_elems;
  void* counts;
  bool wide_counts;           // of 64 bits
  bool after_clearing;        // the kernel before this one clears the counts, and began when all before it had ended
  bool bins_are_bytes;        // 8-bit samples are the numbers of their bins
  std::uint32_t bins;         // that samples may belong to
  std::uint32_t result_bins;  // that the result has
  // Integers: what is below `least` counts as that, above `greatest` as that, and `first` has bin 0. Floats: the same bounds, outside of
  // which nothing counts.
  std::int32_t first, least, greatest;
  float lower, scale, least_float, greatest_float;
  std::uint32_t range_shift;   // 2^range_shift CTAs look at the same samples, each counting those bins that end in its number
  std::uint32_t groups;        // of so many CTAs
  std::uint32_t copies_shift;  // words: 2^copies_shift of each counter, in neighbouring words
};

}  // namespace sluice
