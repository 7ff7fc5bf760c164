// What to compute. A problem is a value: shapes, types, layouts, strides and the epilogue, no pointers.
#pragma once

#include <cstdint>
#include <string>

#include "sluice/error.hpp"
#include "sluice/grouping.hpp"
#include "sluice/scaling.hpp"
#include "sluice/types.hpp"
#include "sluice/w4_format.hpp"

namespace sluice {

// As a leading dimension: the matrix is dense. As a batch stride: matrices follow one another without a gap.
inline constexpr std::int64_t kPacked = -1;

struct Epilogue {
  float alpha = 1.0f;
  float beta = 0.0f;  // beta == 0 never reads C
  Bias bias = Bias::none;
  Activation activation = Activation::none;

  bool operator==(const Epilogue&) const = default;
};

// D[b] = activation(alpha * A[b] B[b] + beta * C[b] + bias), for b in [0, batch).
//
// FP8 operands have scales, and the product is of the numbers times their scales. Their products are accumulated by the tensor cores over
// 128 of K, and these sums in fp32: the tensor cores keep too few bits for more (docs/numbers.md). K is contiguous in both, and rows start
// at multiples of 16 bytes.
//
// A is m x k, B is k x n, C and D are m x n and row-major. Accumulation is in fp32; the result is rounded once, to type_d.
// C and the bias have D's type (not beside a D in FP8: scaling.hpp). C may be D (same pointer, same strides); any other overlap of D with
// an input is an error the library cannot see. alpha == 0 or k == 0 never reads A and B. m, n or batch of 0 does nothing.
struct GemmProblem {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  std::int64_t batch = 1;

  DataType type_a = DataType::bf16;  // bf16 or fp16, and then B's type too, or int4; or e4m3 or e5m2, and then one of these for B, or int4
  DataType type_b = DataType::bf16;
  DataType type_d = DataType::bf16;  // bf16, fp16 or fp32; of FP8 operands also e4m3 or e5m2
  Layout layout_a = Layout::row_major;
  Layout layout_b = Layout::column_major;  // column_major: each column of B, k elements, is contiguous ("B[N,K] transposed")

  // Leading dimensions in elements: the distance between rows (row_major) or columns (column_major).
  std::int64_t lda = kPacked;
  std::int64_t ldb = kPacked;
  std::int64_t ldc = kPacked;
  std::int64_t ldd = kPacked;

  // Batch strides in elements. 0 repeats one matrix for the whole batch (A, B and C only).
  std::int64_t batch_stride_a = kPacked;
  std::int64_t batch_stride_b = kPacked;
  std::int64_t batch_stride_c = kPacked;
  std::int64_t batch_stride_d = kPacked;

  // What the caller promises about the pointers passed to run(), in bytes, a power of two from the element's size to 16.
  // Less than 16 for A or B excludes the tensor memory accelerator, and a slower load path is planned.
  int alignment_a_bytes = 16;
  int alignment_b_bytes = 16;
  int alignment_d_bytes = 16;  // of C, D and bias

  // The caller's promise that no kernel still running, or yet to run, when this one is launched writes A or B: weights, typically. Such an
  // operand is fetched before the kernel before this one in the stream has finished (programmatic dependent launch), which hides launch
  // and ramp, 1 to 2 us. Kernels before it that start their own successors early count as running until they have ended: where one
  // of them writes the operand, leave this false, or the product may be of old values.
  bool constant_a = false;
  bool constant_b = false;

  // FP8 only: scaling.hpp says what scales mean and where they lie.
  Scaling scaling_a = Scaling::none;
  Scaling scaling_b = Scaling::none;
  Scaling scaling_d = Scaling::none;  // or per_tensor or per_vector_128
  Layout scale_layout_a = Layout::row_major;
  Layout scale_layout_b = Layout::row_major;
  Layout scale_layout_d = Layout::row_major;
  std::int64_t ld_scale_a = kPacked;
  std::int64_t ld_scale_b = kPacked;
  std::int64_t ld_scale_d = kPacked;
  std::int64_t batch_stride_scale_a = kPacked;
  std::int64_t batch_stride_scale_b = kPacked;
  std::int64_t batch_stride_scale_d = kPacked;

  // Weights of 4 bits (type_b int4): w4_format.hpp.
  W4Format w4;

  // Groups: `batch` of them, whose rows the device counts: grouping.hpp.
  Grouping grouping = Grouping::none;
  // For the planner alone: about how many rows a group has, and how many any has at most; 0: not said.
  std::int64_t expected_rows = 0, most_rows = 0;

  Epilogue epilogue;

  bool operator==(const GemmProblem&) const = default;
};

// The problem with every kPacked replaced by its value, or why it cannot be run.
Result<GemmProblem> validate(const GemmProblem& problem);

// Whether there is anything to compute at all (m, n and batch above 0).
bool is_empty(const GemmProblem& problem);

// How many numbers the scales must hold, of a validated problem: from the first to the last that is read or written. 0 without scales.
std::int64_t scale_elems_a(const GemmProblem& problem);
std::int64_t scale_elems_b(const GemmProblem& problem);
std::int64_t scale_elems_d(const GemmProblem& problem);
// How many numbers the bias has: one for each row, each column, or each column of each matrix. 0 without one.
std::int64_t bias_elems(const GemmProblem& problem);

// Bytes of one matrix B, of a validated problem: packed, of weights of 4 bits.
std::int64_t matrix_bytes_b(const GemmProblem& problem);

// Multiply-adds that read A and B: 2 m n k batch (ragged and along_k: 2 m n k), or 0 when alpha == 0. Of groups it is the most there can
// be.
double flops(const GemmProblem& problem);

// One line: "4096 x 4096 x 4096 bf16 -> bf16, A row-major, B column-major".
std::string describe(const GemmProblem& problem);

}  // namespace sluice
