#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include "sluice/problem.hpp"
#include "sluice/w4.hpp"

#include "core/check_w4.hpp"
#include "core/w4_layout.hpp"
#include "core/w4_packing.hpp"

namespace sluice {
namespace {

constexpr std::int64_t kLargestExtent = std::numeric_limits<std::int32_t>::max() - 1024;  // columns and elements are 32-bit, slabs round up
constexpr std::int64_t kMostSlabs = std::numeric_limits<std::int32_t>::max();             // each is packed by a CTA
constexpr int kWordCodes = 8;                                                             // codes of a 32-bit word
constexpr int kStepElems = 16;                                                            // of K, that wgmma multiplies at once

Error invalid(std::string message) { return {ErrorCode::invalid_argument, std::move(message)}; }
Error too_large(std::string message) { return {ErrorCode::too_large, std::move(message)}; }
Error unsupported(std::string message) { return {ErrorCode::unsupported, std::move(message)}; }
std::string text(std::int64_t value) { return std::to_string(value); }
std::int64_t up(std::int64_t value, std::int64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

Status check_kind(const PackW4Problem& p) {
  // Enumerators come through the C ABI as plain numbers.
  if (p.source > W4Source::awq) return invalid("source is none of the enumeration's values; see w4.hpp");
  if (Status s = check_w4_type("type", p.type); !s) return s;
  if (p.type_scales != DataType::bf16 && p.type_scales != DataType::fp16 && p.type_scales != DataType::fp32)
    return unsupported(std::string("type_scales = ") + to_string(p.type_scales) +
                       "; scales must be bf16, fp16 or fp32: convert them to one of these");
  return Nothing{};
}

Status check_extent(const char* name, std::int64_t value, const char* holds) {
  if (value < 0) return invalid(std::string(name) + " = " + text(value) + " is negative; pass 0 or more");
  if (value > kLargestExtent)
    return too_large(std::string(name) + " = " + text(value) + " is over the limit of " + text(kLargestExtent) +
                     "; pack the matrix in parts");
  if (value % kWordCodes != 0)
    return invalid(std::string(name) + " = " + text(value) + " is no multiple of 8 " + holds + "; fill up with weights of 0 to " +
                   text(up(value, kWordCodes)));
  return Nothing{};
}

Status check_pointer(const char* name, const void* pointer, int alignment_bytes, const char* holds) {
  if (pointer == nullptr) return invalid(std::string(name) + " is null; pass memory for " + holds);
  const auto behind = reinterpret_cast<std::uintptr_t>(pointer) % static_cast<std::uintptr_t>(alignment_bytes);
  if (behind == 0) return Nothing{};
  return Error{ErrorCode::misaligned, std::string(name) + " lies " + text(static_cast<std::int64_t>(behind)) +
                                          " bytes behind a multiple of " + text(alignment_bytes) + ", which it must begin at; move it"};
}

Status check_leading(const char* name, std::int64_t& leading, std::int64_t k) {
  if (leading == kPacked) leading = k;
  if (leading < k)
    return invalid(std::string(name) + " = " + text(leading) + " is shorter than the " + text(k) +
                   " elements of a row; pass at least that, or kPacked");
  if (leading > kLargestExtent)
    return too_large(std::string(name) + " = " + text(leading) + " is over the limit of " + text(kLargestExtent) +
                     "; bring the rows closer together");
  return Nothing{};
}

}  // namespace

Status check_w4_type(const char* name, DataType type) {
  if (type == DataType::bf16 || type == DataType::fp16 || type == DataType::e4m3) return Nothing{};
  return unsupported(std::string(name) + " = " + to_string(type) + "; weights of 4 bits are for activations of bf16, fp16 or e4m3");
}

Status check_w4_shape(std::int64_t n, std::int64_t k, const W4Format& format) {
  if (format.group_size != 0 && format.group_size != 32 && format.group_size != 64 && format.group_size != 128)
    return unsupported(
        "group_size = " + text(format.group_size) +
        "; groups have 32, 64 or 128 elements of K, or 0 for the whole column: repeat the scales of larger groups for each 128");
  if (Status s = check_extent("n", n, "columns"); !s) return s;
  if (Status s = check_extent("k", k, "elements"); !s) return s;
  if (format.group_size > 0 && k % format.group_size != 0 && k % kStepElems != 0)
    return invalid("k = " + text(k) + " ends within a group of " + text(format.group_size) +
                   " elements, and is no multiple of 16; fill up with weights of 0 to " + text(up(k, kStepElems)));
  if (k > 0 && w4_blocks(n) > kMostSlabs / w4_slabs(k))
    return too_large("n = " + text(n) + " and k = " + text(k) +
                     " make more than 2^31 - 1 slabs of 64 columns and 128 elements; pack the matrix in parts");
  return Nothing{};
}

Result<PackW4Problem> validate(const PackW4Problem& problem) {
  if (Status s = check_kind(problem); !s) return s.error();
  if (Status s = check_w4_shape(problem.n, problem.k, problem.format); !s) return s.error();
  return problem;
}

bool is_empty(const PackW4Problem& problem) { return problem.n == 0 || problem.k == 0; }

std::string describe(const PackW4Problem& p) {
  std::string line = text(p.k) + " x " + text(p.n) + " int4 from " + to_string(p.source);
  line += p.format.group_size == 0 ? ", whole columns" : ", groups of " + text(p.format.group_size);
  if (p.format.zero_points) line += " with zero points";
  if (p.format.zero_points && p.source == W4Source::gptq && !p.zeros_less_one) line += " as they are";
  return line + ", for " + to_string(p.type);
}

std::int64_t packed_w4_bytes(std::int64_t n, std::int64_t k, const W4Format& format) {
  return n <= 0 || k <= 0 ? 0 : w4_matrix_bytes(n, k, format);
}

Status check_arguments(const PackW4Problem& p, const PackW4Arguments& arguments) {
  if (is_empty(p)) return Nothing{};
  constexpr int kWordBytes = 4;
  if (Status s = check_pointer("codes", arguments.codes, kWordBytes, "the codes, two in a byte"); !s) return s;
  if (Status s = check_pointer("scales", arguments.scales, size_bytes(p.type_scales), "the scales of all groups"); !s) return s;
  if (p.format.zero_points) {
    const int alignment = p.source == W4Source::plain ? 1 : kWordBytes;
    if (Status s = check_pointer("zeros", arguments.zeros, alignment, "the zero points, or a format without them"); !s) return s;
  } else if (arguments.zeros != nullptr) {
    return invalid("zeros are given, but the format has none; set format.zero_points, or pass null where all are 8");
  }
  if (arguments.order != nullptr)
    if (Status s = check_pointer("order", arguments.order, sizeof(std::int32_t), "the order of K"); !s) return s;
  return check_pointer("packed", arguments.packed, kW4PackedAlignmentBytes, "the result (packed_w4_bytes() of it)");
}

Status check_packed_w4(std::int64_t n, std::int64_t k, const W4Format& format, DataType type, const void* packed, const void* weights) {
  if (Status s = check_w4_type("type", type); !s) return s;
  if (Status s = check_w4_shape(n, k, format); !s) return s;
  if (n == 0 || k == 0) return Nothing{};
  if (Status s = check_pointer("packed", packed, size_bytes(w4_scale_type(type)), "the packed weights"); !s) return s;
  return check_pointer("weights", weights, size_bytes(is_fp8(type) ? DataType::fp32 : type), "n rows of k weights");
}

Result<PermuteColumnsProblem> validate(const PermuteColumnsProblem& problem) {
  PermuteColumnsProblem p = problem;
  for (const auto& [name, extent] : {std::pair{"m", p.m}, {"k", p.k}}) {
    if (extent < 0) return invalid(std::string(name) + " = " + text(extent) + " is negative; pass 0 or more");
    if (extent > kLargestExtent)
      return too_large(std::string(name) + " = " + text(extent) + " is over the limit of " + text(kLargestExtent) +
                       "; permute the rows in parts");
  }
  if (Status s = check_leading("ld_from", p.ld_from, p.k); !s) return s.error();
  if (Status s = check_leading("ld_to", p.ld_to, p.k); !s) return s.error();
  if (p.m > 0 && permute_ctas(p) > kMostSlabs)
    return too_large("m = " + text(p.m) + " and k = " + text(p.k) + " make more than 2^31 - 1 pieces; permute the rows in parts");
  return p;
}

bool is_empty(const PermuteColumnsProblem& problem) { return problem.m == 0 || problem.k == 0; }

Status check_arguments(const PermuteColumnsProblem& p, const void* from, const std::int32_t* order, const void* to) {
  if (is_empty(p)) return Nothing{};
  constexpr int kElementBytes = 2;
  if (Status s = check_pointer("from", from, kElementBytes, "the rows to be permuted"); !s) return s;
  if (Status s = check_pointer("order", order, sizeof(std::int32_t), "the order of K"); !s) return s;
  if (Status s = check_pointer("to", to, kElementBytes, "the result"); !s) return s;
  if (from == to) return invalid("from and to are the same memory, but columns change their places; pass another place for the result");
  return Nothing{};
}

}  // namespace sluice
