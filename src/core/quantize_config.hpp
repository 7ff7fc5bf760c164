// How the quantize kernels divide their work: decided here for the kernels and for those who launch them.
#pragma once

#include <cstdint>

#include "sluice/quantize.hpp"

#include "core/scale_layout.hpp"

namespace sluice {

// What is compiled apart.
struct QuantizeConfig {
  DataType type_x = DataType::bf16;
  DataType type_q = DataType::e4m3;
  Scaling scaling = Scaling::per_vector_128;
  QuantizeInput input = QuantizeInput::plain;

  bool operator==(const QuantizeConfig&) const = default;
};

constexpr QuantizeConfig quantize_config(const QuantizeProblem& p) { return {p.type_x, p.type_q, p.scaling, p.input}; }

// A strip is 128 columns of one row: all that has one scale of per_vector_128, or one row of a block of per_block_128. Neighbouring lanes
// share a strip, with a vector of 16 bytes of x each, and go on to the next: the one below it in a block, else the one beside it.
inline constexpr int kStripElems = kScaleBlockElems;
inline constexpr int kVectorBytes = 16;

constexpr int vector_elems(DataType type_x) { return kVectorBytes / size_bytes(type_x); }
constexpr int lanes_per_strip(const QuantizeConfig& c) { return kStripElems / vector_elems(c.type_x); }

// Each thread fetches eight vectors before it looks at the first. With the 1024 threads that an SM holds at 64 registers each these are 128
// KB, several times the 30 KB that are on their way at full speed (4.8 TB/s x 0.8 us over 132 SMs): memory stays busy while CTAs compute,
// store, come and go.
inline constexpr int kVectorsInFlight = 8;
inline constexpr int kThreadsPerSm = 1024;

constexpr int strips_per_thread(const QuantizeConfig& c) {
  return c.input == QuantizeInput::silu_times ? kVectorsInFlight / 2 : kVectorsInFlight;
}

// Who shares a scale shares a CTA: a block takes 256 to 1024 threads. Strips need not, and small CTAs come and go more smoothly. The
// threads of a row go along it together, a vector each, as often as it takes.
constexpr int threads_per_cta(const QuantizeConfig& c) {
  constexpr int kThreadsForOthers = 256;
  return c.scaling == Scaling::per_block_128 ? kScaleBlockElems / strips_per_thread(c) * lanes_per_strip(c) : kThreadsForOthers;
}
// Groups of lanes with strips of their own.
constexpr int teams_per_cta(const QuantizeConfig& c) { return threads_per_cta(c) / lanes_per_strip(c); }

// The CTAs that an SM has when a launch begins fetch at the same time, have all at the same time, and compute together while memory rests,
// block after block. Where computing takes long and there are two of them, the second lets the first one fetch before it begins; from then
// on one fetches while the other computes. (4096 x 7168 in bf16, SiLU: 41.4 to 39.2 us, 1.5 to 3 us of head start alike; H200, 25 November
// 2026. Without SiLU it gains nothing.)
inline constexpr int kHeadStartNs = 2000;
constexpr bool begin_in_turn(const QuantizeConfig& c) {
  return c.scaling == Scaling::per_block_128 && c.input == QuantizeInput::silu_times && 2 * threads_per_cta(c) == kThreadsPerSm;
}
// Of `ctas` CTAs those from the sm_count-th to this one wait. A launch of one or two rounds would lose more by it than it gains.
constexpr std::int64_t end_of_waiting(const QuantizeConfig& c, std::int64_t ctas, int sm_count) {
  constexpr std::int64_t kFewestCtasPerSm = 4;
  return begin_in_turn(c) && ctas >= kFewestCtasPerSm * sm_count ? 2 * sm_count : sm_count;
}

// One number for each warp.
constexpr int shared_memory_bytes(const QuantizeConfig& c) {
  return c.scaling == Scaling::per_vector_128 ? 0 : threads_per_cta(c) / 32 * static_cast<int>(sizeof(float));
}

static_assert(threads_per_cta({.type_x = DataType::bf16, .scaling = Scaling::per_block_128}) == 256);
static_assert(threads_per_cta({.type_x = DataType::fp32, .scaling = Scaling::per_block_128, .input = QuantizeInput::silu_times}) ==
              kThreadsPerSm);

// Where the scales of a validated problem lie.
constexpr ScaleStrides scale_strides(const QuantizeProblem& p) { return scale_strides(p.scaling, p.scale_layout, p.ld_scale, 0); }

}  // namespace sluice
