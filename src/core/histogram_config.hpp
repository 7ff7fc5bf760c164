// How the histogram kernels keep their counts: decided here for the kernels and for those who launch them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "sluice/histogram.hpp"

namespace sluice {

// What is compiled apart.
struct HistogramConfig {
  HistogramSample sample = HistogramSample::int32;
  HistogramCounters counters = HistogramCounters::words;
  int field_bits = 32;     // of fields: 8
  bool split = false;      // several CTAs look at the same samples
  bool common_bin = true;  // fields and global: each warp counts the bin that it meets most often in registers

  bool operator==(const HistogramConfig&) const = default;
};

constexpr HistogramConfig histogram_config(HistogramSample sample, const HistogramWay& way) {
  // Fields have one kernel for any number of ranges. Words of one range have another: asking whose a bin is takes instructions.
  return {.sample = sample,
          .counters = way.counters,
          .field_bits = way.field_bits,
          .split = way.counters == HistogramCounters::fields || way.ranges > 1};
}

// All there are. Bytes have 256 bins at most, which words hold with copies for each lane. Fields of 16 bits are not here: words in twice as
// many ranges take the same place and less time (65,536 bins: 296 us for 2^28 int32, fields 360; one H200, 22 November 2026). Nor are those
// of 4 bits, which took 8260 us for 262,144 bins of skewed samples (those of 8 bits: 782).
inline constexpr std::array kListedHistogramKernels = {
    histogram_config(HistogramSample::int32, {.counters = HistogramCounters::words}),
    histogram_config(HistogramSample::int32, {.counters = HistogramCounters::words, .ranges = 2}),
    histogram_config(HistogramSample::int32, {.counters = HistogramCounters::fields, .field_bits = 8}),
    histogram_config(HistogramSample::int32, {.counters = HistogramCounters::global}),
    histogram_config(HistogramSample::float32, {.counters = HistogramCounters::words}),
    histogram_config(HistogramSample::float32, {.counters = HistogramCounters::words, .ranges = 2}),
    histogram_config(HistogramSample::float32, {.counters = HistogramCounters::fields, .field_bits = 8}),
    histogram_config(HistogramSample::float32, {.counters = HistogramCounters::global}),
    histogram_config(HistogramSample::uint8, {.counters = HistogramCounters::words}),
};

// One CTA an SM, since its counters fill shared memory.
inline constexpr int kHistogramThreads = 1024;
inline constexpr int kClearThreads = 256;  // of the kernel that clears the counts

// Vectors of 16 bytes that a thread fetches at once, while it counts as many: 64 KB on each SM are on their way, twice the 30 KB that
// memory at full speed has (4.8 TB/s x 0.8 us over 132 SMs). Counting in global memory is slower than that, and wants the registers.
constexpr int histogram_batch(HistogramCounters counters) { return counters == HistogramCounters::global ? 2 : 4; }
inline constexpr int kHistogramVectorBytes = 16;

constexpr int sample_size_bytes(HistogramSample sample) { return sample == HistogramSample::uint8 ? 1 : 4; }
constexpr int samples_per_vector(HistogramSample sample) { return kHistogramVectorBytes / sample_size_bytes(sample); }

// 32 bins have `bits` words in a row: bin b of them has bits (b & ~(bits - 1)) and up of word b & (bits - 1). Neighbouring bins, of which
// skewed data often asks together, lie in different words and banks, and the shift is one AND away from the bin.
constexpr std::uint32_t field_shift(std::uint32_t bin, int bits) { return bin & static_cast<std::uint32_t>(32 - bits); }
constexpr std::uint32_t field_word(std::uint32_t bin, int bits) {
  return (bin >> 5) * static_cast<std::uint32_t>(bits) + (bin & static_cast<std::uint32_t>(bits - 1));
}
constexpr std::uint32_t field_words(std::uint32_t bins, int bits) { return (bins + 31) / 32 * static_cast<std::uint32_t>(bits); }

// Bins that are counted at all: of bytes there are no more than 256. The rest stay 0.
constexpr std::uint32_t counted_bins(const HistogramProblem& p) {
  constexpr std::int64_t kBytes = 256;
  return static_cast<std::uint32_t>(p.sample == HistogramSample::uint8 && p.bins > kBytes ? kBytes : p.bins);
}
constexpr std::uint32_t bins_of_range(std::uint32_t bins, std::uint32_t range, std::uint32_t ranges) {
  return (bins - range + ranges - 1) / ranges;
}

// Of one CTA: its counters, and those of what does not count; whole vectors, by which they are cleared.
constexpr std::int64_t histogram_shared_bytes(const HistogramWay& way, std::uint32_t bins) {
  const std::uint32_t own = bins_of_range(bins, 0, static_cast<std::uint32_t>(way.ranges));
  constexpr std::int64_t kVector = 16;
  if (way.counters == HistogramCounters::words) return ((std::int64_t{own} + 1) * way.copies * 4 + kVector - 1) / kVector * kVector;
  return way.counters == HistogramCounters::fields ? (std::int64_t{field_words(own, way.field_bits)} + 32) * 4 : 0;
}

// A power of two's exponent.
constexpr std::uint32_t exponent_of(int power) {
  std::uint32_t exponent = 0;
  while (power >> exponent > 1) ++exponent;
  return exponent;
}

}  // namespace sluice
