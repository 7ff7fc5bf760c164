// The calls of arch/sm90/streaming.cuh, on a CPU.
#pragma once

#include <cmath>
#include <cstring>
#include <limits>

#include "arch/emulated/arch.cuh"

namespace sluice::arch {

SLUICE_DEVICE void load_streaming(const void* source, bool inside, std::uint32_t (&words)[4], Location at = Location::current()) {
  std::memset(words, 0, sizeof words);
  if (!inside) return;
  emulated::check_global(source, sizeof words, false, at);
  std::memcpy(words, source, sizeof words);
}

SLUICE_DEVICE void load_streaming(const void* source, std::uint32_t (&words)[4], Location at = Location::current()) {
  load_streaming(source, true, words, at);
}

SLUICE_DEVICE void pause_ns(int) {}

SLUICE_DEVICE float from_lane(float value, int from, Location at = Location::current()) {
  return emulated::shuffle_xor(value, lane() ^ from, at);
}
SLUICE_DEVICE std::uint32_t as_bits(float x) { return std::bit_cast<std::uint32_t>(x); }
SLUICE_DEVICE float maximum(float a, float b) { return std::fmax(a, b); }
SLUICE_DEVICE float silu(float x) {
  const float inverse = 1.0f / (1.0f + std::exp(-x));
  return inverse < std::numeric_limits<float>::min() ? x * 0.0f : x * inverse;
}

namespace emulated {
template <class Convert>
std::uint32_t pack_bytes(const float (&x)[4], Convert&& convert) {
  std::uint32_t packed = 0;
  for (int i = 0; i < 4; ++i) packed |= static_cast<std::uint32_t>(convert(x[i])) << (8 * i);
  return packed;
}
}  // namespace emulated

SLUICE_DEVICE std::uint32_t pack_e4m3(const float (&x)[4]) { return emulated::pack_bytes(x, to_e4m3_bits); }
SLUICE_DEVICE std::uint32_t pack_e5m2(const float (&x)[4]) { return emulated::pack_bytes(x, to_e5m2_bits); }

}  // namespace sluice::arch
