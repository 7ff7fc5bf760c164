// How the quantize kernels divide their work: decided here for the kernels and for those who launch them.
#pragma once

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
