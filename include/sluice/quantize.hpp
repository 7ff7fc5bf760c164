// From 16 or 32 bits to FP8 with scales, which is what a product of FP8 operands takes: docs/quantize.md has the formulas.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "sluice/emulator.hpp"
#include "sluice/error.hpp"
#include "sluice/problem.hpp"
#include "sluice/run.hpp"
#include "sluice/scaling.hpp"
#include "sluice/types.hpp"

namespace sluice {

// What is quantised.
enum class QuantizeInput : std::uint8_t {
  plain,       // x
  silu_times,  // x / (1 + exp(-x)) * y, in fp32: the gate of a language model's feed-forward layer
};
const char* to_string(QuantizeInput input);  // "plain", "silu-times"
std::optional<QuantizeInput> parse_quantize_input(std::string_view text);

// m rows of k contiguous elements: the rows of A, or the columns of B, of a product of FP8 operands. In each block of elements that share
// a scale, with `largest` the greatest magnitude in it and 448 (e4m3) or 57344 (e5m2) the largest number of type_q,
//   scale = max(largest / 448, 2^-126)     in fp32, rounded to nearest; 1 where largest is 0
//   q = x * (1 / scale)                    each rounded to fp32, then to nearest even in type_q, saturating
// so that q * scale is x up to half a step of type_q. A NaN stays one and has no part in `largest`. An infinity makes its scale infinite,
// and so its block, multiplied by the scale, NaN: neither type is given a way to hide it. All of plain is the same to the bit on the GPU,
// the emulator and the CPU. silu_times is not: exp() differs in its last bits.
struct QuantizeProblem {
  std::int64_t m = 0;
  std::int64_t k = 0;

  DataType type_x = DataType::bf16;  // bf16, fp16 or fp32; y has the same
  DataType type_q = DataType::e4m3;  // or e5m2
  QuantizeInput input = QuantizeInput::plain;

  // per_vector, per_vector_128 or per_block_128; blocks at the edges have scales of their own.
  Scaling scaling = Scaling::per_vector_128;
  bool power_of_two_scales = false;  // rounded up to one, as UE8M0 holds them

  // Distances between rows, in elements. Any will do; vectors of 16 bytes are moved where they, k and the pointers allow it.
  std::int64_t ldx = kPacked;
  std::int64_t ldy = kPacked;
  std::int64_t ldq = kPacked;

  // As GemmProblem::scale_layout_a and ld_scale_a: a row of scales for each row, or 128 rows, of x, a column for each 128 of k. The m
  // scales of per_vector are neighbours: what stands here must be in range, as a product's, and means nothing.
  Layout scale_layout = Layout::row_major;
  std::int64_t ld_scale = kPacked;

  bool operator==(const QuantizeProblem&) const = default;
};

// The problem with every kPacked replaced by its value, or why it cannot be run.
Result<QuantizeProblem> validate(const QuantizeProblem& problem);

// Whether there is anything to do at all (m and k above 0).
bool is_empty(const QuantizeProblem& problem);

// How many numbers `scale` must hold, of a validated problem: from the first to the last that is written.
std::int64_t scale_elems(const QuantizeProblem& problem);

// What is read and written, of a validated problem: each element once, and each scale.
double bytes_moved(const QuantizeProblem& problem);

// One line: "4096 x 7168 bf16 -> e4m3, scales 1x128".
std::string describe(const QuantizeProblem& problem);

struct QuantizeArguments {
  const void* x = nullptr;
  const void* y = nullptr;  // needed by silu_times
  void* q = nullptr;        // bytes beyond k in a row are left alone; overlaps neither x nor y
  float* scale = nullptr;
};

// Enqueues it on `stream` of the current device: no allocation, no synchronisation, no hidden state. Safe from many threads, legal during
// stream capture. Its launch overlaps the kernel before it, and that of the kernel behind it this one, where those take part in
// programmatic dependent launch; memory is touched only when the kernel before it has ended. Errors: those of validate(); null or
// misaligned pointers, a device that is not Hopper, CUDA errors.
Status quantize(const QuantizeProblem& problem, const QuantizeArguments& arguments, Stream stream);

// The same in host memory, by plain loops. `threads` of 0 takes all cores.
Status quantize_on_cpu(const QuantizeProblem& problem, const QuantizeArguments& host_arguments, int threads = 0);

// The same by the kernel's own source on the emulated machine, in the calling thread.
// Errors: those of quantize(); ErrorCode::emulation when the kernel does something wrong.
Status quantize_on_emulator(const QuantizeProblem& problem, const QuantizeArguments& host_arguments, const EmulatorOptions& options = {});

}  // namespace sluice
