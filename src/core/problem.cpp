#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include "sluice/problem.hpp"

namespace sluice {
namespace {

constexpr std::int64_t kLargestExtent = std::numeric_limits<std::int32_t>::max() - 1024;  // coordinates are 32-bit, tiles round up
constexpr std::int64_t kLargestPitchBytes = std::int64_t{1} << 40;                        // cuTensorMapEncodeTiled: globalStrides
constexpr std::int64_t kLargestTensorBytes = std::int64_t{1} << 62;
constexpr int kMostAlignmentBytes = 16;

// Products of an extent and a stride.
__extension__ typedef __int128 Wide;  // NOLINT(modernize-use-using): __extension__ goes with a typedef alone

Error invalid(std::string message) { return {ErrorCode::invalid_argument, std::move(message)}; }
std::string text(std::int64_t value) { return std::to_string(value); }

struct MatrixShape {
  const char* name;
  std::int64_t rows;     // of contiguous vectors
  std::int64_t columns;  // elements in a contiguous vector
  int element_bytes;
  bool may_repeat;  // a batch stride of 0 makes sense
};

// Fills in kPacked, and checks what a matrix's strides must satisfy.
Status resolve_strides(const MatrixShape& shape, std::int64_t batch, std::int64_t& leading, std::int64_t& batch_stride) {
  const std::string ld = std::string("ld") + shape.name;
  const std::string bs = std::string("batch_stride_") + shape.name;
  const std::int64_t shortest = shape.columns > 0 ? shape.columns : 1;
  if (leading == kPacked) leading = shortest;
  if (leading < shortest)
    return invalid(ld + " = " + text(leading) + " is shorter than the " + text(shortest) + " contiguous elements of a row or column of " +
                   shape.name + "; pass at least that, or kPacked");
  if (leading > kLargestPitchBytes / shape.element_bytes - 1)
    return Error{ErrorCode::too_large, ld + " = " + text(leading) + " elements is 2^40 bytes or more; copy the matrix to a denser layout"};
  const std::int64_t rows = shape.rows > 0 ? shape.rows : 0;
  const Wide one = rows == 0 ? 0 : static_cast<Wide>(rows - 1) * leading + shape.columns;
  if (one * shape.element_bytes > kLargestTensorBytes)
    return Error{ErrorCode::too_large, std::string(shape.name) + " of " + text(rows) + " rows or columns with " + ld + " = " +
                                           text(leading) + " spans more than 2^62 bytes; split the product"};
  const std::int64_t dense = static_cast<std::int64_t>(static_cast<Wide>(rows) * leading);
  if (batch_stride == kPacked) batch_stride = dense;
  if (batch_stride < 0) return invalid(bs + " = " + text(batch_stride) + " is negative; pass 0 to repeat one matrix, or kPacked");
  if (batch <= 1) {  // never used: an odd value must not exclude the tensor memory accelerator
    batch_stride = dense;
    return Nothing{};
  }
  if (batch_stride > kLargestPitchBytes / shape.element_bytes - 1)
    return Error{ErrorCode::too_large,
                 bs + " = " + text(batch_stride) + " elements is 2^40 bytes or more; bring the matrices closer together"};
  if (!shape.may_repeat && one > 0) {
    // One after another, or interleaved: the rows of all matrices between two rows of the first.
    const bool one_after_another = batch_stride >= one;
    const bool interleaved = batch_stride >= shape.columns && leading >= static_cast<Wide>(batch - 1) * batch_stride + shape.columns;
    if (!one_after_another && !interleaved)
      return invalid(bs + " = " + text(batch_stride) + " makes the matrices of the batch overlap; pass at least " +
                     text(static_cast<std::int64_t>(one)));
  }
  return Nothing{};
}

Status check_extent(const char* name, std::int64_t value) {
  if (value < 0) return invalid(std::string(name) + " = " + text(value) + " is negative; pass 0 or more");
  if (value > kLargestExtent)
    return Error{ErrorCode::too_large, std::string(name) + " = " + text(value) + " is over the limit of " + text(kLargestExtent) +
                                           " (coordinates are 32-bit); split the product along " + name};
  return Nothing{};
}

Status check_alignment(const char* name, int value, int element_bytes) {
  const bool power_of_two = value > 0 && (value & (value - 1)) == 0;
  if (!power_of_two || value < element_bytes || value > kMostAlignmentBytes)
    return invalid(std::string("alignment_") + name + "_bytes = " + text(value) + " must be a power of two from the element's " +
                   text(element_bytes) + " bytes to " + text(kMostAlignmentBytes) + "; a pointer aligned better than that counts as " +
                   text(kMostAlignmentBytes));
  return Nothing{};
}

Status check_types(const GemmProblem& p) {
  if (p.type_ab != DataType::bf16 && p.type_ab != DataType::fp16)
    return Error{ErrorCode::unsupported, std::string("type_ab = ") + to_string(p.type_ab) + "; A and B must be bf16 or fp16"};
  if (p.type_d != DataType::bf16 && p.type_d != DataType::fp16 && p.type_d != DataType::fp32)
    return Error{ErrorCode::unsupported, std::string("type_d = ") + to_string(p.type_d) + "; D must be bf16, fp16 or fp32"};
  // Enumerators come through the C ABI and from files as plain numbers.
  const auto unknown = [](const char* field, auto value, auto last) { return value > last ? field : nullptr; };
  for (const char* field :
       {unknown("layout_a", p.layout_a, Layout::column_major), unknown("layout_b", p.layout_b, Layout::column_major),
        unknown("bias", p.epilogue.bias, Bias::per_column), unknown("activation", p.epilogue.activation, Activation::silu)})
    if (field != nullptr) return invalid(std::string(field) + " is none of the enumeration's values; see types.hpp");
  return Nothing{};
}

}  // namespace

Result<GemmProblem> validate(const GemmProblem& problem) {
  GemmProblem p = problem;
  if (Status s = check_types(p); !s) return s.error();
  for (const auto& [name, value] : {std::pair{"m", p.m}, {"n", p.n}, {"k", p.k}, {"batch", p.batch}})
    if (Status s = check_extent(name, value); !s) return s.error();

  const int ab = size_bytes(p.type_ab), d = size_bytes(p.type_d);
  const bool a_rows = p.layout_a == Layout::row_major, b_rows = p.layout_b == Layout::row_major;
  const MatrixShape a{"a", a_rows ? p.m : p.k, a_rows ? p.k : p.m, ab, true};
  const MatrixShape b{"b", b_rows ? p.k : p.n, b_rows ? p.n : p.k, ab, true};
  const MatrixShape c{"c", p.m, p.n, d, true};
  const MatrixShape out{"d", p.m, p.n, d, false};
  if (Status s = resolve_strides(a, p.batch, p.lda, p.batch_stride_a); !s) return s.error();
  if (Status s = resolve_strides(b, p.batch, p.ldb, p.batch_stride_b); !s) return s.error();
  if (Status s = resolve_strides(c, p.batch, p.ldc, p.batch_stride_c); !s) return s.error();
  if (Status s = resolve_strides(out, p.batch, p.ldd, p.batch_stride_d); !s) return s.error();

  if (Status s = check_alignment("a", p.alignment_a_bytes, ab); !s) return s.error();
  if (Status s = check_alignment("b", p.alignment_b_bytes, ab); !s) return s.error();
  if (Status s = check_alignment("d", p.alignment_d_bytes, d); !s) return s.error();
  return p;
}

bool is_empty(const GemmProblem& problem) { return problem.m == 0 || problem.n == 0 || problem.batch == 0; }

double flops(const GemmProblem& p) {
  if (p.epilogue.alpha == 0.0f) return 0;
  return 2.0 * static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k) * static_cast<double>(p.batch);
}

std::string describe(const GemmProblem& p) {
  std::string line = text(p.m) + " x " + text(p.n) + " x " + text(p.k);
  if (p.batch != 1) line += ", batch " + text(p.batch);
  line += std::string(" ") + to_string(p.type_ab) + " -> " + to_string(p.type_d);
  line += std::string(", A ") + to_string(p.layout_a) + ", B " + to_string(p.layout_b);
  if (p.epilogue.beta != 0.0f) line += ", + beta C";
  if (p.epilogue.bias != Bias::none) line += std::string(", bias ") + to_string(p.epilogue.bias);
  if (p.epilogue.activation != Activation::none) line += std::string(", ") + to_string(p.epilogue.activation);
  if (p.constant_a || p.constant_b) line += std::string(", constant ") + (!p.constant_b ? "A" : p.constant_a ? "A and B" : "B");
  return line;
}

}  // namespace sluice
