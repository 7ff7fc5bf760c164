// General groups of FP8 operands: scales of their own, in validate(), plans, run_on_cpu() and verify().
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "sluice/sluice.hpp"

#include "core/check_plan.hpp"
#include "core/general_groups.hpp"
#include "core/scale_layout.hpp"
#include "devices.hpp"
#include "gemm_data.hpp"
#include "refused.hpp"

namespace sluice {
namespace {

using test::Elements;
using test::expect_refused;
using test::plan_on_h10;

GemmProblem general_fp8(Scaling a = Scaling::per_vector_128, Scaling b = Scaling::per_block_128) {
  return {.m = 4096,
          .n = 7168,
          .k = 2048,
          .batch = 8,
          .type_a = DataType::e4m3,
          .type_b = DataType::e4m3,
          .scaling_a = a,
          .scaling_b = b,
          .grouping = Grouping::general};
}

TEST(GeneralFp8Groups, BringTheirScales) {
  const Result<GemmProblem> v = validate(general_fp8());
  ASSERT_TRUE(v) << v.error().message;
  for (const std::int64_t stride : {v->lda, v->ldb, v->ld_scale_a, v->ld_scale_b, v->batch_stride_scale_a, v->batch_stride_scale_b})
    EXPECT_EQ(stride, kPacked) << "nothing is filled in";
  EXPECT_EQ(*validate(*v), *v);
  EXPECT_EQ(scale_elems_a(*v), 0) << "there is no array of all of them";
  EXPECT_EQ(scale_elems_b(*v), 0);
  EXPECT_EQ(describe(*v), "4096 x 7168 x 2048, 8 general groups e4m3 -> bf16, A row-major, B column-major, scales 1x128 and 128x128");
  const GemmProblem none = *validate(general_fp8(Scaling::none, Scaling::none));
  EXPECT_EQ(*validate(none), none);
  for (const Scaling each : {Scaling::none, Scaling::per_tensor, Scaling::per_vector, Scaling::per_vector_128, Scaling::per_block_128})
    EXPECT_TRUE(validate(general_fp8(each, each))) << to_string(each);
  for (std::int64_t GemmProblem::*stride : {&GemmProblem::ld_scale_a, &GemmProblem::ld_scale_b, &GemmProblem::batch_stride_scale_a,
                                            &GemmProblem::batch_stride_scale_b, &GemmProblem::ldb}) {
    GemmProblem p = general_fp8();
    p.*stride = 8192;
    expect_refused(validate(p), ErrorCode::invalid_argument, {"= 8192 with general groups, each of which has its own", "pass kPacked"});
  }
  GemmProblem p = general_fp8();
  p.type_d = DataType::e4m3;
  expect_refused(validate(p), ErrorCode::unsupported, {"type_d = e4m3 with general groups", "bf16, fp16 or fp32"});
  p = general_fp8();
  p.alignment_a_bytes = 8;
  expect_refused(validate(p), ErrorCode::unsupported, {"alignment_a_bytes = 8 with general groups"});
  p = general_fp8();
  p.type_b = DataType::e5m2;
  expect_refused(plan(p, h200()), ErrorCode::unsupported, {"no kernel of this build computes", "general groups e4m3 x e5m2"});
}

TEST(GeneralFp8Groups, PlansAreByKernelsCompiledForThem) {
  for (const auto& [rows, groups] : {std::pair{16, 64}, {136, 256}, {4096, 8}}) {
    GemmProblem p = general_fp8();
    p.expected_rows = rows;
    p.batch = groups;
    const Result<Plan> made = plan(p, h200());
    ASSERT_TRUE(made) << made.error().message;
    EXPECT_TRUE(check_plan(*made)) << check_plan(*made).error().message;
    EXPECT_TRUE(resources(made->kernel).computes_general_groups);
    EXPECT_EQ(made->kernel.type_a, DataType::e4m3);
    EXPECT_EQ(made->workspace_bytes, static_cast<std::size_t>(65536 + prepared_bytes(groups)));
    const Result<Plan> read = plan_from_json(to_json(*made));
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(*read, *made);
    EXPECT_NE(explain(*made).find("scales 1x128 and 128x128"), std::string::npos) << explain(*made);
  }
  GemmProblem few = general_fp8();
  few.expected_rows = 16;
  EXPECT_LT(plan(few, h200())->kernel.tile_m, plan(general_fp8(), h200())->kernel.tile_m);
}

// What the device makes of a group's scales is what validate() makes of the group as a problem.
TEST(GeneralFp8Groups, ScalesLieAsThoseOfAProblemOfTheirOwn) {
  for (const Scaling scaling : {Scaling::none, Scaling::per_tensor, Scaling::per_vector, Scaling::per_vector_128, Scaling::per_block_128})
    for (const Layout layout : {Layout::row_major, Layout::column_major})
      for (const std::int64_t leading : {kPacked, std::int64_t{1000}})
        for (const auto& [vectors, k] : {std::pair{1, 1}, {127, 128}, {128, 129}, {300, 1040}}) {
          GemmProblem p = general_fp8(scaling, scaling);
          p.scale_layout_a = p.scale_layout_b = layout;
          const GroupArguments g =
              within(group_limits(p),
                     {.m = vectors, .n = vectors, .k = k, .lda = 2048, .ldb = 2048, .ld_scale_a = leading, .ld_scale_b = leading});
          const Result<GemmProblem> one = validate(problem_of_group(p, g));
          ASSERT_TRUE(one) << one.error().message;
          const ScaleForm form{scaling, layout};
          for (const bool of_a : {true, false}) {
            const ScaleStrides host = of_a ? scale_strides_a(*one) : scale_strides_b(*one);
            const ScaleStrides device = scale_strides_of_group(form, vectors, k, of_a ? g.ld_scale_a : g.ld_scale_b);
            EXPECT_EQ(host.along_k, device.along_k);
            for (const auto& [v, at_k] : {std::pair{0, 0}, {vectors - 1, k - 1}, {vectors / 2, k / 3}})
              EXPECT_EQ(host.at(0, v, at_k), device.at(0, v, at_k)) << to_string(scaling) << ", " << vectors << ", " << k;
          }
        }
}

// Two groups with rows, one of which ends inside a block of K, and one without K between them.
struct ScaledGroups {
  static constexpr std::int32_t kSizes[3][3] = {{70, 136, 200}, {3, 5, 0}, {130, 24, 272}};
  static constexpr std::int64_t kLeading = 288, kBlocks = 3;

  GemmProblem problem;
  std::vector<Elements> a, b, d, scale_a, scale_b;
  std::vector<GroupArguments> groups;

  ScaledGroups() : problem(general_fp8()) {
    problem.m = 130, problem.n = 136, problem.k = 272, problem.batch = 3;
    problem.type_d = DataType::fp32;
    problem.scale_layout_a = Layout::column_major;
    for (std::vector<Elements>* each : {&a, &b, &d, &scale_a, &scale_b}) each->reserve(3);  // groups point into them
    std::mt19937_64 random(5);
    std::uniform_int_distribution<int> small(-3, 3), exponent(-2, 2);
    for (const auto& [m, n, k] : kSizes) {
      a.emplace_back(DataType::e4m3, m * kLeading);
      b.emplace_back(DataType::e4m3, n * kLeading);
      d.emplace_back(DataType::fp32, m * n);
      scale_a.emplace_back(DataType::fp32, kBlocks * (m + 2));
      scale_b.emplace_back(DataType::fp32, kBlocks * 2);
      for (Elements* each : {&a.back(), &b.back()})
        for (std::int64_t i = 0; i < each->count(); ++i) each->set(i, small(random));
      for (Elements* each : {&scale_a.back(), &scale_b.back()})
        for (std::int64_t i = 0; i < each->count(); ++i) each->set(i, std::ldexp(1.0, exponent(random)));
      d.back().fill(std::numeric_limits<double>::quiet_NaN());
      groups.push_back({.a = a.back().data(),
                        .b = b.back().data(),
                        .d = d.back().data(),
                        .scale_a = static_cast<const float*>(scale_a.back().data()),
                        .scale_b = static_cast<const float*>(scale_b.back().data()),
                        .m = m,
                        .n = n,
                        .k = k,
                        .lda = kLeading,
                        .ldb = kLeading,
                        .ld_scale_a = m + 2});
    }
  }
  ScaledGroups(const ScaledGroups&) = delete;
  ScaledGroups& operator=(const ScaledGroups&) = delete;

  GemmArguments arguments() const { return {.group_arguments = groups.data()}; }
  double expected(std::size_t g, std::int64_t row, std::int64_t column) const {
    const auto [m, n, k] = kSizes[g];
    const std::int64_t blocks = (k + 127) / 128;
    double sum = 0;
    for (std::int64_t i = 0; i < k; ++i)
      sum += a[g].get(row * kLeading + i) * b[g].get(column * kLeading + i) * scale_a[g].get(i / 128 * (m + 2) + row) *
             scale_b[g].get(column / 128 * blocks + i / 128);
    return sum;
  }
};

TEST(GeneralFp8Groups, EachHasItsScales) {
  ScaledGroups data;
  const Result<Plan> made = plan_on_h10(data.problem);
  ASSERT_TRUE(made) << made.error().message;
  const Status status = run_on_cpu(*made, data.arguments());
  ASSERT_TRUE(status) << status.error().message;
  for (std::size_t g = 0; g < 3; ++g) {
    const auto [m, n, k] = ScaledGroups::kSizes[g];
    for (std::int64_t row = 0; row < m; ++row)
      for (std::int64_t column = 0; column < n; ++column)
        ASSERT_EQ(data.d[g].get(row * n + column), data.expected(g, row, column)) << "group " << g << ", " << row << ", " << column;
  }
  const Result<VerifyReport> right = verify(data.problem, data.arguments(), nullptr);
  ASSERT_TRUE(right) << right.error().message;
  EXPECT_TRUE(right->ok()) << to_string(*right);
  data.groups[2].scale_b = data.groups[0].scale_b;
  const Result<VerifyReport> other = verify(data.problem, data.arguments(), nullptr);
  ASSERT_TRUE(other) << other.error().message;
  EXPECT_FALSE(other->ok()) << "these are another group's scales";
  EXPECT_EQ(other->worst_batch, 2);
}

TEST(GeneralFp8Groups, HostsSeeBrokenPromises) {
  ScaledGroups data;
  const Plan made = *plan_on_h10(data.problem);
  const auto refused = [&](std::size_t g, auto&& change) {
    std::vector<GroupArguments> groups = data.groups;
    change(groups[g]);
    return run_on_cpu(made, {.group_arguments = groups.data()});
  };
  expect_refused(refused(2, [](GroupArguments& g) { g.scale_a = nullptr; }), ErrorCode::invalid_argument,
                 {"group 2: scale_a is null, but the operand has scales"});
  expect_refused(
      refused(0, [](GroupArguments& g) { g.scale_b = reinterpret_cast<const float*>(reinterpret_cast<std::uintptr_t>(g.scale_b) + 2); }),
      ErrorCode::misaligned, {"group 0: scale_b = ", "fp32 elements cannot start there"});
  expect_refused(refused(0, [](GroupArguments& g) { g.ld_scale_a = 69; }), ErrorCode::invalid_argument,
                 {"group 0: ld_scale_a = 69 is shorter than the 70 scales that are adjacent"});
  expect_refused(refused(2, [](GroupArguments& g) { g.ld_scale_b = 2; }), ErrorCode::invalid_argument, {"group 2: ld_scale_b = 2"});
  expect_refused(refused(0, [](GroupArguments& g) { g.lda = 200; }), ErrorCode::unsupported,
                 {"group 0: lda = 200 with fp8 operands", "pad to 208"});
  expect_refused(refused(0, [](GroupArguments& g) { g.ldb = kPacked; }), ErrorCode::unsupported, {"group 0: ldb = 200 with fp8 operands"});
  expect_refused(refused(0, [](GroupArguments& g) { g.a = static_cast<const std::byte*>(g.a) + 8; }), ErrorCode::misaligned,
                 {"group 0: a starts 8 bytes behind a multiple of 16"});
  EXPECT_TRUE(refused(1, [](GroupArguments& g) { g.a = g.b = nullptr, g.scale_a = g.scale_b = nullptr; })) << "k is 0";
  EXPECT_TRUE(refused(2, [](GroupArguments& g) { g = {.m = 0, .n = 9, .k = 128}; })) << "nothing to do";
}

}  // namespace
}  // namespace sluice
