// What validate() refuses, and with which words; what it fills in.
#include "sluice/problem.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace sluice {
namespace {

constexpr std::int64_t kHuge = std::numeric_limits<std::int64_t>::max();

GemmProblem problem(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batch = 1) {
  return {.m = m, .n = n, .k = k, .batch = batch};
}

// The error's code, and every piece of text its message must hold: the value, the limit and the way out.
void expect_refused(const GemmProblem& p, ErrorCode code, const std::vector<std::string>& pieces) {
  const Result<GemmProblem> result = validate(p);
  ASSERT_FALSE(result.ok()) << describe(p) << " was accepted";
  EXPECT_EQ(result.error().code, code) << result.error().message;
  for (const std::string& piece : pieces)
    EXPECT_NE(result.error().message.find(piece), std::string::npos) << "'" << piece << "' is not in: " << result.error().message;
}

GemmProblem accepted(const GemmProblem& p) {
  const Result<GemmProblem> result = validate(p);
  EXPECT_TRUE(result.ok()) << result.error().message;
  return result.ok() ? *result : GemmProblem{};
}

TEST(Problem, PackedStridesFollowTheLayout) {
  GemmProblem p = problem(3, 5, 7, 2);
  GemmProblem v = accepted(p);
  EXPECT_EQ(v.lda, 7);  // rows of A
  EXPECT_EQ(v.ldb, 7);  // columns of B
  EXPECT_EQ(v.ldc, 5);
  EXPECT_EQ(v.ldd, 5);
  EXPECT_EQ(v.batch_stride_a, 21);
  EXPECT_EQ(v.batch_stride_b, 35);
  EXPECT_EQ(v.batch_stride_c, 15);
  EXPECT_EQ(v.batch_stride_d, 15);

  p.layout_a = Layout::column_major;
  p.layout_b = Layout::row_major;
  v = accepted(p);
  EXPECT_EQ(v.lda, 3);
  EXPECT_EQ(v.ldb, 5);
  EXPECT_EQ(v.batch_stride_a, 21);
  EXPECT_EQ(v.batch_stride_b, 35);
}

TEST(Problem, PackedBatchStrideCountsTheLeadingDimension) {
  GemmProblem p = problem(4, 4, 4, 3);
  p.lda = 16;
  EXPECT_EQ(accepted(p).batch_stride_a, 64);
}

TEST(Problem, ValidatingTwiceChangesNothing) {
  const GemmProblem once = accepted(problem(100, 200, 300, 4));
  EXPECT_EQ(accepted(once), once);
}

TEST(Problem, ZeroDimensionsAreLegal) {
  for (const GemmProblem& p : {problem(0, 8, 8), problem(8, 0, 8), problem(8, 8, 0), problem(0, 0, 0), problem(8, 8, 8, 0)}) accepted(p);
  EXPECT_TRUE(is_empty(problem(0, 8, 8)));
  EXPECT_TRUE(is_empty(problem(8, 0, 8)));
  EXPECT_TRUE(is_empty(problem(8, 8, 8, 0)));
  EXPECT_FALSE(is_empty(problem(8, 8, 0))) << "k = 0 still scales C";
  // As BLAS has it, a leading dimension is at least 1.
  EXPECT_EQ(accepted(problem(8, 8, 0)).lda, 1);
}

TEST(Problem, NegativeSizes) {
  expect_refused(problem(-1, 8, 8), ErrorCode::invalid_argument, {"m = -1", "negative", "0 or more"});
  expect_refused(problem(8, -2, 8), ErrorCode::invalid_argument, {"n = -2"});
  expect_refused(problem(8, 8, -3), ErrorCode::invalid_argument, {"k = -3"});
  expect_refused(problem(8, 8, 8, -4), ErrorCode::invalid_argument, {"batch = -4"});
  expect_refused(problem(std::numeric_limits<std::int64_t>::min(), 8, 8), ErrorCode::invalid_argument, {"-9223372036854775808"});
}

TEST(Problem, SizesBeyond32Bits) {
  expect_refused(problem(std::int64_t{1} << 31, 8, 8), ErrorCode::too_large, {"m = 2147483648", "2147482623", "split the product along m"});
  expect_refused(problem(8, kHuge, 8), ErrorCode::too_large, {"n = 9223372036854775807", "split"});
  expect_refused(problem(8, 8, std::int64_t{1} << 32), ErrorCode::too_large, {"k = 4294967296"});
  expect_refused(problem(8, 8, 8, std::int64_t{1} << 40), ErrorCode::too_large, {"batch = 1099511627776"});
}

// Each extent fits, their products do not fit in 64 bits: checked without overflow on the way.
TEST(Problem, ProductsBeyond64Bits) {
  const std::int64_t most = std::numeric_limits<std::int32_t>::max() - 1024;
  expect_refused(problem(most, 8, most), ErrorCode::too_large, {"a of 2147482623", "2^62 bytes", "split"});

  GemmProblem pitch = problem(most, 8, 8);
  pitch.lda = (std::int64_t{1} << 39) - 1;  // 2^40 - 2 bytes: the widest there is
  expect_refused(pitch, ErrorCode::too_large, {"lda = 549755813887", "2^62 bytes"});
  pitch.m = 2;
  accepted(pitch);
  pitch.lda += 1;
  expect_refused(pitch, ErrorCode::too_large, {"lda = 549755813888", "2^40 bytes", "denser"});
  pitch.lda = kHuge;
  expect_refused(pitch, ErrorCode::too_large, {"lda = 9223372036854775807"});
}

TEST(Problem, BatchStrideBeyondWhatATensorMapHolds) {
  GemmProblem p = problem(8, 8, 8, 2);
  p.batch_stride_b = (std::int64_t{1} << 39) - 8;
  accepted(p);
  p.batch_stride_b = std::int64_t{1} << 39;
  expect_refused(p, ErrorCode::too_large, {"batch_stride_b = 549755813888", "2^40 bytes", "closer"});
  p.batch_stride_b = kHuge;
  expect_refused(p, ErrorCode::too_large, {"batch_stride_b = 9223372036854775807"});
}

TEST(Problem, ShortLeadingDimensions) {
  GemmProblem p = problem(16, 32, 64);
  p.lda = 63;
  expect_refused(p, ErrorCode::invalid_argument, {"lda = 63", "64", "kPacked"});
  p = problem(16, 32, 64);
  p.layout_b = Layout::row_major;
  p.ldb = 31;
  expect_refused(p, ErrorCode::invalid_argument, {"ldb = 31", "32"});
  p = problem(16, 32, 64);
  p.ldc = 0;
  expect_refused(p, ErrorCode::invalid_argument, {"ldc = 0", "32"});
  p = problem(16, 32, 64);
  p.ldd = -7;
  expect_refused(p, ErrorCode::invalid_argument, {"ldd = -7", "32"});
}

TEST(Problem, BatchStrides) {
  GemmProblem p = problem(16, 32, 64, 3);
  p.batch_stride_a = p.batch_stride_b = p.batch_stride_c = 0;  // one matrix for all
  accepted(p);
  p.batch_stride_a = -2;
  expect_refused(p, ErrorCode::invalid_argument, {"batch_stride_a = -2", "0 to repeat", "kPacked"});
  p = problem(16, 32, 64, 3);
  p.batch_stride_a = 5;  // overlapping inputs are only read
  accepted(p);
  p.batch_stride_d = 0;
  expect_refused(p, ErrorCode::invalid_argument, {"batch_stride_d = 0", "at least 512"});
  p.batch_stride_d = 511;
  expect_refused(p, ErrorCode::invalid_argument, {"batch_stride_d = 511", "overlap", "at least 512"});
  p.batch_stride_d = 512;
  accepted(p);
  p.batch = 1;
  p.batch_stride_d = 0;
  accepted(p);
}

// [m][batch][n] in memory, as attention has it: no two matrices share an element.
TEST(Problem, InterleavedBatchesDoNotOverlap) {
  GemmProblem p = problem(16, 32, 64, 3);
  p.batch_stride_d = 32;
  p.ldd = 96;
  accepted(p);
  p.ldd = 95;
  expect_refused(p, ErrorCode::invalid_argument, {"batch_stride_d = 32", "overlap"});
  p.ldd = 96;
  p.batch_stride_d = 31;
  expect_refused(p, ErrorCode::invalid_argument, {"batch_stride_d = 31", "overlap"});
}

TEST(Problem, ABatchStrideThatIsNeverUsedDoesNotMatter) {
  GemmProblem p = problem(16, 32, 64);
  p.batch_stride_a = 3;
  p.batch_stride_d = kHuge;
  EXPECT_EQ(accepted(p), accepted(problem(16, 32, 64)));
}

TEST(Problem, Alignments) {
  GemmProblem p = problem(8, 8, 8);
  p.alignment_a_bytes = p.alignment_b_bytes = p.alignment_d_bytes = 2;
  accepted(p);
  for (const int bad : {0, 1, 3, 12, 32, -16, std::numeric_limits<int>::min()}) {
    GemmProblem q = problem(8, 8, 8);
    q.alignment_a_bytes = bad;
    expect_refused(q, ErrorCode::invalid_argument, {"alignment_a_bytes = " + std::to_string(bad), "power of two", "2 bytes to 16"});
  }
  p = problem(8, 8, 8);
  p.alignment_b_bytes = 1;
  expect_refused(p, ErrorCode::invalid_argument, {"alignment_b_bytes = 1"});
  p = problem(8, 8, 8);
  p.type_d = DataType::fp32;
  p.alignment_d_bytes = 2;
  expect_refused(p, ErrorCode::invalid_argument, {"alignment_d_bytes = 2", "4 bytes"});
}

TEST(Problem, Types) {
  GemmProblem p = problem(8, 8, 8);
  p.type_a = p.type_b = DataType::fp32;
  expect_refused(p, ErrorCode::unsupported, {"type_a = fp32", "bf16, fp16, e4m3 or e5m2"});
  p.type_a = DataType::bf16;
  expect_refused(p, ErrorCode::unsupported, {"type_b = fp32", "bf16, fp16, e4m3 or e5m2"});
  p.type_a = p.type_b = static_cast<DataType>(9);
  expect_refused(p, ErrorCode::unsupported, {"type_a"});
  p = problem(8, 8, 8);
  for (const DataType type : {DataType::e4m3, DataType::e5m2, static_cast<DataType>(5)}) {
    p.type_d = type;
    expect_refused(p, ErrorCode::unsupported, {std::string("type_d = ") + to_string(type), "bf16, fp16 or fp32"});
  }
  for (const DataType type : {DataType::bf16, DataType::fp16, DataType::fp32}) {
    p.type_d = type;
    accepted(p);
  }
}

GemmProblem fp8(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batch = 1) {
  GemmProblem p = problem(m, n, k, batch);
  p.type_a = p.type_b = DataType::e4m3;
  return p;
}

TEST(Problem, OperandsOfTwoTypes) {
  GemmProblem p = problem(8, 8, 16);
  p.type_a = DataType::fp16;
  expect_refused(p, ErrorCode::unsupported, {"type_a = fp16", "type_b = bf16", "same type", "convert"});
  p.type_b = DataType::e4m3;
  expect_refused(p, ErrorCode::unsupported, {"type_a = fp16", "type_b = e4m3", "FP8 goes with FP8", "convert"});
  for (const DataType a : {DataType::e4m3, DataType::e5m2})
    for (const DataType b : {DataType::e4m3, DataType::e5m2}) {
      p.type_a = a, p.type_b = b;
      EXPECT_EQ(accepted(p).ldb, 16);
    }
}

TEST(Problem, Fp8NeedsKContiguousAndRowsOf16Bytes) {
  GemmProblem p = fp8(8, 8, 16);
  p.layout_a = Layout::column_major;
  expect_refused(p, ErrorCode::unsupported, {"layout_a = column-major", "fp8", "K must be contiguous", "transpose"});
  p = fp8(16, 16, 16);
  p.layout_b = Layout::row_major;
  expect_refused(p, ErrorCode::unsupported, {"layout_b = row-major", "transpose"});

  expect_refused(fp8(8, 8, 100), ErrorCode::unsupported,
                 {"lda = 100 with fp8", "rows of A", "multiples of 16 bytes", "k if packed", "112"});
  p = fp8(8, 8, 100);
  p.lda = 112;
  expect_refused(p, ErrorCode::unsupported, {"ldb = 100 with fp8", "columns of B", "pad to 112"});
  p.ldb = 128;
  EXPECT_EQ(accepted(p).lda, 112);
  p.batch = 2;
  p.batch_stride_b = 8 * 128 + 8;
  expect_refused(p, ErrorCode::unsupported, {"batch_stride_b = 1032", "multiples of 16 bytes", "pad to 1040"});
  p = fp8(8, 8, 16);
  p.alignment_a_bytes = 8;
  expect_refused(p, ErrorCode::unsupported, {"alignment_a_bytes = 8 with fp8", "multiple of 16 bytes", "move it"});
  accepted(fp8(8, 8, 0));
  accepted(fp8(0, 8, 16));
}

TEST(Problem, ScalesAreOfFp8Alone) {
  GemmProblem p = problem(8, 8, 16);
  p.scaling_b = Scaling::per_tensor;
  expect_refused(p, ErrorCode::unsupported, {"scaling_a = none, scaling_b = tensor", "bf16 operands", "use alpha"});
}

TEST(Problem, NumbersOfABias) {
  GemmProblem p{.m = 3, .n = 50, .k = 8, .batch = 7};
  EXPECT_EQ(bias_elems(accepted(p)), 0);
  p.epilogue.bias = Bias::per_row;
  EXPECT_EQ(bias_elems(accepted(p)), 3);
  p.epilogue.bias = Bias::per_column;
  EXPECT_EQ(bias_elems(accepted(p)), 50);
  p.epilogue.bias = Bias::per_group_column;
  EXPECT_EQ(bias_elems(accepted(p)), 350);
}

TEST(Problem, StridesOfScales) {
  GemmProblem p = fp8(300, 1000, 528, 3);
  p.scaling_a = Scaling::per_vector_128, p.scaling_b = Scaling::per_block_128;
  GemmProblem v = accepted(p);
  EXPECT_EQ(v.ld_scale_a, 5);  // 4 blocks of K and 16 elements more
  EXPECT_EQ(v.ld_scale_b, 5);
  EXPECT_EQ(v.batch_stride_scale_a, 1500);
  EXPECT_EQ(v.batch_stride_scale_b, 8 * 5);
  EXPECT_EQ(scale_elems_a(v), 4500);
  EXPECT_EQ(scale_elems_b(v), 120);
  p.scale_layout_a = p.scale_layout_b = Layout::column_major;
  p.ld_scale_b = 9;
  p.batch_stride_scale_a = 0;
  v = accepted(p);
  EXPECT_EQ(v.ld_scale_a, 300);
  EXPECT_EQ(v.batch_stride_scale_b, 45);
  EXPECT_EQ(scale_elems_a(v), 1500);
  EXPECT_EQ(scale_elems_b(v), 2 * 45 + 4 * 9 + 8);
  EXPECT_EQ(accepted(v), v);

  p.scaling_a = Scaling::per_vector, p.scaling_b = Scaling::per_tensor;
  p.ld_scale_a = p.batch_stride_scale_a = kPacked;
  v = accepted(p);
  EXPECT_EQ(v.ld_scale_a, 0);  // never used
  EXPECT_EQ(v.ld_scale_b, 0);
  EXPECT_EQ(v.batch_stride_scale_a, 300);
  EXPECT_EQ(v.batch_stride_scale_b, 1);
  EXPECT_EQ(scale_elems_a(v), 900);
  EXPECT_EQ(scale_elems_b(v), 3);

  p.scaling_a = p.scaling_b = Scaling::none;
  v = accepted(p);
  EXPECT_EQ(scale_elems_a(v), 0);
  EXPECT_EQ(scale_elems_b(v), 0);
  EXPECT_EQ(v.batch_stride_scale_a, 0);
}

TEST(Problem, BadStridesOfScales) {
  GemmProblem p = fp8(300, 1000, 528, 3);
  p.scaling_a = Scaling::per_vector_128, p.scaling_b = Scaling::per_block_128;
  p.ld_scale_a = 4;
  expect_refused(p, ErrorCode::invalid_argument, {"ld_scale_a = 4", "5 scales that are adjacent", "kPacked"});
  p.scale_layout_a = Layout::column_major;
  p.ld_scale_a = 299;
  expect_refused(p, ErrorCode::invalid_argument, {"ld_scale_a = 299", "300"});
  p.ld_scale_a = kHuge;
  expect_refused(p, ErrorCode::invalid_argument, {"ld_scale_a = 9223372036854775807", "2^31 - 1024", "kPacked"});
  p.ld_scale_a = kPacked;
  p.batch_stride_scale_b = -5;
  expect_refused(p, ErrorCode::invalid_argument, {"batch_stride_scale_b = -5", "0 to repeat the scales", "kPacked"});
  p.batch_stride_scale_b = kHuge;
  expect_refused(p, ErrorCode::invalid_argument, {"batch_stride_scale_b = 9223372036854775807", "2^40"});
}

// Kernels find a scale within those of a matrix by 32 bits.
TEST(Problem, ScalesTooFarApart) {
  GemmProblem p = fp8(3, 300, 528);
  p.scaling_a = Scaling::per_vector_128, p.scaling_b = Scaling::per_block_128;
  p.ld_scale_a = (std::int64_t{1} << 30) - 2;  // the last: 2 * (2^30 - 2) + 4
  expect_refused(p, ErrorCode::too_large, {"ld_scale_a = 1073741822", "element 2147483648", "2^31 - 1", "closer together"});
  --p.ld_scale_a;
  EXPECT_EQ(scale_elems_a(accepted(p)), (std::int64_t{1} << 31) - 1);
  p.scale_layout_b = Layout::column_major;
  p.ld_scale_b = std::int64_t{1} << 29;
  expect_refused(p, ErrorCode::too_large, {"ld_scale_b = 536870912", "element 2147483650"});

  // Packed scales have no stride that would be better.
  for (const std::int64_t batch : {1, 3}) {
    p = fp8(std::int64_t{1} << 30, 16, std::int64_t{1} << 30, batch);
    p.batch_stride_a = 0;
    p.scaling_a = Scaling::per_vector_128;
    expect_refused(p, ErrorCode::too_large, {"ld_scale_a = 8388608", "element 9007199254740991", "split the product"});
  }
  p = fp8(std::int64_t{1} << 30, 16, 384, 3);
  p.scaling_a = Scaling::per_vector_128;
  expect_refused(p, ErrorCode::too_large, {"ld_scale_a = 3 ", "element 3221225471", "split the product"});
  p.k = 256;
  accepted(p);

  p = fp8(8, 8, 16, std::int64_t{1} << 30);
  p.scaling_a = Scaling::per_tensor;
  p.batch_stride_scale_a = std::int64_t{1} << 31;
  expect_refused(p, ErrorCode::too_large, {"batch_stride_scale_a = 2147483648", "2^62 bytes", "closer together"});
}

TEST(Problem, EnumeratorsThatDoNotExist) {
  const auto refused = [](GemmProblem p, const char* field, auto change) {
    change(p);
    expect_refused(p, ErrorCode::invalid_argument, {field});
  };
  const GemmProblem plain = problem(8, 8, 8), scaled = fp8(8, 8, 16);
  refused(plain, "layout_a", [](GemmProblem& p) { p.layout_a = static_cast<Layout>(2); });
  refused(plain, "layout_b", [](GemmProblem& p) { p.layout_b = static_cast<Layout>(255); });
  refused(plain, "bias", [](GemmProblem& p) { p.epilogue.bias = static_cast<Bias>(4); });
  refused(plain, "activation", [](GemmProblem& p) { p.epilogue.activation = static_cast<Activation>(4); });
  refused(scaled, "scaling_a", [](GemmProblem& p) { p.scaling_a = static_cast<Scaling>(5); });
  refused(scaled, "scaling_b", [](GemmProblem& p) { p.scaling_b = static_cast<Scaling>(200); });
  refused(scaled, "scale_layout_a", [](GemmProblem& p) { p.scale_layout_a = static_cast<Layout>(2); });
  refused(scaled, "scale_layout_b", [](GemmProblem& p) { p.scale_layout_b = static_cast<Layout>(2); });
}

TEST(Problem, FlopsCountWhatIsMultiplied) {
  EXPECT_EQ(flops(problem(2, 3, 5, 7)), 420);
  GemmProblem p = problem(2, 3, 5);
  p.epilogue.alpha = 0;
  EXPECT_EQ(flops(p), 0);
  EXPECT_EQ(flops(problem(1 << 30, 1 << 30, 1 << 30)), 0x1p91);
}

TEST(Problem, DescriptionNamesWhatDiffers) {
  EXPECT_EQ(describe(problem(2, 3, 5)), "2 x 3 x 5 bf16 -> bf16, A row-major, B column-major");
  GemmProblem p = problem(2, 3, 5, 7);
  p.type_d = DataType::fp32;
  p.layout_a = Layout::column_major;
  p.epilogue = {.beta = 1, .bias = Bias::per_row, .activation = Activation::silu};
  EXPECT_EQ(describe(p), "2 x 3 x 5, batch 7 bf16 -> fp32, A column-major, B column-major, + beta C, bias per_row, silu");
  p = fp8(2, 3, 16);
  p.type_b = DataType::e5m2;
  p.scaling_a = Scaling::per_vector_128, p.scaling_b = Scaling::per_block_128;
  EXPECT_EQ(describe(p), "2 x 3 x 16 e4m3 x e5m2 -> bf16, A row-major, B column-major, scales 1x128 and 128x128");
}

}  // namespace
}  // namespace sluice
