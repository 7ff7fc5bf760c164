// run_on_cpu() and verify() of grouped problems: each group's rows as a product of its own gives them, and nothing else written or looked
// at.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "sluice/sluice.hpp"

#include "core/groups.hpp"
#include "grouped_data.hpp"

namespace sluice {
namespace {

using test::arguments_of;
using test::Elements;
using test::GemmData;
using test::plan_on_h10;
using test::run;
using test::Sizes;
using test::Values;

// One group as a product of its own, into `d`.
void run_alone(GemmData& data, const Sizes& sizes, std::int64_t group, const PlanOptions& options, Elements& d) {
  const GemmProblem& whole = data.problem;
  const GroupRange rows = range_of_group(whole, sizes.data(), group);
  if (rows.count == 0) return;
  GemmProblem p = whole;
  p.grouping = Grouping::none;
  p.expected_rows = 0;
  p.m = rows.count, p.batch = 1;
  p.batch_stride_a = p.batch_stride_b = p.batch_stride_c = p.batch_stride_d = p.batch_stride_scale_a = p.batch_stride_scale_b = kPacked;
  const int bytes_d = size_bytes(p.type_d);
  const std::int64_t row_d = group * whole.batch_stride_d + rows.first * whole.ldd;
  GemmArguments arguments = data.arguments();
  arguments.a = static_cast<const std::byte*>(arguments.a) + (group * whole.batch_stride_a + rows.first * whole.lda) * size_bytes(p.type_a);
  arguments.b = static_cast<const std::byte*>(arguments.b) + group * whole.batch_stride_b * size_bytes(p.type_b);
  arguments.c = static_cast<const std::byte*>(arguments.c) + (group * whole.batch_stride_c + rows.first * whole.ldc) * bytes_d;
  arguments.d = static_cast<std::byte*>(d.data()) + row_d * bytes_d;
  if (p.epilogue.bias == Bias::per_row) arguments.bias = static_cast<const std::byte*>(arguments.bias) + rows.first * bytes_d;
  const std::int64_t scale_row = p.scaling_a == Scaling::per_vector ? rows.first
                                 : p.scaling_a == Scaling::per_vector_128
                                     ? rows.first * (p.scale_layout_a == Layout::row_major ? p.ld_scale_a : 1)
                                     : 0;
  arguments.scale_a += group * whole.batch_stride_scale_a + scale_row;
  arguments.scale_b += group * whole.batch_stride_scale_b;
  p.alignment_d_bytes = bytes_d;  // a bias from some row on
  const Result<Plan> made = plan_on_h10(p, options);
  ASSERT_TRUE(made) << made.error().message;
  const Status status = run_on_cpu(*made, arguments);
  ASSERT_TRUE(status) << status.error().message;
}

// Whole tiles of one kernel: the order of summation is the same, and so are the bits.
void expect_same_bits(const GemmProblem& problem, const Sizes& sizes, const std::string& kernel) {
  SCOPED_TRACE(describe(problem) + " by " + kernel);
  const PlanOptions options{.scheduler = SchedulerKind::data_parallel, .kernel_name = kernel, .keep_candidates = false};
  GemmData data(problem, Values::normal);
  Elements expected = data.d;  // NaN where no group has a row
  for (std::int64_t g = 0; g < problem.batch; ++g) run_alone(data, sizes, g, options, expected);
  run(data, sizes, options);
  EXPECT_TRUE(data.d == expected);
}

const Sizes kRagged = {2, 2, 9, 140, 141, 141, 300}, kMasked = {0, 7, 131, 1, 0, 130};

TEST(GroupedReference, EachGroupIsAProductOfItsOwn) {
  for (const KernelConfig& kernel : kernel_list()) {
    if (!resources(kernel).computes_groups || is_fp8(kernel.type_a) || kernel.type_b == DataType::int4) continue;
    GemmProblem p{.m = 303, .n = 72, .k = 88, .batch = 6, .type_a = kernel.type_a, .type_b = kernel.type_b};
    p.layout_a = kernel.layout_a, p.layout_b = kernel.layout_b;
    p.epilogue = {.alpha = 1.5f, .beta = -0.5f, .bias = Bias::per_row, .activation = Activation::silu};
    p.ldd = 80, p.ldc = 88;
    if (kernel.layout_a == Layout::row_major) {
      p.grouping = Grouping::ragged;
      expect_same_bits(p, kRagged, name(kernel));
    }
    p.grouping = Grouping::masked;
    p.m = 136;
    expect_same_bits(p, kMasked, name(kernel));
  }
}

TEST(GroupedReference, EachGroupHasItsScales) {
  const std::string kernel = "e4m3_rc_coop_64x64x128_c1x1_swap";
  for (const Scaling of_a : {Scaling::none, Scaling::per_tensor, Scaling::per_vector, Scaling::per_vector_128, Scaling::per_block_128})
    for (const Layout layout : {Layout::row_major, Layout::column_major}) {
      GemmProblem p{.m = 303, .n = 136, .k = 272, .batch = 6, .type_a = DataType::e4m3, .type_b = DataType::e4m3, .type_d = DataType::fp32};
      p.scaling_a = of_a, p.scaling_b = of_a == Scaling::none ? Scaling::per_vector : Scaling::per_block_128;
      p.scale_layout_a = layout, p.scale_layout_b = layout;
      if (of_a == Scaling::per_vector_128) p.ld_scale_a = 310;
      if (of_a == Scaling::per_block_128) p.ld_scale_a = 5;
      if (of_a != Scaling::per_block_128) {
        p.grouping = Grouping::ragged;
        expect_same_bits(p, kRagged, kernel);
      }
      p.grouping = Grouping::masked;
      p.m = 136;
      expect_same_bits(p, kMasked, kernel);
    }
}

// Integers are exact in every order of summation.
void expect_exact(const GemmData& data, const Sizes& sizes) {
  const GemmProblem& p = data.problem;
  std::vector<bool> written(static_cast<std::size_t>(data.d.count()));
  for (std::int64_t g = 0; g < p.batch; ++g) {
    const GroupRange rows = range_of_group(p, sizes.data(), g);
    for (std::int64_t row = rows.first; row < rows.first + rows.count; ++row)
      for (std::int64_t column = 0; column < p.n; ++column) {
        ASSERT_EQ(data.d.get(data.index_d(g, row, column)), data.before_activation(g, row, column)) << g << ", " << row << ", " << column;
        written[static_cast<std::size_t>(data.index_d(g, row, column))] = true;
      }
  }
  for (std::int64_t i = 0; i < data.d.count(); ++i)
    ASSERT_EQ(std::isnan(data.d.get(i)), !written[static_cast<std::size_t>(i)]) << "element " << i;
}

TEST(GroupedReference, EachGroupHasItsBias) {
  for (const Grouping grouping : {Grouping::ragged, Grouping::masked, Grouping::none}) {
    GemmProblem p{.m = 303, .n = 70, .k = 40, .batch = 6, .type_d = DataType::fp32, .grouping = grouping};
    if (grouping != Grouping::ragged) p.m = 136;
    p.epilogue = {.alpha = 2, .bias = Bias::per_group_column};
    GemmData data(p, Values::integers);
    const Sizes whole(6, 136);
    const Sizes& sizes = grouping == Grouping::ragged ? kRagged : grouping == Grouping::masked ? kMasked : whole;
    run(data, sizes, {});
    if (grouping == Grouping::none) data.problem.grouping = Grouping::masked;  // of which all rows count
    expect_exact(data, sizes);
    data.problem.grouping = grouping;
    EXPECT_TRUE(verify(data.problem, arguments_of(data, sizes), nullptr)->ok());
    data.bias.set(2 * 70 + 7, 50);  // of one group's column
    const std::int64_t rows =
        range_of_group({.m = p.m, .grouping = grouping == Grouping::none ? Grouping::masked : grouping}, sizes.data(), 2).count;
    EXPECT_EQ(verify(data.problem, arguments_of(data, sizes), nullptr)->wrong, rows);
  }
}

TEST(GroupedReference, TilesInPieces) {
  for (const SchedulerKind kind : {SchedulerKind::split_k, SchedulerKind::stream_k, SchedulerKind::hybrid})
    for (const WorkClaim claim : {WorkClaim::fixed, WorkClaim::ticket}) {
      if (kind == SchedulerKind::split_k && claim == WorkClaim::fixed) continue;
      const PlanOptions options{.scheduler = kind, .claim = claim, .kernel_name = "bf16_rc_coop_64x64x64_c1x1_swap"};
      GemmProblem p{.m = 303, .n = 72, .k = 520, .batch = 6, .type_d = DataType::fp32, .grouping = Grouping::ragged};
      GemmData ragged(p, Values::integers);
      run(ragged, kRagged, options);
      expect_exact(ragged, kRagged);
      p.grouping = Grouping::masked;
      p.m = 136;
      GemmData masked(p, Values::integers);
      run(masked, kMasked, options);
      expect_exact(masked, kMasked);
    }
}

// Nothing to compute, everything to compute, and sizes that are none.
TEST(GroupedReference, OddSizes) {
  GemmProblem p{.m = 70, .n = 40, .k = 24, .batch = 3, .type_d = DataType::fp32, .grouping = Grouping::ragged};
  for (const Sizes& sizes : {Sizes{0, 0, 0, 0}, {70, 70, 70, 70}, {0, 70, 70, 70}, {0, 0, 0, 70}, {-9, 20, 20, 99}, {80, 90, 95, 100}}) {
    GemmData data(p, Values::integers);
    run(data, sizes, {});
    expect_exact(data, sizes);
  }
  p.grouping = Grouping::masked;
  for (const Sizes& sizes : {Sizes{0, 0, 0}, {70, 70, 70}, {1, 0, 1}, {-3, 71, 1 << 30}}) {
    GemmData data(p, Values::integers);
    run(data, sizes, {});
    expect_exact(data, sizes);
  }
  p.k = 0;
  p.epilogue.beta = 2;
  const Sizes sizes = {3, 0, 70};
  GemmData data(p, Values::integers);
  run(data, sizes, {});
  expect_exact(data, sizes);
}

// Ragged sizes that do not ascend come to more tiles than the plan counted, of which the last are left out: no place in the workspace is
// without its owner, and nothing is written that is no product of a group.
TEST(GroupedReference, SizesThatDoNotAscend) {
  const Sizes sizes = {0, 300, 0, 300, 0, 300};
  for (const SchedulerKind kind : {SchedulerKind::data_parallel, SchedulerKind::stream_k, SchedulerKind::hybrid, SchedulerKind::split_k}) {
    const PlanOptions options{.scheduler = kind, .kernel_name = "bf16_rc_coop_64x64x64_c1x1_swap"};
    GemmProblem p{.m = 303, .n = 72, .k = 264, .batch = 5, .type_d = DataType::fp32, .grouping = Grouping::ragged};
    GemmData data(p, Values::integers);
    const Result<Plan> made = plan_on_h10(p, options);
    ASSERT_TRUE(made) << made.error().message;
    ASSERT_TRUE(run_on_cpu(*made, arguments_of(data, sizes), 1));
    for (std::int64_t row = 0; row < 300; ++row)
      for (std::int64_t column = 0; column < 72; ++column) {
        const double got = data.d.get(row * 72 + column);
        EXPECT_TRUE(std::isnan(got) || got == data.before_activation(0, row, column) || got == data.before_activation(2, row, column) ||
                    got == data.before_activation(4, row, column));
      }
    for (std::int64_t row = 300; row < 303; ++row) EXPECT_TRUE(std::isnan(data.d.get(row * 72)));
  }
}

VerifyReport verified(GemmData& data, const Sizes& sizes, std::int64_t samples = 0) {
  const Result<VerifyReport> report = verify(data.problem, arguments_of(data, sizes), nullptr, samples);
  EXPECT_TRUE(report) << report.error().message;
  return report ? *report : VerifyReport{};
}

TEST(GroupedVerify, FindsAWrongElementAndSaysWhere) {
  for (const Grouping grouping : {Grouping::ragged, Grouping::masked}) {
    const bool ragged = grouping == Grouping::ragged;
    const Sizes& sizes = ragged ? kRagged : kMasked;
    const GemmProblem p{.m = ragged ? 303 : 136, .n = 72, .k = 264, .batch = 6, .grouping = grouping};
    GemmData data(p, Values::normal);
    run(data, sizes, {});
    VerifyReport report = verified(data, sizes);
    EXPECT_TRUE(report.ok()) << to_string(report);
    EXPECT_EQ(report.checked, (ragged ? 298 : 269) * 72);
    report = verified(data, sizes, 1000);
    EXPECT_TRUE(report.ok()) << to_string(report);
    EXPECT_EQ(report.checked, 1000);

    const std::int64_t group = 2, row = ragged ? 139 : 130, at = data.index_d(group, row, 71);  // its group's last
    data.d.set(at, data.d.get(at) + 1);
    report = verified(data, sizes);
    EXPECT_EQ(report.wrong, 1);
    EXPECT_EQ(report.worst_batch, group);
    EXPECT_EQ(report.worst_row, row);
    EXPECT_EQ(report.worst_column, 71);
  }
}

// Another group's weights would be a fine product too.
TEST(GroupedVerify, KnowsWhichWeightsAreAGroups) {
  const GemmProblem p{.m = 303, .n = 72, .k = 264, .batch = 6, .grouping = Grouping::ragged};
  GemmData data(p, Values::normal);
  run(data, kRagged, {});
  Sizes moved = kRagged;
  ++moved[3];  // row 140 is said to be of the group before its own
  VerifyReport report = verified(data, moved);
  EXPECT_GT(report.wrong, 50);
  EXPECT_EQ(report.worst_batch, 2);
  EXPECT_EQ(report.worst_row, 140);
}

TEST(GroupedVerify, LooksAtRowsOfGroupsAlone) {
  GemmProblem p{.m = 136, .n = 72, .k = 264, .batch = 6, .grouping = Grouping::masked};
  GemmData data(p, Values::normal);
  run(data, kMasked, {});  // whose other rows are NaN
  EXPECT_TRUE(verified(data, kMasked).ok());
  data.d.set(data.index_d(1, 7, 0), 1e6);  // behind the last row of group 1
  EXPECT_TRUE(verified(data, kMasked).ok());
  Sizes more = kMasked;
  ++more[1];
  VerifyReport report = verified(data, more);
  EXPECT_EQ(report.wrong, 1);
  EXPECT_EQ(report.not_a_number, 71);
  EXPECT_EQ(verified(data, Sizes(6, 0)).checked, 0);

  p.grouping = Grouping::ragged;
  GemmData ragged(p, Values::normal);
  const Result<VerifyReport> refused = verify(p, ragged.arguments(), nullptr);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("groups is null"), std::string::npos);
}

}  // namespace
}  // namespace sluice
