#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <tuple>
#include <utility>

#include "sluice/problem.hpp"

#include "core/groups.hpp"
#include "core/scale_layout.hpp"
#include "core/w4_layout.hpp"

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
Error strides_of_groups(const std::string& name, std::int64_t stride) {
  return invalid(name + " = " + text(stride) + " with general groups, each of which has its own (GroupArguments); pass kPacked");
}

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
  // Without columns a row has no end to start behind: whatever suits the element type will do.
  if (leading == kPacked) leading = shape.columns <= 0 && shape.element_bytes == 1 ? kMostAlignmentBytes : shortest;
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

bool fp8(const GemmProblem& p) { return is_fp8(p.type_a); }

bool w4(const GemmProblem& p) { return p.type_b == DataType::int4; }

Status check_w4_types(const GemmProblem& p) {
  if (p.type_a != DataType::bf16 && p.type_a != DataType::fp16 && p.type_a != DataType::e4m3)
    return Error{ErrorCode::unsupported, std::string("type_a = ") + to_string(p.type_a) +
                                             " with type_b = int4; A must be bf16, fp16 or e4m3 beside weights of 4 bits"};
  if (p.layout_a != Layout::row_major || p.layout_b != Layout::column_major)
    return Error{ErrorCode::unsupported, std::string("layout_a = ") + to_string(p.layout_a) + ", layout_b = " + to_string(p.layout_b) +
                                             " with type_b = int4; A must be row-major, and packed weights count as column-major"};
  return Nothing{};
}

Status check_operand_types(const GemmProblem& p) {
  if (w4(p)) return check_w4_types(p);
  for (const auto& [field, type] : {std::pair{"type_a", p.type_a}, {"type_b", p.type_b}})
    if (type != DataType::bf16 && type != DataType::fp16 && !is_fp8(type))
      return Error{ErrorCode::unsupported, std::string(field) + " = " + to_string(type) + "; A and B must be bf16, fp16, e4m3 or e5m2"};
  if (p.type_a != p.type_b && !(is_fp8(p.type_a) && is_fp8(p.type_b)))
    return Error{ErrorCode::unsupported, std::string("type_a = ") + to_string(p.type_a) + " with type_b = " + to_string(p.type_b) +
                                             "; 16-bit operands must have the same type, and FP8 goes with FP8: convert one of them"};
  if (fp8(p) && (p.layout_a != Layout::row_major || p.layout_b != Layout::column_major))
    return Error{ErrorCode::unsupported, std::string("layout_a = ") + to_string(p.layout_a) + ", layout_b = " + to_string(p.layout_b) +
                                             " with fp8 operands; K must be contiguous in both (A row-major, B column-major): transpose"};
  return Nothing{};
}

Status check_types(const GemmProblem& p) {
  if (Status s = check_operand_types(p); !s) return s;
  const bool fp8_d = is_fp8(p.type_d) && fp8(p) && !w4(p);
  if (p.type_d != DataType::bf16 && p.type_d != DataType::fp16 && p.type_d != DataType::fp32 && !fp8_d)
    return Error{ErrorCode::unsupported, std::string("type_d = ") + to_string(p.type_d) + " with " +
                                             to_string(w4(p) ? p.type_b : p.type_a) +
                                             " operands; D must be bf16, fp16 or fp32, and of fp8 operands alone it may be e4m3 or e5m2"};
  // Enumerators come through the C ABI and from files as plain numbers.
  const auto unknown = [](const char* field, auto value, auto last) { return value > last ? field : nullptr; };
  for (const char* field :
       {unknown("grouping", p.grouping, Grouping::general), unknown("layout_a", p.layout_a, Layout::column_major),
        unknown("layout_b", p.layout_b, Layout::column_major), unknown("scaling_a", p.scaling_a, Scaling::per_block_128),
        unknown("scaling_b", p.scaling_b, Scaling::per_block_128), unknown("scaling_d", p.scaling_d, Scaling::per_block_128),
        unknown("scale_layout_a", p.scale_layout_a, Layout::column_major),
        unknown("scale_layout_b", p.scale_layout_b, Layout::column_major),
        unknown("scale_layout_d", p.scale_layout_d, Layout::column_major), unknown("bias", p.epilogue.bias, Bias::per_group_column),
        unknown("activation", p.epilogue.activation, Activation::silu)})
    if (field != nullptr) return invalid(std::string(field) + " is none of the enumeration's values; see types.hpp and scaling.hpp");
  return Nothing{};
}

// An FP8 operand comes through the tensor memory accelerator, or not at all.
Status check_fp8_operand(const char* name, const char* vectors, std::int64_t leading, std::int64_t batch_stride, int alignment_bytes) {
  constexpr int kRowBytes = 16;
  const auto round_up = [](std::int64_t value) { return text((value + kRowBytes - 1) / kRowBytes * kRowBytes); };
  if (leading % kRowBytes != 0)
    return Error{ErrorCode::unsupported, std::string("ld") + name + " = " + text(leading) + " with fp8 operands: " + vectors +
                                             " must start at multiples of 16 bytes (ld" + name + " % 16 == 0, k if packed); pad to " +
                                             round_up(leading)};
  if (batch_stride % kRowBytes != 0)
    return Error{ErrorCode::unsupported, std::string("batch_stride_") + name + " = " + text(batch_stride) +
                                             " with fp8 operands: matrices must start at multiples of 16 bytes; pad to " +
                                             round_up(batch_stride)};
  if (alignment_bytes < kRowBytes)
    return Error{ErrorCode::unsupported, std::string("alignment_") + name + "_bytes = " + text(alignment_bytes) +
                                             " with fp8 operands: the matrix must start at a multiple of 16 bytes; move it"};
  return Nothing{};
}

// Packed weights have no pitch, and a format that the packing knows. What has no meaning becomes 0 or the default.
Status resolve_w4(GemmProblem& p) {
  const W4Format& f = p.w4;
  if (f.group_size != 0 && f.group_size != 32 && f.group_size != 64 && f.group_size != kW4SlabElems)
    return Error{ErrorCode::unsupported, "w4.group_size = " + text(f.group_size) +
                                             "; groups of weights of 4 bits have 32, 64 or 128 elements of k, or 0 for whole columns"};
  for (const auto& [name, value] : {std::pair{"n", p.n}, {"k", p.k}, {"lda", p.lda}, {"batch_stride_a", p.batch_stride_a}})
    if (value % 8 != 0)
      return Error{ErrorCode::unsupported, std::string(name) + " = " + text(value) +
                                               " with type_b = int4; it must be a multiple of 8: pad to " + text((value + 7) / 8 * 8)};
  for (const auto& [name, value] : {std::pair{"a", p.alignment_a_bytes}, {"b", p.alignment_b_bytes}})
    if (value < kMostAlignmentBytes)
      return Error{ErrorCode::unsupported, std::string("alignment_") + name + "_bytes = " + text(value) +
                                               " with type_b = int4; both operands must start at multiples of 16 bytes: move it"};
  const std::int64_t bytes = w4_matrix_bytes(p.n, p.k, f);
  if (p.ldb != kPacked && p.ldb != std::max<std::int64_t>(p.k, 1))
    return invalid("ldb = " + text(p.ldb) + " with type_b = int4; packed weights have no pitch: pass kPacked");
  p.ldb = std::max<std::int64_t>(p.k, 1);
  if (p.batch_stride_b == kPacked || p.batch <= 1) p.batch_stride_b = bytes;
  constexpr int kMatrixAlignmentBytes = 256;
  if (p.batch_stride_b < 0 || p.batch_stride_b % kMatrixAlignmentBytes != 0 || p.batch_stride_b > kLargestPitchBytes)
    return invalid("batch_stride_b = " + text(p.batch_stride_b) +
                   " with type_b = int4 is in bytes, a multiple of 256 up to 2^40; pass 0 to repeat one matrix, or kPacked");
  return Nothing{};
}

// From the first scale that is read to the last.
std::int64_t scale_elems(const ScaleStrides& strides, Scaling scaling, std::int64_t vectors, std::int64_t k, std::int64_t batch) {
  if (scaling == Scaling::none || vectors <= 0 || k <= 0 || batch <= 0) return 0;
  return strides.at(batch - 1, vectors - 1, k - 1) + 1;
}

// Fills in the strides of a matrix's scales (of D, k is its columns). What is not used becomes 0.
Status resolve_scales(const char* name, Scaling scaling, Layout layout, std::int64_t vectors, std::int64_t k, std::int64_t batch,
                      std::int64_t& leading, std::int64_t& batch_stride) {
  const std::string ld = std::string("ld_scale_") + name, bs = std::string("batch_stride_scale_") + name;
  const bool along_k = scales_along_k(scaling);
  const ScaleMatrix scales = scale_matrix(scaling, layout, vectors, k);
  const std::int64_t shortest = scales.adjacent, other = scales.others;
  if (leading == kPacked) leading = packed_scale_leading(scaling, scales);
  if (along_k && leading < shortest)
    return invalid(ld + " = " + text(leading) + " is shorter than the " + text(shortest) +
                   " scales that are adjacent; pass at least that, or kPacked");
  if (leading < 0 || leading > kLargestExtent) return invalid(ld + " = " + text(leading) + " is not in [0, 2^31 - 1024); pass kPacked");
  const std::int64_t last = along_k && shortest > 0 && other > 0 ? (other - 1) * leading + shortest - 1 : 0;
  if (last > std::numeric_limits<std::int32_t>::max())
    return Error{ErrorCode::too_large, ld + " = " + text(leading) + " puts the last scale of a matrix at element " + text(last) +
                                           ", over the limit of 2^31 - 1 (offsets are 32-bit); " +
                                           (leading > shortest ? "bring the scales closer together" : "split the product")};
  const std::int64_t dense = scaling == Scaling::none ? 0 : other * (along_k ? leading : shortest);
  if (batch_stride == kPacked || batch <= 1) batch_stride = dense;
  if (batch_stride < 0 || batch_stride > kLargestPitchBytes)
    return invalid(bs + " = " + text(batch_stride) + " is not in [0, 2^40]; pass 0 to repeat the scales, or kPacked");
  if (batch > 1 && (static_cast<Wide>(batch - 1) * batch_stride + last) * sizeof(float) > kLargestTensorBytes)
    return Error{ErrorCode::too_large,
                 bs + " = " + text(batch_stride) + " makes the scales of the batch span more than 2^62 bytes; bring them closer together"};
  if (!along_k) leading = 0;
  if (scaling == Scaling::none) batch_stride = 0;
  return Nothing{};
}

// What a D in FP8 can have, and what no other D has.
Status check_result_scales(GemmProblem& p) {
  if (!is_fp8(p.type_d) && p.scaling_d != Scaling::none)
    return Error{ErrorCode::unsupported, std::string("scaling_d = ") + to_string(p.scaling_d) + " with type_d = " + to_string(p.type_d) +
                                             "; only a D in fp8 has scales: use alpha"};
  if (is_fp8(p.type_d) && p.epilogue.beta != 0.0f)
    return Error{ErrorCode::unsupported, "beta = " + std::to_string(p.epilogue.beta) + " with type_d = " + to_string(p.type_d) +
                                             "; C cannot be added to a D in fp8: pass 0, or quantize() a D in fp32"};
  if (p.scaling_d == Scaling::per_vector || p.scaling_d == Scaling::per_block_128)
    return Error{ErrorCode::unsupported, std::string("scaling_d = ") + to_string(p.scaling_d) +
                                             "; D has one scale, which is given (tensor), or one for each 128 columns of a row (1x128): "
                                             "choose one of them, or quantize() a D in fp32"};
  const std::int64_t matrices = row_matrices(p);
  if (Status s = resolve_scales("d", p.scaling_d, p.scale_layout_d, p.m, p.n, matrices, p.ld_scale_d, p.batch_stride_scale_d); !s) return s;
  const std::int64_t one = scale_elems(scale_strides_d(p), p.scaling_d, p.m, p.n, 1);
  if (finds_scales(p) && matrices > 1 && p.batch_stride_scale_d < one)
    return invalid("batch_stride_scale_d = " + text(p.batch_stride_scale_d) +
                   " makes the scales of the batch overlap, which are written; pass at least " + text(one) + ", or kPacked");
  return Nothing{};
}

// General groups bring the strides of their scales. Operands that have none have no strides either.
Status check_scales_of_general(GemmProblem& p) {
  struct Scales {
    const char* name;
    Scaling scaling;
    std::int64_t &leading, &batch_stride;
  };
  for (const Scales& each :
       {Scales{"a", p.scaling_a, p.ld_scale_a, p.batch_stride_scale_a}, Scales{"b", p.scaling_b, p.ld_scale_b, p.batch_stride_scale_b}}) {
    if (each.scaling == Scaling::none) {
      each.leading = each.batch_stride = 0;
      continue;
    }
    for (const auto& [prefix, stride] : {std::pair{"ld_scale_", each.leading}, {"batch_stride_scale_", each.batch_stride}})
      if (stride != kPacked) return strides_of_groups(std::string(prefix) + each.name, stride);
  }
  return check_result_scales(p);
}

Status check_scales(GemmProblem& p) {
  if (w4(p) && p.scaling_b != Scaling::none)
    return Error{ErrorCode::unsupported, std::string("scaling_b = ") + to_string(p.scaling_b) +
                                             " with type_b = int4; weights of 4 bits bring their scales packed: pass Scaling::none"};
  if (w4(p) && scales_along_k(p.scaling_a))
    return Error{ErrorCode::unsupported, std::string("scaling_a = ") + to_string(p.scaling_a) +
                                             " with type_b = int4; beside weights of 4 bits A has a scale for each row or one for all (" +
                                             to_string(Scaling::per_vector) + ", " + to_string(Scaling::per_tensor) + ")"};
  if (!fp8(p) && (p.scaling_a != Scaling::none || p.scaling_b != Scaling::none))
    return Error{ErrorCode::unsupported, std::string("scaling_a = ") + to_string(p.scaling_a) + ", scaling_b = " + to_string(p.scaling_b) +
                                             " with " + to_string(p.type_a) + " operands; only those of FP8 have scales: use alpha"};
  if (is_general(p)) return check_scales_of_general(p);
  const std::int64_t a = is_grouped_along_k(p) ? 1 : row_matrices(p), b = is_grouped_along_k(p) ? 1 : p.batch;
  if (Status s = resolve_scales("a", p.scaling_a, p.scale_layout_a, p.m, p.k, a, p.ld_scale_a, p.batch_stride_scale_a); !s) return s;
  if (Status s = resolve_scales("b", p.scaling_b, p.scale_layout_b, p.n, p.k, b, p.ld_scale_b, p.batch_stride_scale_b); !s) return s;
  return check_result_scales(p);
}

// Groups along K begin anywhere in it: where K is contiguous, that is at no address that the copy engine takes. Those of FP8 operands begin
// with a block of scales.
Status check_groups_along_k(const GemmProblem& p) {
  const auto no = [](const std::string& what) { return Error{ErrorCode::unsupported, what}; };
  if (w4(p)) return no("type_b = int4 with groups along k; weights of 4 bits are no gradients: operands must be bf16, fp16 or FP8");
  if (fp8(p) && p.k % kScaleBlockElems != 0)
    return no("k = " + text(p.k) + " with groups along k of " + to_string(p.type_a) + ", which begin and end at multiples of 128; pad to " +
              text((p.k / kScaleBlockElems + 1) * kScaleBlockElems) + " with zeros");
  if (is_fp8(p.type_d))
    return no(std::string("type_d = ") + to_string(p.type_d) +
              " with groups along k; gradients are added up: D must be bf16, fp16 or fp32");
  if (fp8(p)) return Nothing{};
  if (p.layout_a != Layout::column_major || p.layout_b != Layout::row_major)
    return no(std::string("layout_a = ") + to_string(p.layout_a) + ", layout_b = " + to_string(p.layout_b) +
              " with groups along k; each element of K must be a row in memory (A column-major, B row-major): transpose");
  for (const auto& [name, leading, alignment] : {std::tuple{"a", p.lda, p.alignment_a_bytes}, {"b", p.ldb, p.alignment_b_bytes}})
    if (leading * size_bytes(p.type_a) % kMostAlignmentBytes != 0 || alignment < kMostAlignmentBytes)
      return no(std::string("ld") + name + " = " + text(leading) + ", alignment_" + name + "_bytes = " + text(alignment) +
                " with groups along k; the matrix and each element of K must start at a multiple of 16 bytes: pad and align");
  return Nothing{};
}

// What general groups bring with them, in device memory, and what their kernels cannot.
Status check_general(const GemmProblem& p) {
  const auto no = [](const std::string& what) { return Error{ErrorCode::unsupported, what}; };
  if (w4(p))
    return no(std::string("type_a = ") + to_string(p.type_a) + ", type_b = " + to_string(p.type_b) +
              " with general groups; operands must be bf16, fp16 or FP8: run one problem for each group, or take ragged groups");
  if (is_fp8(p.type_d))
    return no(std::string("type_d = ") + to_string(p.type_d) +
              " with general groups, which have no scales of D; D must be bf16, fp16 or fp32: quantize() it, or take ragged groups");
  if (p.layout_a != Layout::row_major || p.layout_b != Layout::column_major)
    return no(std::string("layout_a = ") + to_string(p.layout_a) + ", layout_b = " + to_string(p.layout_b) +
              " with general groups; K must be contiguous in both (A row-major, B column-major): transpose");
  for (const auto& [name, alignment] : {std::pair{"a", p.alignment_a_bytes}, {"b", p.alignment_b_bytes}})
    if (alignment < kMostAlignmentBytes)
      return no(std::string("alignment_") + name + "_bytes = " + text(alignment) +
                " with general groups; operands must start at multiples of 16 bytes: move them");
  if (p.epilogue.bias == Bias::per_group_column)
    return no("bias = per_group_column with general groups, each of which has a bias of its own (GroupArguments::bias); pass per_column");
  for (const auto& [name, stride] : {std::pair{"lda", p.lda},
                                     {"ldb", p.ldb},
                                     {"ldc", p.ldc},
                                     {"ldd", p.ldd},
                                     {"batch_stride_a", p.batch_stride_a},
                                     {"batch_stride_b", p.batch_stride_b},
                                     {"batch_stride_c", p.batch_stride_c},
                                     {"batch_stride_d", p.batch_stride_d}})
    if (stride != kPacked) return strides_of_groups(name, stride);
  return Nothing{};
}

// What has no meaning for rows that all groups share.
Status check_groups(GemmProblem& p) {
  if (p.expected_rows < 0 || p.expected_rows > kLargestExtent)
    return invalid("expected_rows = " + text(p.expected_rows) + " is not in [0, 2^31 - 1024); pass 0 to have it guessed");
  if (p.most_rows < 0 || p.most_rows > kLargestExtent)
    return invalid("most_rows = " + text(p.most_rows) + " is not in [0, 2^31 - 1024); pass 0 where it is not known");
  if (!is_grouped(p) && !is_general(p)) p.expected_rows = 0;
  if (!is_grouped(p)) p.most_rows = 0;
  if (is_grouped_along_k(p)) {
    p.batch_stride_a = p.batch_stride_b = p.batch_stride_scale_a = p.batch_stride_scale_b = 0;
    return check_groups_along_k(p);
  }
  if (p.grouping != Grouping::ragged) return Nothing{};
  if (p.layout_a != Layout::row_major)
    return Error{ErrorCode::unsupported, "layout_a = column-major with ragged groups; rows of A must be contiguous: transpose A"};
  if (p.scaling_a == Scaling::per_block_128)
    return Error{ErrorCode::unsupported,
                 "scaling_a = 128x128 with ragged groups, which begin at any row; A needs scales of its rows (1x128, vector or tensor)"};
  p.batch_stride_a = p.batch_stride_c = p.batch_stride_d = p.batch_stride_scale_a = p.batch_stride_scale_d = 0;
  return Nothing{};
}

// Fills in the strides of all matrices.
Status resolve_all_strides(GemmProblem& p) {
  const int ab = size_bytes(p.type_a), d = size_bytes(p.type_d);
  const bool a_rows = p.layout_a == Layout::row_major, b_rows = p.layout_b == Layout::row_major;
  const MatrixShape a{"a", a_rows ? p.m : p.k, a_rows ? p.k : p.m, ab, true};
  const MatrixShape b{"b", b_rows ? p.k : p.n, b_rows ? p.n : p.k, ab, true};
  const MatrixShape c{"c", p.m, p.n, d, true};
  const MatrixShape out{"d", p.m, p.n, d, false};
  // Without columns a row of A has no end to start behind.
  if (w4(p) && p.k == 0 && p.lda == kPacked) p.lda = kMostAlignmentBytes / ab;
  const bool along_k = is_grouped_along_k(p);  // A and B are one matrix each, and only D and C are as many as there are groups
  if (Status s = resolve_strides(a, along_k ? 1 : row_matrices(p), p.lda, p.batch_stride_a); !s) return s;
  if (!w4(p))
    if (Status s = resolve_strides(b, along_k ? 1 : p.batch, p.ldb, p.batch_stride_b); !s) return s;
  if (Status s = resolve_strides(c, row_matrices(p), p.ldc, p.batch_stride_c); !s) return s;
  if (Status s = resolve_strides(out, row_matrices(p), p.ldd, p.batch_stride_d); !s) return s;
  return Nothing{};
}

}  // namespace

Result<GemmProblem> validate(const GemmProblem& problem) {
  GemmProblem p = problem;
  if (Status s = check_types(p); !s) return s.error();
  for (const auto& [name, value] : {std::pair{"m", p.m}, {"n", p.n}, {"k", p.k}, {"batch", p.batch}})
    if (Status s = check_extent(name, value); !s) return s.error();

  const int ab = size_bytes(p.type_a), d = size_bytes(p.type_d);
  if (Status s = is_general(p) ? check_general(p) : resolve_all_strides(p); !s) return s.error();

  if (Status s = check_alignment("a", p.alignment_a_bytes, ab); !s) return s.error();
  if (Status s = check_alignment("b", p.alignment_b_bytes, ab); !s) return s.error();
  if (Status s = check_alignment("d", p.alignment_d_bytes, d); !s) return s.error();
  if (fp8(p) && !is_general(p)) {
    if (Status s = check_fp8_operand("a", "rows of A", p.lda, p.batch_stride_a, p.alignment_a_bytes); !s) return s.error();
    if (!w4(p))
      if (Status s = check_fp8_operand("b", "columns of B", p.ldb, p.batch_stride_b, p.alignment_b_bytes); !s) return s.error();
  }
  if (w4(p)) {
    if (Status s = resolve_w4(p); !s) return s.error();
  } else {
    p.w4 = {};
  }
  if (Status s = check_scales(p); !s) return s.error();
  if (Status s = check_groups(p); !s) return s.error();
  return p;
}

bool is_empty(const GemmProblem& problem) { return problem.m == 0 || problem.n == 0 || problem.batch == 0; }

std::int64_t scale_elems_a(const GemmProblem& p) {
  return is_general(p) ? 0 : scale_elems(scale_strides_a(p), p.scaling_a, p.m, p.k, row_matrices(p));
}
std::int64_t scale_elems_b(const GemmProblem& p) {
  return is_general(p) ? 0 : scale_elems(scale_strides_b(p), p.scaling_b, p.n, p.k, p.batch);
}
std::int64_t scale_elems_d(const GemmProblem& p) { return scale_elems(scale_strides_d(p), p.scaling_d, p.m, p.n, row_matrices(p)); }

std::int64_t bias_elems(const GemmProblem& p) {
  switch (p.epilogue.bias) {
    case Bias::none:
      return 0;
    case Bias::per_row:
      return p.m;
    case Bias::per_column:
      return p.n;
    case Bias::per_group_column:
      break;
  }
  return p.batch * p.n;
}

std::int64_t matrix_bytes_b(const GemmProblem& p) { return w4(p) ? w4_matrix_bytes(p.n, p.k, p.w4) : p.n * p.k * size_bytes(p.type_b); }

double flops(const GemmProblem& p) {
  if (p.epilogue.alpha == 0.0f) return 0;
  return 2.0 * static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k) *
         static_cast<double>(is_grouped_along_k(p) ? 1 : row_matrices(p));
}

std::string describe(const GemmProblem& p) {
  std::string line = text(p.m) + " x " + text(p.n) + " x " + text(p.k);
  if (has_groups(p))
    line += ", " + text(p.batch) + " " + to_string(p.grouping) + " groups";
  else if (p.batch != 1)
    line += ", batch " + text(p.batch);
  line += std::string(" ") + to_string(p.type_a);
  if (p.type_b != p.type_a) line += std::string(" x ") + to_string(p.type_b);
  line += std::string(" -> ") + to_string(p.type_d);
  if (w4(p)) {
    line += p.w4.group_size == 0 ? ", whole columns" : ", groups of " + text(p.w4.group_size);
    line += p.w4.zero_points ? " with zero points" : "";
  } else {
    line += std::string(", A ") + to_string(p.layout_a) + ", B " + to_string(p.layout_b);
  }
  if (p.scaling_a != Scaling::none || p.scaling_b != Scaling::none)
    line += std::string(", scales ") + to_string(p.scaling_a) + " and " + to_string(p.scaling_b);
  if (p.scaling_d != Scaling::none) line += std::string(", D scaled ") + to_string(p.scaling_d);
  if (p.epilogue.beta != 0.0f) line += ", + beta C";
  if (p.epilogue.bias != Bias::none) line += std::string(", bias ") + to_string(p.epilogue.bias);
  if (p.epilogue.activation != Activation::none) line += std::string(", ") + to_string(p.epilogue.activation);
  if (p.constant_a || p.constant_b) line += std::string(", constant ") + (!p.constant_b ? "A" : p.constant_a ? "A and B" : "B");
  return line;
}

}  // namespace sluice
