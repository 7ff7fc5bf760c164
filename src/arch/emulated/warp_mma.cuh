// The calls of arch/sm90/warp_mma.cuh, on a CPU.
#pragma once

#include <bit>
#include <cmath>
#include <limits>

#include "arch/emulated/arch.cuh"
#include "arch/emulated/streaming.cuh"

namespace sluice::arch {

template <bool transposed>
SLUICE_DEVICE void load_matrices(SharedAddress row, std::uint32_t (&m)[4], Location at = Location::current()) {
  emulated::load_matrices(row, m, transposed, at);
}

SLUICE_DEVICE std::uint32_t transpose_matrix(std::uint32_t word, Location at = Location::current()) {
  return emulated::transpose_matrix(word, at);
}

template <DataType type>
SLUICE_DEVICE void mma(float (&d)[4], const std::uint32_t (&a)[4], std::uint32_t b_low, std::uint32_t b_high,
                       Location at = Location::current()) {
  static_assert(type == DataType::bf16 || type == DataType::fp16);
  emulated::mma(type == DataType::bf16 ? emulated::Numbers::bf16 : emulated::Numbers::fp16, d, a, {b_low, b_high}, at);
}

// Of a positive number that is not denormal: floor(log2(x)). Of 0: -127.
SLUICE_DEVICE int exponent(float x) { return (std::bit_cast<int>(x) >> 23) - 127; }
SLUICE_DEVICE float power_of_two(float x) {
  const float y = std::exp2(x);
  return y < std::numeric_limits<float>::min() ? 0.0f : y;
}
SLUICE_DEVICE float log_of_two(float x) { return std::log2(x); }
SLUICE_DEVICE float reciprocal(float x) { return 1.0f / x; }

template <int low, int high>
SLUICE_DEVICE std::uint32_t e4m3_pair_to_fp16(std::uint32_t word) {
  const auto number = [word](int byte) {
    return std::uint32_t{emulated::float_to_fp16(emulated::e4m3_to_float(static_cast<std::uint8_t>(word >> (8 * byte))))};
  };
  return number(low) | number(high) << 16;
}

SLUICE_DEVICE void load_shared(SharedAddress address, std::uint32_t (&words)[2], Location at = Location::current()) {
  emulated::load_shared(address, words, sizeof words, at);
}

SLUICE_DEVICE std::uint32_t zero_after_loads(std::uint32_t loaded, std::uint32_t zero) {
  emulated::fence_shared_for_async();
  return loaded & zero;
}

// As early as they may come: a reader who has not waited for the barrier is seen all the same.
SLUICE_DEVICE void copy_packet_async(SharedAddress destination, const void* source, int bytes, Location at = Location::current()) {
  constexpr int kUnit = sizeof(std::uint16_t);
  std::array<std::uint16_t, sizeof(Floats4) / kUnit> packet{};
  if (bytes == sizeof packet)
    packet = std::bit_cast<decltype(packet)>(load_global(static_cast<const Floats4*>(source), at));
  else
    for (int i = 0; i < bytes / kUnit; ++i)
      packet[static_cast<std::size_t>(i)] = load_global(static_cast<const std::uint16_t*>(source) + i, at);
  emulated::store_shared(destination, packet.data(), sizeof packet, at);
}
SLUICE_DEVICE void copy_packet_async(SharedAddress destination, const void* source, int bytes, CachePolicy,
                                     Location at = Location::current()) {
  copy_packet_async(destination, source, bytes, at);
}
SLUICE_DEVICE void barrier_hold_until_copied(Barrier*) {}

SLUICE_DEVICE std::uint64_t atomic_add_relaxed(std::uint64_t* counter, std::uint64_t value, Location at = Location::current()) {
  return emulated::add_to_long_flag(counter, value, at);
}
SLUICE_DEVICE std::uint64_t load_relaxed(const std::uint64_t* counter, Location at = Location::current()) {
  return emulated::load_long_flag(counter, at);
}
SLUICE_DEVICE void store_relaxed(std::uint64_t* counter, std::uint64_t value, Location at = Location::current()) {
  emulated::store_long_flag(counter, value, at);
}

inline constexpr std::uint32_t kNothingThere = 0xffffffff;

SLUICE_DEVICE void store_published(Floats4* to, const Floats4& x, Location at = Location::current()) {
  emulated::store_published(reinterpret_cast<std::uint32_t*>(to), std::bit_cast<std::array<std::uint32_t, 4>>(x), at);
}
// Once it is there: whoever polled would keep a deadlock from being seen.
SLUICE_DEVICE Floats4 load_published(const Floats4* from, Location at = Location::current()) {
  return std::bit_cast<Floats4>(emulated::load_published(reinterpret_cast<const std::uint32_t*>(from), kNothingThere, at));
}
SLUICE_DEVICE bool is_published(const Floats4&) { return true; }
SLUICE_DEVICE void unpublish(Floats4* at, Location where = Location::current()) {
  const float nothing = std::bit_cast<float>(kNothingThere);
  store_published(at, {nothing, nothing, nothing, nothing}, where);
}

}  // namespace sluice::arch
