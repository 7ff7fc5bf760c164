// The cases of the GPU tests, looked at without a GPU: each can be planned, and together they hold what they promise.
#include "gemm_case.hpp"
#include "scaled_cases.hpp"
#include "schedule_ways.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <tuple>

namespace sluice::gpu_tests {
namespace {

TEST(GpuCases, EveryKernelCanPlanEveryCase) {
  const DeviceSpec device = *find_device("h200");
  for (std::size_t i = 0; i < kernel_list().size(); ++i) {
    const KernelConfig& kernel = kernel_list()[i];
    for (const bool small : {false, true})
      for (const GemmCase& gemm_case : cases_for(kernel, static_cast<int>(i), small)) {
        PlanOptions options = gemm_case.options;
        options.kernel_name = name(kernel);
        options.keep_candidates = false;
        const GemmProblem problem = problem_for(kernel, gemm_case);
        const Result<Plan> made = plan(problem, device, options);
        ASSERT_TRUE(made.ok()) << name(kernel) << ", " << gemm_case.what << ": " << made.error().message;
        if (is_empty(problem)) continue;
        EXPECT_EQ(made->kernel, kernel) << gemm_case.what;
        for (const std::int64_t scales : {scale_elems_a(made->problem), scale_elems_b(made->problem)})
          EXPECT_LT(scales * 4, 2 << 20) << describe(problem);
        // What the tests' buffers hold, with room for guards.
        for (const std::int64_t span : {span_a(problem), span_b(problem)}) EXPECT_LT(span * 2, 190 << 20) << describe(problem);
        for (const std::int64_t span : {span_c(problem), span_d(problem)})
          EXPECT_LT(span * size_bytes(problem.type_d), 190 << 20) << describe(problem);
      }
  }
}

TEST(GpuCases, EveryWayToShareOutWorkCanBePlanned) {
  const DeviceSpec device = *find_device("h200");
  std::set<std::tuple<SchedulerKind, WorkClaim, Reduction>> kinds;
  for (const bool small : {false, true})
    for (const Way& way : all_ways(small)) {
      PlanOptions options = way.gemm_case.options;
      options.kernel_name = name(way.kernel);
      const Result<Plan> made = plan(problem_for(way.kernel, way.gemm_case), device, options);
      ASSERT_TRUE(made.ok()) << way.title() << ": " << made.error().message;
      kinds.insert({made->scheduler.kind, made->scheduler.claim, made->scheduler.reduction});
      EXPECT_LT(made->workspace_bytes, (small ? std::size_t{12} : std::size_t{190}) << 20) << way.title();
    }
  EXPECT_EQ(kinds.size(), 10u);  // four schedules by two claims, and two ways to meet
}

TEST(GpuCases, PairEveryTwoSizes) {
  const std::vector<std::int64_t> sizes = {1, 2, 7, 8, 9, 31, 63, 64, 65, 127, 128, 129, 255, 256, 257, 521, 4097};
  std::set<std::pair<std::int64_t, std::int64_t>> mn, mk, nk;
  for (std::size_t i = 0; i < kernel_list().size(); ++i)
    for (const GemmCase& c : cases_for(kernel_list()[i], static_cast<int>(i), false)) {
      mn.insert({c.problem.m, c.problem.n});
      mk.insert({c.problem.m, c.problem.k});
      nk.insert({c.problem.n, c.problem.k});
    }
  for (const std::int64_t x : sizes)
    for (const std::int64_t y : sizes) {
      EXPECT_TRUE(mn.contains({x, y})) << "m " << x << ", n " << y;
      EXPECT_TRUE(mk.contains({x, y})) << "m " << x << ", k " << y;
      EXPECT_TRUE(nk.contains({x, y})) << "n " << x << ", k " << y;
    }
}

TEST(GpuCases, ExactOnesStayBelowWhatFp32AndFp16Hold) {
  for (std::size_t i = 0; i < kernel_list().size(); ++i)
    for (const GemmCase& c : cases_for(kernel_list()[i], static_cast<int>(i), false)) {
      if (c.exactness != bench::Exactness::exact) continue;
      const Epilogue& e = c.problem.epilogue;
      EXPECT_EQ(e.alpha, static_cast<float>(static_cast<int>(e.alpha))) << c.what;
      EXPECT_TRUE(e.activation == Activation::none || e.activation == Activation::relu) << c.what;
      // Scales multiply terms by up to 16, and divide the unit by as much.
      const double most = c.problem.scaling_a == Scaling::none && c.problem.scaling_b == Scaling::none ? 1 : 16;
      const double largest = std::abs(e.alpha) * 16 * most * static_cast<double>(c.problem.k) + 4 * std::abs(e.beta) + 4;
      EXPECT_LE(largest * most, 0x1p24 + 8 * most) << c.what;
    }
}

TEST(GpuCases, EveryTypeEpilogueAndPlacementComesUp) {
  std::set<DataType> types;
  std::set<Activation> activations;
  std::set<Bias> biases;
  std::set<std::int64_t> batches;
  std::set<int> offsets_d;
  bool in_place = false, repeats_a = false, repeats_b = false, odd_ldd = false, no_k = false;
  for (const GemmCase& c : cases_for(kernel_list().front(), 0, false)) {
    const GemmProblem p = problem_for(kernel_list().front(), c);
    types.insert(p.type_d);
    activations.insert(p.epilogue.activation);
    biases.insert(p.epilogue.bias);
    batches.insert(p.batch);
    offsets_d.insert(p.alignment_d_bytes);
    in_place |= c.c == CPlace::is_d && p.epilogue.beta != 0;
    repeats_a |= p.batch > 1 && p.batch_stride_a == 0;
    repeats_b |= p.batch > 1 && p.batch_stride_b == 0;
    odd_ldd |= p.ldd % 2 == 1 && p.ldd > p.n;
    no_k |= p.k == 0;
  }
  EXPECT_EQ(types.size(), 3u);
  EXPECT_EQ(activations.size(), 4u);
  EXPECT_EQ(biases.size(), 4u);
  EXPECT_GE(batches.size(), 4u);
  EXPECT_TRUE(offsets_d.contains(2) && offsets_d.contains(4) && offsets_d.contains(8) && offsets_d.contains(16));
  EXPECT_TRUE(in_place && repeats_a && repeats_b && odd_ldd && no_k);
}

TEST(GpuCases, StreamingKernelsMeetTheirFormatsAndTeamsOfAllSizes) {
  for (std::size_t i = 0; i < kernel_list().size(); ++i) {
    const KernelConfig& kernel = kernel_list()[i];
    if (kernel.schedule != KernelSchedule::streaming) continue;
    std::set<std::tuple<int, bool, bench::Exactness>> formats;
    std::set<std::int64_t> rows, tails, rounds;
    std::set<bool> constant;
    for (const GemmCase& c : cases_for(kernel, static_cast<int>(i), false)) {
      const GemmProblem p = problem_for(kernel, c);
      formats.insert({p.w4.group_size, p.w4.zero_points, c.exactness});
      rows.insert(p.m);
      tails.insert(p.k % 128);
      rounds.insert((p.n + 132 * kernel.tile_n - 1) / (132 * kernel.tile_n));
      constant.insert(p.constant_b);
    }
    // Groups of 128 and whole columns, zero points or not; exact or not.
    EXPECT_EQ(formats.size(), kernel.type_b == DataType::int4 ? 8u : 2u) << name(kernel);
    for (std::int64_t m = 1; m <= kernel.tile_m; ++m) EXPECT_TRUE(rows.contains(m)) << m;
    EXPECT_GE(tails.size(), 8u) << name(kernel);
    for (const std::int64_t strips : {1, 2, 3, 4, 5, 7, 14}) EXPECT_TRUE(rounds.contains(strips)) << strips;
    EXPECT_EQ(constant.size(), 2u) << name(kernel);
  }
}

TEST(GpuCases, EveryKernelOf4BitsMeetsEveryFormat) {
  for (std::size_t i = 0; i < kernel_list().size(); ++i) {
    const KernelConfig& kernel = kernel_list()[i];
    if (kernel.type_b != DataType::int4 || kernel.schedule == KernelSchedule::streaming) continue;
    std::set<std::tuple<int, bool, bench::Exactness>> formats;
    std::set<std::tuple<int, bool, SchedulerKind>> in_pieces;
    std::set<std::int64_t> tails;
    std::set<Grouping> groupings;
    std::set<std::pair<Scaling, int>> scaled;
    int repeated = 0;
    for (const GemmCase& c : cases_for(kernel, static_cast<int>(i), false)) {
      const GemmProblem p = problem_for(kernel, c);
      scaled.insert({p.scaling_a, p.w4.group_size});
      formats.insert({p.w4.group_size, p.w4.zero_points, c.exactness});
      if (c.options.scheduler) in_pieces.insert({p.w4.group_size, p.w4.zero_points, *c.options.scheduler});
      tails.insert(p.k % 256);
      groupings.insert(p.grouping);
      repeated += p.batch > 1 && p.batch_stride_b == 0 ? 1 : 0;
    }
    EXPECT_EQ(formats.size(), 16u) << name(kernel);  // four sizes of groups, zero points or not, exact or not
    EXPECT_GE(in_pieces.size(), resources(kernel).joins_pieces ? 16u : 4u) << name(kernel);
    EXPECT_GE(tails.size(), 8u) << name(kernel);
    EXPECT_EQ(groupings.size(), resources(kernel).computes_groups ? 3u : 1u) << name(kernel);  // none, ragged, masked
    EXPECT_GE(repeated, 1) << name(kernel);
    EXPECT_EQ(scaled.size(), is_fp8(kernel.type_a) ? 12u : 4u) << name(kernel);  // none, one for all or one for each row
  }
}

TEST(GpuCases, EveryFp8KernelMeetsEveryKindOfScales) {
  using Kind = std::tuple<Scaling, Scaling, Layout, Layout>;
  for (std::size_t i = 0; i < kernel_list().size(); ++i) {
    const KernelConfig& kernel = kernel_list()[i];
    if (!is_fp8(kernel.type_b)) continue;
    std::set<std::pair<Kind, bench::Exactness>> kinds;
    std::set<std::pair<Scaling, Scaling>> of_pieces;
    std::set<std::pair<SchedulerKind, Reduction>> shared_out;
    std::set<DataType> types;
    std::set<std::int64_t> rows, tails;
    int padded = 0, repeated = 0, gaps = 0;
    for (const GemmCase& c : cases_for(kernel, static_cast<int>(i), false)) {
      const GemmProblem p = problem_for(kernel, c);
      ASSERT_TRUE(p.type_a == kernel.type_a && p.type_b == kernel.type_b);
      ASSERT_TRUE(p.lda % 16 == 0 && p.ldb % 16 == 0 && p.batch_stride_a % 16 == 0 && p.batch_stride_b % 16 == 0) << c.what;
      kinds.insert({{p.scaling_a, p.scaling_b, p.scale_layout_a, p.scale_layout_b}, c.exactness});
      if (!scales_along_k(p.scaling_a) || !scales_along_k(p.scaling_b)) continue;
      const SchedulerKind kind = c.options.scheduler.value_or(SchedulerKind::data_parallel);
      shared_out.insert({kind, c.options.reduction.value_or(Reduction::workspace)});
      if (kind > SchedulerKind::data_parallel) of_pieces.insert({p.scaling_a, p.scaling_b});
      types.insert(p.type_d);
      rows.insert(p.m);
      tails.insert(p.k % 128);
      padded += p.ld_scale_a > scale_runs_a(p).length && p.ld_scale_b > scale_runs_b(p).length ? 1 : 0;
      repeated += p.batch > 1 && (p.batch_stride_scale_a == 0) != (p.batch_stride_scale_b == 0) ? 1 : 0;
      gaps += p.batch > 1 && p.batch_stride_scale_a > scale_runs_a(p).runs * p.ld_scale_a ? 1 : 0;
    }
    for (const ScaleKind& kind : scale_kinds())
      for (const auto exactness : {bench::Exactness::exact, bench::Exactness::bounded})
        EXPECT_TRUE(kinds.contains({{kind.a, kind.b, kind.layout_a, kind.layout_b}, exactness}))
            << name(kernel) << ", " << to_string(kind.a) << " and " << to_string(kind.b);
    EXPECT_EQ(types.size(), 3u);
    EXPECT_TRUE(rows.contains(1) && rows.contains(7) && rows.contains(63) && rows.contains(65) && rows.contains(127) && rows.contains(129));
    EXPECT_TRUE(tails.contains(0) && tails.contains(16) && tails.contains(112) && tails.contains(1000 % 128)) << name(kernel);
    EXPECT_TRUE(padded > 0 && repeated > 0 && gaps > 0) << name(kernel);
    EXPECT_EQ(shared_out.contains({SchedulerKind::split_k, Reduction::separate}), meets_in_slices(kernel)) << name(kernel);
    EXPECT_EQ(shared_out.contains({SchedulerKind::split_k, Reduction::cluster}), meets_in_cluster(kernel)) << name(kernel);
    if (!resources(kernel).joins_pieces) continue;
    EXPECT_GE(of_pieces.size(), 4u) << name(kernel);
    for (const SchedulerKind kind : {SchedulerKind::split_k, SchedulerKind::stream_k, SchedulerKind::hybrid})
      EXPECT_TRUE(shared_out.contains({kind, Reduction::workspace})) << name(kernel) << ", " << to_string(kind);
  }
}

}  // namespace
}  // namespace sluice::gpu_tests
