// docs/errors.md shows real messages: those made here must stand there word for word, in a row of their status.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include "sluice/emulator.hpp"
#include "sluice/plan.hpp"
#include "sluice/plan_cache.hpp"
#include "sluice/quantize.hpp"
#include "sluice/run.hpp"
#include "sluice/simulate.hpp"
#include "sluice/w4.hpp"

#include "core/check_arguments.hpp"
#include "core/check_general_groups.hpp"
#include "core/check_group_sizes.hpp"
#include "core/check_quantize.hpp"
#include "core/check_w4.hpp"

#include "devices.hpp"

namespace sluice {
namespace {

template <class Change>
Error plan_error(Change change) {
  GemmProblem p{.m = 4096, .n = 4096, .k = 4096};
  change(p);
  const Result<Plan> made = plan(p, h200());
  return made ? Error{ErrorCode::internal, "accepted"} : made.error();
}

template <class Change>
Error fp8_error(Change change) {
  return plan_error([&](GemmProblem& p) {
    p.type_a = p.type_b = DataType::e4m3;
    change(p);
  });
}

template <class Change>
Error w4_error(Change change) {
  return plan_error([&](GemmProblem& p) {
    p.type_b = DataType::int4;
    change(p);
  });
}

template <class Change>
Error device_error(Change change) {
  DeviceSpec d = h200();
  change(d);
  const Status status = validate(d);
  return status ? Error{ErrorCode::internal, "accepted"} : status.error();
}

Error options_error(const PlanOptions& options) { return plan({.m = 4096, .n = 4096, .k = 4096}, h200(), options).error(); }

template <class Change>
Error grouped_error(Change change, const PlanOptions& options = {}) {
  GemmProblem p{.m = 4096, .n = 4096, .k = 4096, .batch = 8, .type_a = DataType::e4m3, .type_b = DataType::e4m3};
  p.grouping = Grouping::ragged;
  change(p);
  const Result<Plan> made = plan(p, h200(), options);
  return made ? Error{ErrorCode::internal, "accepted"} : made.error();
}
template <class Change>
Error along_k_error(Change change, const PlanOptions& options = {}) {
  return grouped_error(
      [&](GemmProblem& p) {
        p.type_a = p.type_b = DataType::bf16;
        p.layout_a = Layout::column_major, p.layout_b = Layout::row_major;
        p.grouping = Grouping::along_k;
        change(p);
      },
      options);
}
template <class Change>
Error general_error(Change change, const PlanOptions& options = {}) {
  return grouped_error(
      [&](GemmProblem& p) {
        p.type_a = p.type_b = DataType::bf16;
        p.grouping = Grouping::general;
        change(p);
      },
      options);
}
Error grouped_options_error(const PlanOptions& options) {
  return grouped_error([](GemmProblem&) {}, options);
}

// A small plan's JSON with one piece of its text replaced.
Error json_error(const std::string& from, const std::string& to) {
  std::string text = to_json(*plan({.m = 4096, .n = 4096, .k = 4096}, h200(), {.keep_candidates = false}));
  const std::size_t at = text.find(from);
  if (at == std::string::npos) return {ErrorCode::internal, from + " is not in the plan"};
  text.replace(at, from.size(), to);
  const Result<Plan> back = plan_from_json(text);
  return back ? Error{ErrorCode::internal, "accepted"} : back.error();
}

// The same of a plan file that holds one plan.
Error plan_file_error(const std::string& from, const std::string& to) {
  const PlanOptions options{.kernel_name = "bf16_rc_coop_128x128x64_c1x1", .keep_candidates = false};
  const TunedPlan tuned{
      .plan = *plan({.m = 4096, .n = 4096, .k = 4096}, h200(), options), .measured_us = 1, .planner_kernel = "another", .planner_us = 1};
  std::string text = to_json(std::vector{tuned});
  const std::size_t at = text.find(from);
  if (at == std::string::npos) return {ErrorCode::internal, from + " is not in the plan file"};
  text.replace(at, from.size(), to);
  const Result<std::size_t> count = PlanCache().load(text);
  return count ? Error{ErrorCode::internal, "accepted"} : count.error();
}

template <class Change>
Error arguments_error(Change change) {
  GemmProblem p = *validate({.m = 4096, .n = 4096, .k = 4096, .epilogue = {.beta = 1, .bias = Bias::per_row}});
  const auto at = [](std::uintptr_t address) { return reinterpret_cast<void*>(address); };
  GemmArguments arguments{.a = at(0x1000), .b = at(0x2000), .c = at(0x4000), .d = at(0x4000), .bias = at(0x8000)};
  change(p, arguments);
  const Status status = check_arguments(p, arguments);
  return status ? Error{ErrorCode::internal, "accepted"} : status.error();
}

template <class Change>
Error quantize_error(Change change) {
  QuantizeProblem p{.m = 4096, .k = 7168};
  change(p);
  const Result<QuantizeProblem> valid = validate(p);
  return valid ? Error{ErrorCode::internal, "accepted"} : valid.error();
}

template <class Change>
Error quantize_arguments_error(Change change) {
  const auto at = [](std::uintptr_t address) { return reinterpret_cast<void*>(address); };
  QuantizeArguments arguments{.x = at(0x1000), .y = at(0x2000), .q = at(0x4000), .scale = static_cast<float*>(at(0x8000))};
  change(arguments);
  const Status status = check_arguments(*validate(QuantizeProblem{.m = 4096, .k = 7168, .input = QuantizeInput::silu_times}), arguments);
  return status ? Error{ErrorCode::internal, "accepted"} : status.error();
}

template <class Change>
Error pack_error(Change change) {
  PackW4Problem p{.n = 4096, .k = 4096, .format = {.zero_points = true}};
  const auto at = [](std::uintptr_t address) { return reinterpret_cast<void*>(address); };
  PackW4Arguments arguments{.codes = at(0x1000), .scales = at(0x2000), .zeros = at(0x3000), .packed = at(0x4000)};
  change(p, arguments);
  const Result<PackW4Problem> valid = validate(p);
  if (!valid) return valid.error();
  const Status status = check_arguments(*valid, arguments);
  return status ? Error{ErrorCode::internal, "accepted"} : status.error();
}

constexpr std::int32_t kFourBytes = 0;

Error order_error() {
  const std::vector<std::int32_t> group_of(128, 0);
  std::vector<std::int32_t> order(128);
  return order_of_groups(128, 64, group_of.data(), order.data()).error();
}

Error group_sizes_error() {
  const std::vector<std::int32_t> sizes = {0, 128, 200};
  return check_group_sizes({.k = 512, .batch = 2, .type_a = DataType::e4m3, .type_b = DataType::e4m3, .grouping = Grouping::along_k},
                           sizes.data())
      .error();
}

// Of a group in host memory that breaks a promise; nothing lies behind its pointers.
template <class Change>
Error general_group_error(Change change) {
  const auto at = [](std::uintptr_t address) { return reinterpret_cast<void*>(address); };
  GroupArguments groups[2];
  groups[1] = {.a = at(0x1000), .b = at(0x2000), .d = at(0x4000), .m = 70, .n = 72, .k = 72};
  change(groups[1]);
  return check_general_groups({.m = 128, .n = 128, .k = 128, .batch = 2, .grouping = Grouping::general}, groups).error();
}

// A plan that the emulator will not run; nothing lies behind its pointers.
Error emulator_error(const EmulatorOptions& options) {
  const auto at = [](std::uintptr_t address) { return reinterpret_cast<void*>(address); };
  const Plan small = *plan({.m = 64, .n = 64, .k = 512}, h200());
  const Status status = run_on_emulator(small, {.a = at(0x1000), .b = at(0x2000), .d = at(0x4000)}, options);
  return status ? Error{ErrorCode::internal, "accepted"} : status.error();
}

std::vector<Error> library_errors() {
  const std::int64_t most = std::numeric_limits<std::int32_t>::max() - 1024;
  return {
      fp8_error([](GemmProblem& p) { p.k = 8080, p.grouping = Grouping::along_k; }),
      group_sizes_error(),
      along_k_error([](GemmProblem& p) { p.layout_a = Layout::row_major, p.layout_b = Layout::column_major; }),
      along_k_error([](GemmProblem& p) { p.m = 4095; }),
      along_k_error([](GemmProblem&) {}, {.scheduler = SchedulerKind::hybrid}),
      general_error([](GemmProblem& p) { p.type_b = DataType::int4; }),
      general_error([](GemmProblem& p) { p.type_a = p.type_b = p.type_d = DataType::e4m3; }),
      general_error([](GemmProblem& p) { p.layout_b = Layout::row_major; }),
      general_error([](GemmProblem& p) { p.alignment_a_bytes = 8; }),
      general_error([](GemmProblem& p) { p.epilogue.bias = Bias::per_group_column; }),
      general_error([](GemmProblem& p) { p.lda = 4096; }),
      general_error([](GemmProblem& p) { p.type_a = p.type_b = DataType::e4m3, p.scaling_a = Scaling::per_vector_128, p.ld_scale_a = 32; }),
      general_error([](GemmProblem&) {}, {.scheduler = SchedulerKind::stream_k}),
      general_group_error([](GroupArguments& g) { g.lda = 76; }),
      general_group_error([](GroupArguments& g) { g.b = static_cast<const std::byte*>(g.b) + 8; }),
      general_group_error([](GroupArguments& g) { g.d = nullptr; }),
      plan_error([](GemmProblem& p) { p.m = -1; }),
      plan_error([](GemmProblem& p) { p.lda = 4000; }),
      plan_error([](GemmProblem& p) { p.batch = 2, p.batch_stride_a = -2; }),
      plan_error([](GemmProblem& p) { p.batch = 2, p.batch_stride_d = 4096; }),
      plan_error([](GemmProblem& p) { p.alignment_a_bytes = 12; }),
      plan_error([](GemmProblem& p) { p.layout_a = static_cast<Layout>(7); }),
      plan_error([](GemmProblem& p) { p.type_a = p.type_b = DataType::fp32; }),
      plan_error([](GemmProblem& p) { p.type_a = DataType::fp16; }),
      plan_error([](GemmProblem& p) { p.type_d = DataType::e4m3; }),
      fp8_error([](GemmProblem& p) { p.layout_b = Layout::row_major; }),
      fp8_error([](GemmProblem& p) { p.k = 100; }),
      fp8_error([](GemmProblem& p) { p.batch = 2, p.batch_stride_b = 1000; }),
      fp8_error([](GemmProblem& p) { p.alignment_a_bytes = 8; }),
      plan_error([](GemmProblem& p) { p.scaling_a = Scaling::per_tensor; }),
      fp8_error([](GemmProblem& p) { p.scaling_d = Scaling::per_tensor; }),
      fp8_error([](GemmProblem& p) { p.type_d = DataType::e4m3, p.scaling_d = Scaling::per_block_128; }),
      fp8_error([](GemmProblem& p) { p.type_d = DataType::e4m3, p.epilogue.beta = 1; }),
      fp8_error([](GemmProblem& p) {
        p.type_d = DataType::e4m3, p.scaling_d = Scaling::per_vector_128, p.batch = 2, p.batch_stride_scale_d = 0;
      }),
      fp8_error([](GemmProblem& p) { p.scaling_a = Scaling::per_vector_128, p.ld_scale_a = 31; }),
      fp8_error([](GemmProblem& p) { p.scaling_b = Scaling::per_block_128, p.ld_scale_b = std::int64_t{1} << 31; }),
      fp8_error([](GemmProblem& p) { p.scaling_b = Scaling::per_vector, p.batch = 2, p.batch_stride_scale_b = -5; }),
      w4_error([](GemmProblem& p) { p.type_a = DataType::fp32; }),
      w4_error([](GemmProblem& p) { p.layout_b = Layout::row_major; }),
      w4_error([](GemmProblem& p) { p.w4.group_size = 256; }),
      w4_error([](GemmProblem& p) { p.k = 4100; }),
      w4_error([](GemmProblem& p) { p.alignment_b_bytes = 8; }),
      w4_error([](GemmProblem& p) { p.ldb = 4104; }),
      w4_error([](GemmProblem& p) { p.batch = 2, p.batch_stride_b = 1000; }),
      w4_error([](GemmProblem& p) { p.scaling_b = Scaling::per_vector; }),
      w4_error([](GemmProblem& p) { p.type_a = DataType::e4m3, p.scaling_a = Scaling::per_vector_128; }),
      w4_error([](GemmProblem& p) { p.batch = 2, p.grouping = Grouping::along_k; }),
      plan_error([](GemmProblem& p) { p.k = std::int64_t{1} << 31; }),
      plan_error([=](GemmProblem& p) { p.m = p.k = most; }),
      plan_error([](GemmProblem& p) { p.lda = std::int64_t{1} << 40; }),
      plan_error([](GemmProblem& p) { p.batch = 2, p.batch_stride_b = std::int64_t{1} << 40; }),
      fp8_error([](GemmProblem& p) { p.scaling_a = Scaling::per_vector_128, p.ld_scale_a = 1 << 20; }),
      fp8_error([](GemmProblem& p) { p.m = 1 << 28, p.scaling_a = Scaling::per_vector_128; }),
      plan_error([=](GemmProblem& p) { p.m = most; }),
      options_error({.kernel_name = "warp_drive"}),
      options_error({.scheduler = SchedulerKind::stream_k, .kernel_name = "bf16_rc_ping_128x192x64_c2x1"}),
      options_error({.scheduler = SchedulerKind::split_k, .kernel_name = "bf16_rc_coop_16x64x256_c1x1_swap"}),
      options_error({.scheduler = SchedulerKind::stream_k, .reduction = Reduction::separate}),
      options_error({.determinism = Determinism::batch_invariant, .scheduler = SchedulerKind::split_k}),
      options_error({.scheduler = SchedulerKind::split_k, .reduction = Reduction::separate, .kernel_name = "bf16_rc_ping_64x64x64_c1x1"}),
      options_error({.scheduler = SchedulerKind::split_k,
                     .claim = WorkClaim::ticket,
                     .reduction = Reduction::separate,
                     .splits = 2,
                     .kernel_name = "bf16_rc_coop_128x128x64_c1x1"}),
      options_error({.scheduler = SchedulerKind::split_k,
                     .reduction = Reduction::cluster,
                     .splits = 2,
                     .kernel_name = "bf16_rc_coop_128x256x64_c2x1"}),
      options_error({.scheduler = SchedulerKind::split_k,
                     .reduction = Reduction::cluster,
                     .splits = 3,
                     .kernel_name = "bf16_rc_coop_128x128x64_c1x1"}),
      plan({.m = 4096, .n = 4096, .k = 4096}, *find_device("h10"),
           {.scheduler = SchedulerKind::split_k,
            .reduction = Reduction::cluster,
            .splits = 8,
            .kernel_name = "bf16_rc_coop_128x128x64_c1x1"})
          .error(),
      grouped_error([](GemmProblem& p) {
        p.type_a = p.type_b = DataType::bf16;
        p.layout_a = Layout::column_major;
      }),
      grouped_error([](GemmProblem& p) { p.scaling_a = Scaling::per_block_128; }),
      grouped_error([](GemmProblem& p) { p.expected_rows = -1; }),
      grouped_error([](GemmProblem& p) { p.most_rows = -1; }),
      grouped_options_error({.scheduler = SchedulerKind::one_tile_per_cta}),
      grouped_options_error({.scheduler = SchedulerKind::split_k, .reduction = Reduction::cluster}),
      grouped_options_error({.scheduler = SchedulerKind::stream_k, .stream_k_regions = 2}),
      grouped_options_error({.scheduler = SchedulerKind::split_k, .claim = WorkClaim::fixed}),
      simulate(*plan({.m = 4096, .n = 4096, .k = 4096, .batch = 8, .grouping = Grouping::ragged}, h200())).error(),
      device_error([](DeviceSpec& d) { d.name = "a100", d.compute_capability = 80; }),
      device_error([](DeviceSpec& d) { d.sm_count = 0; }),
      device_error([](DeviceSpec& d) { d.clusters_of_2 = 100; }),
      device_error([](DeviceSpec& d) { d.clock_ghz = -1; }),
      find_device("b200").error(),
      plan_from_json("{").error(),
      plan_from_json("{}").error(),
      json_error("\"version\": 1", "\"version\": 9"),
      json_error("\"m\": 4096", "\"m\": 0.5"),
      json_error("\"type_d\": \"bf16\"", "\"type_d\": \"fp8\""),
      json_error("\"lda\"", "\"leading\""),
      json_error("\"groups\": 1", "\"groups\": 7"),
      plan_file_error("sluice-plans", "shopping"),
      plan_file_error("\"measured_us\": 1.0", "\"measured_us\": 0"),
      plan_file_error("\"tile_m\": 128", "\"tile_m\": 136"),
      arguments_error([](GemmProblem&, GemmArguments& a) { a.a = nullptr; }),
      arguments_error([](GemmProblem&, GemmArguments& a) { a.c = nullptr; }),
      arguments_error([](GemmProblem&, GemmArguments& a) { a.b = reinterpret_cast<const void*>(std::uintptr_t{0x2008}); }),
      arguments_error([](GemmProblem& p, GemmArguments&) { p.ldc = 8192; }),
      arguments_error([](GemmProblem& p, GemmArguments&) { p.scaling_a = Scaling::per_tensor; }),
      arguments_error([](GemmProblem& p, GemmArguments&) { p.grouping = Grouping::ragged; }),
      arguments_error([](GemmProblem& p, GemmArguments&) { p.grouping = Grouping::general; }),
      arguments_error([](GemmProblem& p, GemmArguments& a) { p.grouping = Grouping::general, a = {}; }),
      arguments_error([](GemmProblem& p, GemmArguments& a) {
        p.scaling_b = Scaling::per_tensor;
        a.scale_b = reinterpret_cast<const float*>(std::uintptr_t{0x3002});
      }),
      quantize_error([](QuantizeProblem& p) { p.ldx = 7000; }),
      quantize_error([](QuantizeProblem& p) { p.ldq = std::int64_t{1} << 31; }),
      quantize_error([](QuantizeProblem& p) { p.type_x = DataType::e5m2; }),
      quantize_error([](QuantizeProblem& p) { p.type_q = DataType::fp16; }),
      quantize_error([](QuantizeProblem& p) { p.scaling = Scaling::per_tensor; }),
      quantize_error([](QuantizeProblem& p) { p.scale_layout = Layout::column_major, p.ld_scale = 4000; }),
      quantize_error([](QuantizeProblem& p) { p.ld_scale = 1 << 20; }),
      quantize_arguments_error([](QuantizeArguments& a) { a.y = nullptr; }),
      quantize_arguments_error([](QuantizeArguments& a) { a.x = reinterpret_cast<const void*>(std::uintptr_t{0x1001}); }),
      pack_error([](PackW4Problem& p, PackW4Arguments&) { p.n = 4100; }),
      pack_error([](PackW4Problem& p, PackW4Arguments&) { p.k = 4104; }),
      pack_error([](PackW4Problem& p, PackW4Arguments&) { p.format.group_size = 256; }),
      pack_error([](PackW4Problem& p, PackW4Arguments&) { p.type = DataType::fp32; }),
      pack_error([](PackW4Problem& p, PackW4Arguments&) { p.type_scales = DataType::e4m3; }),
      pack_error([](PackW4Problem& p, PackW4Arguments&) { p.k = std::int64_t{1} << 31; }),
      pack_error([](PackW4Problem&, PackW4Arguments& a) { a.zeros = nullptr; }),
      pack_error([](PackW4Problem& p, PackW4Arguments&) { p.format.zero_points = false; }),
      pack_error([](PackW4Problem&, PackW4Arguments& a) { a.packed = reinterpret_cast<void*>(std::uintptr_t{0x1010}); }),
      order_error(),
      check_arguments(PermuteColumnsProblem{.m = 1, .k = 8, .ld_from = 8, .ld_to = 8}, &kFourBytes, &kFourBytes, &kFourBytes).error(),
  };
}

TEST(ErrorsDocument, MessagesAreReal) {
  std::vector<std::string> lines;
  std::ifstream file(SLUICE_SOURCE_DIR "/docs/errors.md");
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  std::vector<Error> errors = library_errors();
  if (built_with_emulator()) errors.push_back(emulator_error({.resident_clusters = -1}));
  for (const Error& error : errors) {
    EXPECT_NE(error.code, ErrorCode::internal) << error.message;
    const auto shows = [&](const std::string& line) {
      return line.find("| " + std::string(to_string(error.code)) + " |") != std::string::npos &&
             line.find(error.message) != std::string::npos;
    };
    EXPECT_TRUE(std::any_of(lines.begin(), lines.end(), shows))
        << "docs/errors.md lacks\n| " << to_string(error.code) << " | `" << error.message << "` |";
  }
}

}  // namespace
}  // namespace sluice
