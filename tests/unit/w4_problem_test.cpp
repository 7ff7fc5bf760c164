// Products of weights of 4 bits: what validate() fills in and refuses, and what of them plans and their JSON keep.
#include <gtest/gtest.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

#include "sluice/plan.hpp"
#include "sluice/w4.hpp"

#include "devices.hpp"
#include "refused.hpp"

namespace sluice {
namespace {

using test::expect_refused;
using enum ErrorCode;

GemmProblem w4_problem() { return {.m = 16, .n = 4096, .k = 1024, .type_b = DataType::int4}; }

// One thing about it changed.
template <class Change>
Result<GemmProblem> changed(Change change) {
  GemmProblem p = w4_problem();
  change(p);
  return validate(p);
}

TEST(W4Problem, StridesAreFilledIn) {
  for (const W4Format& format : {W4Format{}, W4Format{.group_size = 32, .zero_points = true}, W4Format{.group_size = 0}}) {
    const Result<GemmProblem> one = changed([&](GemmProblem& p) { p.w4 = format; });
    ASSERT_TRUE(one.ok()) << one.error().message;
    EXPECT_EQ(one->w4, format);
    EXPECT_EQ(one->lda, 1024);
    EXPECT_EQ(one->batch_stride_b, packed_w4_bytes(4096, 1024, format)) << "in bytes";
    EXPECT_EQ(matrix_bytes_b(*one), packed_w4_bytes(4096, 1024, format));
  }
}

TEST(W4Problem, ValidatingTwiceChangesNothing) {
  for (const std::int64_t batch : {1, 3})
    for (const std::int64_t k : {0, 8, 1024})
      for (const std::int64_t n : {0, 8, 4096}) {
        const Result<GemmProblem> once = changed([&](GemmProblem& p) { p.batch = batch, p.k = k, p.n = n; });
        ASSERT_TRUE(once.ok()) << once.error().message;
        const Result<GemmProblem> twice = validate(*once);
        ASSERT_TRUE(twice.ok()) << twice.error().message << ": " << describe(*once);
        EXPECT_EQ(*twice, *once);
      }
}

TEST(W4Problem, AllActivationTypesAndAllResultsAreTaken) {
  for (const DataType a : {DataType::bf16, DataType::fp16, DataType::e4m3})
    for (const DataType d : {DataType::bf16, DataType::fp16, DataType::fp32})
      EXPECT_TRUE(changed([&](GemmProblem& p) { p.type_a = a, p.type_d = d; }).ok());
}

TEST(W4Problem, OtherTypesAreRefused) {
  for (const DataType type : {DataType::fp32, DataType::e5m2, DataType::int4})
    expect_refused(changed([&](GemmProblem& p) { p.type_a = type; }), unsupported,
                   {std::string("type_a = ") + to_string(type) + " with type_b = int4", "bf16, fp16 or e4m3"});
  expect_refused(validate({.m = 8, .n = 8, .k = 8, .type_a = DataType::int4}), unsupported, {"type_a = int4"});
  expect_refused(changed([](GemmProblem& p) { p.type_d = DataType::int4; }), unsupported, {"type_d = int4"});
}

TEST(W4Problem, OneLayoutIsTaken) {
  expect_refused(changed([](GemmProblem& p) { p.layout_a = Layout::column_major; }), unsupported,
                 {"layout_a = column-major", "type_b = int4"});
  expect_refused(changed([](GemmProblem& p) { p.layout_b = Layout::row_major; }), unsupported, {"layout_b = row-major", "column-major"});
}

TEST(W4Problem, SizesAreMultiplesOf8) {
  expect_refused(changed([](GemmProblem& p) { p.n = 4090; }), unsupported, {"n = 4090 with type_b = int4", "multiple of 8", "pad to 4096"});
  expect_refused(changed([](GemmProblem& p) { p.k = 1020; }), unsupported, {"k = 1020", "pad to 1024"});
  expect_refused(changed([](GemmProblem& p) { p.lda = 1025; }), unsupported, {"lda = 1025", "pad to 1032"});
  expect_refused(changed([](GemmProblem& p) { p.batch = 2, p.batch_stride_a = 16388; }), unsupported,
                 {"batch_stride_a = 16388", "pad to 16392"});
  EXPECT_TRUE(changed([](GemmProblem& p) { p.m = 13, p.n = 8, p.k = 8; }).ok()) << "rows are free";
}

TEST(W4Problem, OperandsAreAligned) {
  expect_refused(changed([](GemmProblem& p) { p.alignment_a_bytes = 8; }), unsupported,
                 {"alignment_a_bytes = 8 with type_b = int4", "multiples of 16 bytes"});
  expect_refused(changed([](GemmProblem& p) { p.alignment_b_bytes = 4; }), unsupported, {"alignment_b_bytes = 4", "move it"});
  EXPECT_TRUE(changed([](GemmProblem& p) { p.alignment_d_bytes = 2; }).ok());
}

TEST(W4Problem, BHasNoPitchAndAStrideOfBytes) {
  expect_refused(changed([](GemmProblem& p) { p.ldb = 1032; }), invalid_argument, {"ldb = 1032", "no pitch", "kPacked"});
  for (const std::int64_t stride : {std::int64_t{100}, std::int64_t{-256}, (std::int64_t{1} << 40) + 256})
    expect_refused(changed([=](GemmProblem& p) { p.batch = 2, p.batch_stride_b = stride; }), invalid_argument,
                   {"batch_stride_b = " + std::to_string(stride), "in bytes, a multiple of 256 up to 2^40", "kPacked"});
  const std::int64_t bytes = packed_w4_bytes(4096, 1024, {});
  for (const std::int64_t stride : {std::int64_t{0}, bytes, bytes + 256})
    EXPECT_EQ(changed([=](GemmProblem& p) { p.batch = 2, p.batch_stride_b = stride; })->batch_stride_b, stride);
  EXPECT_EQ(changed([](GemmProblem& p) { p.batch_stride_b = 100; })->batch_stride_b, bytes) << "of one matrix it is never used";
}

TEST(W4Problem, GroupsHaveAFewSizes) {
  for (const int size : {0, 32, 64, 128}) EXPECT_TRUE(changed([=](GemmProblem& p) { p.w4.group_size = size; }).ok());
  for (const int size : {-1, 1, 16, 48, 256})
    expect_refused(changed([=](GemmProblem& p) { p.w4.group_size = size; }), unsupported,
                   {"w4.group_size = " + std::to_string(size), "32, 64 or 128", "0 for whole columns"});
}

TEST(W4Problem, ScalesComePackedAndNotOtherwise) {
  for (const Scaling scaling : {Scaling::per_tensor, Scaling::per_vector, Scaling::per_vector_128, Scaling::per_block_128}) {
    expect_refused(changed([=](GemmProblem& p) { p.scaling_a = scaling; }), unsupported, {"scaling_a", to_string(scaling)});
    expect_refused(changed([=](GemmProblem& p) { p.scaling_b = scaling; }), unsupported, {"scaling_b", "type_b = int4", "Scaling::none"});
  }
}

TEST(W4Problem, OfE4m3RowsAreScaledOrAll) {
  const auto of_bytes = [](auto change) {
    return changed([&](GemmProblem& p) {
      p.type_a = DataType::e4m3;
      change(p);
    });
  };
  for (const Scaling scaling : {Scaling::none, Scaling::per_tensor, Scaling::per_vector}) {
    const Result<GemmProblem> p = of_bytes([=](GemmProblem& q) { q.scaling_a = scaling; });
    ASSERT_TRUE(p.ok()) << p.error().message;
    EXPECT_EQ(p->scaling_a, scaling);
    EXPECT_EQ(*validate(*p), *p);
  }
  for (const Scaling scaling : {Scaling::per_vector_128, Scaling::per_block_128})
    expect_refused(of_bytes([=](GemmProblem& p) { p.scaling_a = scaling; }), unsupported,
                   {"scaling_a = ", "type_b = int4", "a scale for each row or one for all (vector, tensor)"});
  expect_refused(of_bytes([](GemmProblem& p) { p.scaling_b = Scaling::per_tensor; }), unsupported, {"scaling_b", "Scaling::none"});
  expect_refused(of_bytes([](GemmProblem& p) { p.k = 1000; }), unsupported, {"lda = 1000 with fp8 operands", "pad to 1008"});
  expect_refused(of_bytes([](GemmProblem& p) { p.batch = 2, p.batch_stride_a = 16392; }), unsupported,
                 {"batch_stride_a = 16392", "pad to 16400"});
  EXPECT_TRUE(of_bytes([](GemmProblem& p) { p.k = 1000, p.lda = 1008; }).ok());
}

TEST(W4Problem, GroupsOfRowsAreTakenAndThoseAlongKAreNot) {
  for (const Grouping grouping : {Grouping::ragged, Grouping::masked})
    EXPECT_TRUE(changed([=](GemmProblem& p) { p.batch = 4, p.grouping = grouping; }).ok());
  expect_refused(changed([](GemmProblem& p) { p.batch = 4, p.grouping = Grouping::along_k; }), unsupported,
                 {"type_b = int4 with groups along k", "bf16, fp16 or FP8"});
}

TEST(W4Problem, WithoutInt4TheFormatMeansNothing) {
  const GemmProblem plain{.m = 16, .n = 64, .k = 64};
  GemmProblem odd = plain;
  odd.w4 = {.group_size = 5, .zero_points = true};
  ASSERT_TRUE(validate(odd).ok());
  EXPECT_EQ(*validate(odd), *validate(plain));
}

TEST(W4Problem, IsDescribedWithItsFormat) {
  EXPECT_EQ(describe(*validate(w4_problem())), "16 x 4096 x 1024 bf16 x int4 -> bf16, groups of 128");
  EXPECT_EQ(describe(*changed([](GemmProblem& p) { p.w4 = {.group_size = 0, .zero_points = true}; })),
            "16 x 4096 x 1024 bf16 x int4 -> bf16, whole columns with zero points");
}

TEST(W4Plan, TakesKernelsThatDequantiseAndNoOthers) {
  const Result<Plan> made = plan(w4_problem(), h200());
  ASSERT_TRUE(made.ok()) << made.error().message;
  EXPECT_EQ(made->kernel.type_b, DataType::int4);
  for (const Candidate& candidate : made->candidates)
    EXPECT_TRUE(candidate.verdict != CandidateVerdict::slower || candidate.kernel.type_b == DataType::int4) << name(candidate.kernel);
  const Result<Plan> of_bf16 = plan({.m = 16, .n = 4096, .k = 1024}, h200());
  EXPECT_EQ(of_bf16->kernel.type_b, DataType::bf16);
  EXPECT_LT(made->predicted.hbm_us, 0.5 * of_bf16->predicted.hbm_us) << "a quarter of the bytes of B";
}

TEST(W4Plan, ActivationsOf8BitsHaveKernelsOfTheirOwn) {
  GemmProblem p = w4_problem();
  p.type_a = DataType::e4m3;
  p.scaling_a = Scaling::per_vector;
  for (const std::int64_t m : {1, 16, 100, 5000}) {
    p.m = m;
    const Result<Plan> made = plan(p, h200());
    ASSERT_TRUE(made.ok()) << made.error().message;
    EXPECT_EQ(made->kernel.type_a, DataType::e4m3);
    EXPECT_EQ(made->kernel.type_b, DataType::int4);
  }
  EXPECT_EQ(describe(*validate(p)), "5000 x 4096 x 1024 e4m3 x int4 -> bf16, groups of 128, scales vector and none");
}

TEST(W4Plan, ReadsBackFromItsJson) {
  for (const W4Format& format : {W4Format{}, W4Format{.group_size = 64, .zero_points = true}, W4Format{.group_size = 0}}) {
    GemmProblem p = w4_problem();
    p.w4 = format;
    p.batch = 2, p.batch_stride_b = 0;
    const Plan made = *plan(p, h200(), {.keep_candidates = false});
    const nlohmann::json json = nlohmann::json::parse(to_json(made))["problem"];
    EXPECT_EQ(json["type_b"], "int4");
    if (format == W4Format{})
      EXPECT_FALSE(json.contains("w4")) << "plans of products without weights of 4 bits stay as they were";
    else
      EXPECT_EQ(json["w4"].dump(), nlohmann::json({{"group_size", format.group_size}, {"zero_points", format.zero_points}}).dump());
    const Result<Plan> back = plan_from_json(to_json(made));
    ASSERT_TRUE(back.ok()) << back.error().message;
    EXPECT_EQ(*back, made);
  }
}

TEST(W4Plan, JsonWithAWrongFormatIsRefused) {
  GemmProblem p = w4_problem();
  p.w4.group_size = 64;
  const Plan made = *plan(p, h200(), {.keep_candidates = false});
  const auto with = [&](const char* pointer, const nlohmann::ordered_json& value) {
    nlohmann::ordered_json json = nlohmann::ordered_json::parse(to_json(made));
    json[nlohmann::ordered_json::json_pointer(pointer)] = value;
    return plan_from_json(json.dump());
  };
  expect_refused(with("/problem/w4/group_size", "all"), bad_format, {"problem.w4.group_size"});
  expect_refused(with("/problem/w4/symmetric", true), bad_format, {"problem.w4.symmetric"});
  expect_refused(with("/problem/w4/group_size", 48), unsupported, {"w4.group_size = 48"});
  expect_refused(with("/problem/alignment_b_bytes", 8), unsupported, {"alignment_b_bytes = 8"});
}

}  // namespace
}  // namespace sluice
