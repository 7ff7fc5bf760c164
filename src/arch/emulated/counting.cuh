// The calls of arch/sm90/counting.cuh, on a CPU.
#pragma once

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "arch/emulated/arch.cuh"
#include "arch/emulated/streaming.cuh"

namespace sluice::arch {

SLUICE_DEVICE void load_vector(const void* source, bool inside, CachePolicy, std::uint32_t (&words)[4], Location at = Location::current()) {
  load_streaming(source, inside, words, at);
}

SLUICE_DEVICE void increment_shared(SharedAddress address, Location at = Location::current()) {
  emulated::atomic_add_shared(address, 1, at);
}
SLUICE_DEVICE std::uint32_t atomic_add_shared(SharedAddress address, std::uint32_t value, Location at = Location::current()) {
  return emulated::atomic_add_shared(address, value, at);
}
SLUICE_DEVICE std::uint32_t load_shared_word(SharedAddress address, Location at = Location::current()) {
  std::uint32_t word = 0;
  emulated::load_shared(address, &word, sizeof word, at);
  return word;
}

SLUICE_DEVICE void add_global(std::uint32_t* sum, std::uint32_t value, Location at = Location::current()) {
  emulated::note_global_addition(sum, sizeof *sum, at);
  *sum += value;
}
SLUICE_DEVICE void add_global(std::uint64_t* sum, std::uint64_t value, Location at = Location::current()) {
  emulated::note_global_addition(sum, sizeof *sum, at);
  *sum += value;
}

SLUICE_DEVICE std::uint32_t rotate_right(std::uint32_t word, std::uint32_t by) { return std::rotr(word, static_cast<int>(by)); }

SLUICE_DEVICE int truncate(float x) {
  if (std::isnan(x)) return 0;
  if (x >= 0x1p31f) return std::numeric_limits<int>::max();
  return x < -0x1p31f ? std::numeric_limits<int>::min() : static_cast<int>(x);
}
SLUICE_DEVICE float subtract(float a, float b) { return a - b; }
SLUICE_DEVICE float multiply(float a, float b) { return a * b; }

}  // namespace sluice::arch
