#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include "sluice/quantize.hpp"

#include "core/check_quantize.hpp"
#include "core/quantize_config.hpp"

namespace sluice {
namespace {

constexpr std::int64_t kLargestExtent = std::numeric_limits<std::int32_t>::max() - 1024;  // rows and columns are 32-bit, CTAs round up
constexpr std::int64_t kLargestScale = std::numeric_limits<std::int32_t>::max();          // as GemmProblem reads them

Error invalid(std::string message) { return {ErrorCode::invalid_argument, std::move(message)}; }
std::string text(std::int64_t value) { return std::to_string(value); }

std::int64_t blocks(std::int64_t extent) { return (extent + kScaleBlockElems - 1) / kScaleBlockElems; }

Status check_kind(const QuantizeProblem& p) {
  if (p.type_x != DataType::bf16 && p.type_x != DataType::fp16 && p.type_x != DataType::fp32)
    return Error{ErrorCode::unsupported, std::string("type_x = ") + to_string(p.type_x) + "; x must be bf16, fp16 or fp32"};
  if (!is_fp8(p.type_q)) return Error{ErrorCode::unsupported, std::string("type_q = ") + to_string(p.type_q) + "; q must be e4m3 or e5m2"};
  // Enumerators come through the C ABI as plain numbers.
  if (p.input > QuantizeInput::silu_times || p.scaling > Scaling::per_block_128 || p.scale_layout > Layout::column_major)
    return invalid("input, scaling or scale_layout is none of the enumeration's values; see quantize.hpp, scaling.hpp and types.hpp");
  if (p.scaling != Scaling::per_vector && !scales_along_k(p.scaling))
    return Error{ErrorCode::unsupported,
                 std::string("scaling = ") + to_string(p.scaling) +
                     "; scales are found for per_vector (vector), per_vector_128 (1x128) and per_block_128 (128x128): choose one of them"};
  return Nothing{};
}

Status check_extent(const char* name, std::int64_t value) {
  if (value < 0) return invalid(std::string(name) + " = " + text(value) + " is negative; pass 0 or more");
  if (value > kLargestExtent)
    return Error{ErrorCode::too_large,
                 std::string(name) + " = " + text(value) + " is over the limit of " + text(kLargestExtent) + "; quantise it in parts"};
  return Nothing{};
}

Status resolve_leading(const char* name, const QuantizeProblem& p, std::int64_t& leading) {
  if (leading == kPacked) leading = std::max<std::int64_t>(p.k, 1);
  if (leading < p.k)
    return invalid(std::string(name) + " = " + text(leading) + " is shorter than the " + text(p.k) +
                   " elements of a row; pass at least that, or kPacked");
  if (leading > kLargestExtent)
    return Error{ErrorCode::too_large, std::string(name) + " = " + text(leading) + " is over the limit of " + text(kLargestExtent) +
                                           " (rows are found by 32-bit multiplications); bring them closer together"};
  return Nothing{};
}

// The same rules as for the scales of an operand.
Status resolve_scales(QuantizeProblem& p) {
  const bool along_k = scales_along_k(p.scaling);
  const std::int64_t rows = p.scaling == Scaling::per_block_128 ? blocks(p.m) : p.m, columns = blocks(p.k);
  const std::int64_t adjacent = p.scale_layout == Layout::row_major ? columns : rows;
  const std::int64_t others = p.scale_layout == Layout::row_major ? rows : columns;
  if (p.ld_scale == kPacked) p.ld_scale = along_k ? std::max<std::int64_t>(adjacent, 1) : 0;
  if (along_k && p.ld_scale < adjacent)
    return invalid("ld_scale = " + text(p.ld_scale) + " is shorter than the " + text(adjacent) +
                   " scales that are adjacent; pass at least that, or kPacked");
  if (p.ld_scale < 0 || p.ld_scale > kLargestExtent)
    return invalid("ld_scale = " + text(p.ld_scale) + " is not in [0, 2^31 - 1024); pass kPacked");
  if (!along_k) {  // one for each row, neighbours
    p.ld_scale = 0;
    return Nothing{};
  }
  const std::int64_t last = adjacent > 0 && others > 0 ? (others - 1) * p.ld_scale + adjacent - 1 : 0;
  if (last > kLargestScale)
    return Error{ErrorCode::too_large, "ld_scale = " + text(p.ld_scale) + " puts the last scale at element " + text(last) +
                                           ", over the limit of 2^31 - 1 (a product reads them by 32-bit offsets); quantise x in parts"};
  return Nothing{};
}

Status check_pointer(const char* name, const void* pointer, int element_bytes, const char* holds) {
  if (pointer == nullptr) return invalid(std::string(name) + " is null; pass memory for " + holds);
  if (reinterpret_cast<std::uintptr_t>(pointer) % static_cast<std::uintptr_t>(element_bytes) == 0) return Nothing{};
  return Error{ErrorCode::misaligned,
               std::string(name) + " lies " +
                   text(static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(pointer) % static_cast<std::uintptr_t>(element_bytes))) +
                   " bytes behind a multiple of " + text(element_bytes) + ", the size of its elements; move it"};
}

}  // namespace

Result<QuantizeProblem> validate(const QuantizeProblem& problem) {
  QuantizeProblem p = problem;
  if (Status s = check_kind(p); !s) return s.error();
  if (Status s = check_extent("m", p.m); !s) return s.error();
  if (Status s = check_extent("k", p.k); !s) return s.error();
  if (Status s = resolve_leading("ldx", p, p.ldx); !s) return s.error();
  if (Status s = resolve_leading("ldq", p, p.ldq); !s) return s.error();
  if (p.input == QuantizeInput::plain) p.ldy = kPacked;  // never used
  if (Status s = resolve_leading("ldy", p, p.ldy); !s) return s.error();
  if (Status s = resolve_scales(p); !s) return s.error();
  return p;
}

bool is_empty(const QuantizeProblem& problem) { return problem.m == 0 || problem.k == 0; }

std::int64_t scale_elems(const QuantizeProblem& p) { return is_empty(p) ? 0 : scale_strides(p).at(0, p.m - 1, p.k - 1) + 1; }

double bytes_moved(const QuantizeProblem& p) {
  const double elements = static_cast<double>(p.m) * static_cast<double>(p.k);
  const double inputs = p.input == QuantizeInput::silu_times ? 2 : 1;
  const std::int64_t scale_rows = p.scaling == Scaling::per_block_128 ? blocks(p.m) : p.m;
  const std::int64_t scale_columns = p.scaling == Scaling::per_vector ? 1 : blocks(p.k);
  return elements * (inputs * size_bytes(p.type_x) + size_bytes(p.type_q)) +
         static_cast<double>(scale_rows * scale_columns) * static_cast<double>(sizeof(float));
}

std::string describe(const QuantizeProblem& p) {
  std::string line =
      text(p.m) + " x " + text(p.k) + " " + to_string(p.type_x) + " -> " + to_string(p.type_q) + ", scales " + to_string(p.scaling);
  if (p.scale_layout == Layout::column_major) line += std::string(" ") + to_string(p.scale_layout);
  if (p.power_of_two_scales) line += ", powers of two";
  if (p.input != QuantizeInput::plain) line += std::string(", ") + to_string(p.input);
  return line;
}

Status check_arguments(const QuantizeProblem& p, const QuantizeArguments& arguments) {
  if (is_empty(p)) return Nothing{};
  if (Status s = check_pointer("x", arguments.x, size_bytes(p.type_x), "what is to be quantised"); !s) return s;
  if (p.input == QuantizeInput::silu_times)
    if (Status s = check_pointer("y", arguments.y, size_bytes(p.type_x), "what silu(x) is multiplied by"); !s) return s;
  if (Status s = check_pointer("q", arguments.q, size_bytes(p.type_q), "the result"); !s) return s;
  return check_pointer("scale", arguments.scale, sizeof(float), "the scales (scale_elems() of them)");
}

}  // namespace sluice
