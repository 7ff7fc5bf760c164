// A D in FP8: what is accepted, what the reference makes of it, and what verify() lets pass.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "gemm_data.hpp"
#include "refused.hpp"

namespace sluice::test {
namespace {

using enum Scaling;
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN(), kInfinity = std::numeric_limits<float>::infinity();

GemmProblem fp8(std::int64_t m, std::int64_t n, std::int64_t k, Scaling scaling_d, DataType type_d = DataType::e4m3) {
  GemmProblem p{.m = m, .n = n, .k = k, .type_a = DataType::e4m3, .type_b = DataType::e4m3, .type_d = type_d};
  p.scaling_d = scaling_d;
  return p;
}
GemmProblem accepted(const GemmProblem& p) {
  const Result<GemmProblem> valid = validate(p);
  EXPECT_TRUE(valid.ok()) << (valid ? "" : valid.error().message);
  return valid ? *valid : GemmProblem{};
}

TEST(Fp8Result, IsOfFp8OperandsAndHasNoC) {
  for (const DataType type : {DataType::e4m3, DataType::e5m2})
    for (const Scaling scaling : {none, per_tensor, per_vector_128}) accepted(fp8(8, 8, 16, scaling, type));
  GemmProblem p{.m = 8, .n = 8, .k = 16, .type_d = DataType::e4m3};
  expect_refused(validate(p), ErrorCode::unsupported, {"type_d = e4m3 with bf16 operands", "of fp8 operands alone"});
  p = fp8(8, 8, 16, none);
  p.type_b = DataType::int4;
  expect_refused(validate(p), ErrorCode::unsupported, {"type_d = e4m3 with int4 operands", "of fp8 operands alone"});
  p = fp8(8, 8, 128, none);
  p.grouping = Grouping::along_k;
  expect_refused(validate(p), ErrorCode::unsupported, {"type_d = e4m3 with groups along k", "D must be bf16, fp16 or fp32"});
  p = fp8(8, 8, 16, per_tensor, DataType::bf16);
  expect_refused(validate(p), ErrorCode::unsupported, {"scaling_d = tensor with type_d = bf16", "use alpha"});
  for (const Scaling scaling : {per_vector, per_block_128})
    expect_refused(validate(fp8(8, 8, 16, scaling)), ErrorCode::unsupported,
                   {std::string("scaling_d = ") + to_string(scaling), "tensor", "1x128", "quantize()"});
  p = fp8(8, 8, 16, none);
  p.epilogue.beta = 0.5f;
  expect_refused(validate(p), ErrorCode::unsupported, {"beta = 0.5", "type_d = e4m3", "quantize()"});
  p = fp8(8, 8, 16, none);
  p.scale_layout_d = static_cast<Layout>(3);
  expect_refused(validate(p), ErrorCode::invalid_argument, {"scale_layout_d is none"});
  EXPECT_EQ(describe(fp8(2, 3, 16, per_vector_128)), "2 x 3 x 16 e4m3 -> e4m3, A row-major, B column-major, D scaled 1x128");
}

TEST(Fp8Result, StridesOfScales) {
  GemmProblem p = fp8(300, 260, 16, per_vector_128);
  p.batch = 3;
  GemmProblem v = accepted(p);
  EXPECT_EQ(v.ld_scale_d, 3);
  EXPECT_EQ(v.batch_stride_scale_d, 900);
  EXPECT_EQ(scale_elems_d(v), 2700);
  p.scale_layout_d = Layout::column_major;
  p.ld_scale_d = 304, p.batch_stride_scale_d = 1000;
  v = accepted(p);
  EXPECT_EQ(scale_elems_d(v), 2000 + 2 * 304 + 300);
  EXPECT_EQ(accepted(v), v);
  p.batch_stride_scale_d = 907;
  expect_refused(validate(p), ErrorCode::invalid_argument, {"batch_stride_scale_d = 907", "at least 908"});
  p.batch_stride_scale_d = 0;
  expect_refused(validate(p), ErrorCode::invalid_argument, {"batch_stride_scale_d = 0", "overlap"});
  p.ld_scale_d = 299;
  expect_refused(validate(p), ErrorCode::invalid_argument, {"ld_scale_d = 299", "300"});
  p.scaling_d = per_tensor;
  v = accepted(p);
  EXPECT_EQ(scale_elems_d(v), 1) << "one for all matrices";
  p.batch_stride_scale_d = kPacked;
  EXPECT_EQ(scale_elems_d(accepted(p)), 3);
  p.grouping = Grouping::ragged;
  EXPECT_EQ(accepted(p).batch_stride_scale_d, 0);
  p.scaling_d = none;
  EXPECT_EQ(scale_elems_d(accepted(p)), 0);
}

TEST(Fp8Result, KernelsThatHoldNo128ColumnsArePassedOver) {
  const GemmProblem p = fp8(4, 4096, 4096, per_vector_128);
  const Plan made = plan(p, *find_device("h200")).value();
  EXPECT_EQ(made.kernel.order, OperandOrder::rows_of_a);
  EXPECT_EQ(made.kernel.tile_n, 128);
  int passed_over = 0;
  for (const Candidate& c : made.candidates) {
    const bool holds = c.kernel.order == OperandOrder::rows_of_a && c.kernel.tile_n == 128;
    if (is_fp8(c.kernel.type_a) && c.kernel.type_a == c.kernel.type_b && c.kernel.type_a == DataType::e4m3 && !holds) {
      EXPECT_EQ(c.verdict, CandidateVerdict::no_row_scales) << name(c.kernel);
      ++passed_over;
    }
    if (c.verdict == CandidateVerdict::slower) {
      EXPECT_EQ(c.scheduler.reduction, Reduction::workspace);
    }
  }
  EXPECT_GT(passed_over, 3);
  EXPECT_NE(explain(made).find("no warpgroup of theirs holds all 128"), std::string::npos);
  EXPECT_NE(plan(fp8(4, 4096, 4096, per_tensor), *find_device("h200"))->kernel.tile_n, 128) << "any kernel";

  expect_refused(plan(p, *find_device("h200"), {.kernel_name = "e4m3_rc_coop_8x64x256_c1x1_swap"}), ErrorCode::unsupported,
                 {"kernel e4m3_rc_coop_8x64x256_c1x1_swap", "128 columns", "scaling_d = 1x128"});
  for (const Reduction reduction : {Reduction::separate, Reduction::cluster})
    expect_refused(plan(p, *find_device("h200"), {.scheduler = SchedulerKind::split_k, .reduction = reduction}),
                   ErrorCode::invalid_argument,
                   {std::string("reduction = ") + to_string(reduction), "scaling_d = 1x128", "take workspace"});
  EXPECT_TRUE(plan(p, *find_device("h200"), {.scheduler = SchedulerKind::split_k, .splits = 4}).ok());
}

// Plans that were changed by hand.
TEST(Fp8Result, ThePlanMustFitTheScales) {
  GemmData data(fp8(64, 200, 512, per_vector_128), Values::integers);
  Plan made = plan_on_h10(data.problem, {.scheduler = SchedulerKind::split_k, .splits = 2}).value();
  ASSERT_TRUE(run_on_cpu(made, data.arguments()));
  made.scheduler.reduction = Reduction::cluster;
  expect_refused(run_on_cpu(made, data.arguments()), ErrorCode::invalid_argument, {"reduction = cluster"});
  Plan narrow = plan_on_h10(fp8(64, 200, 512, none), {.kernel_name = "e4m3_rc_coop_8x64x256_c1x1_swap"}).value();
  narrow.problem = data.problem;
  expect_refused(run_on_cpu(narrow, data.arguments()), ErrorCode::invalid_argument, {"scaling_d = 1x128", "128 columns of its rows"});
}

TEST(Fp8Result, GoesThroughJson) {
  GemmProblem p = fp8(300, 260, 16, per_vector_128);
  p.scale_layout_d = Layout::column_major, p.ld_scale_d = 304;
  const Plan made = plan_on_h10(p).value();
  const auto json = nlohmann::json::parse(to_json(made))["problem"];
  EXPECT_EQ(json["type_d"], "e4m3");
  EXPECT_EQ(json["scaling_d"], "1x128");
  EXPECT_EQ(json["scale_layout_d"], "column-major");
  EXPECT_EQ(json["ld_scale_d"], 304);
  EXPECT_EQ(json["batch_stride_scale_d"], 3 * 304);
  EXPECT_EQ(plan_from_json(to_json(made)).value(), made);
  for (const char* field : {"ld_scale_d", "batch_stride_scale_d"}) {
    auto changed = nlohmann::json::parse(to_json(made));
    changed["problem"][field] = -1;
    expect_refused(plan_from_json(changed.dump()), ErrorCode::bad_format, {std::string("problem.") + field + " = -1"});
  }
  const auto plain = nlohmann::json::parse(to_json(plan_on_h10({.m = 8, .n = 8, .k = 8}).value()))["problem"];
  EXPECT_FALSE(plain.contains("scaling_d") || plain.contains("ld_scale_d")) << "files of before are as they were";
}

// Two rows of A pick rows of B: D is known without a sum.
struct Picked {
  GemmData data;
  explicit Picked(GemmProblem p) : data(p, Values::integers) {
    data.a.fill(0), data.b.fill(0);
    data.a.set(0, 1);                     // row 0 of D is what B has at k = 0,
    data.a.set(data.problem.lda + 1, 2);  // row 1 twice what it has at k = 1
  }
  void set_b(int k, int column, double value) { data.b.set(column * data.problem.ldb + k, value); }
  void run() { ASSERT_TRUE(run_on_cpu(plan_on_h10(data.problem).value(), data.arguments())); }
  double d(int row, int column) { return data.d.get(data.index_d(0, row, column)); }
  double scale(int index) { return data.scale_d.get(index); }
};

TEST(Fp8Result, ScalesOf128ColumnsByHand) {
  Picked p(fp8(2, 130, 16, per_vector_128));
  p.set_b(0, 3, 1), p.set_b(0, 5, -7), p.set_b(0, 127, 3.5);  // the largest is 7: the scale 7 / 448 = 2^-6
  p.set_b(1, 0, 224), p.set_b(1, 1, 1), p.set_b(1, 129, -1.75);
  p.run();
  EXPECT_EQ(p.scale(0), 0x1p-6);
  EXPECT_EQ(p.d(0, 3), 64);
  EXPECT_EQ(p.d(0, 5), -448);
  EXPECT_EQ(p.d(0, 127), 224);
  EXPECT_EQ(p.d(0, 4), 0);
  EXPECT_EQ(p.scale(1), 1) << "columns 128 and 129 of row 0 are zeros";
  EXPECT_EQ(p.d(0, 128), 0);
  EXPECT_EQ(p.scale(2), 1) << "448 / 448";
  EXPECT_EQ(p.d(1, 0), 448);
  EXPECT_EQ(p.d(1, 1), 2);
  EXPECT_EQ(p.scale(3), 3.5f / 448);
  EXPECT_EQ(p.d(1, 129), -448);
  EXPECT_EQ(p.data.scale_d.count(), 4);
  EXPECT_TRUE(verify(p.data.problem, p.data.arguments(), nullptr)->ok());
}

TEST(Fp8Result, TensorScaleSaturationBiasAndActivationByHand) {
  GemmProblem problem = fp8(2, 3, 16, per_tensor);
  problem.epilogue = {.alpha = 0.5f, .bias = Bias::per_column, .activation = Activation::relu};
  Picked p(problem);
  p.data.scale_d.set(0, 0.25);
  for (int column = 0; column < 3; ++column) p.data.bias.set(column, 1.0);
  p.set_b(0, 0, 3), p.set_b(0, 1, -6), p.set_b(1, 0, 448), p.set_b(1, 1, 0.25);
  p.run();
  EXPECT_EQ(p.d(0, 0), 10) << "(0.5 * 3 + 1) / 0.25";
  EXPECT_EQ(p.d(0, 1), 0) << "relu(-2)";
  EXPECT_EQ(p.d(0, 2), 4);
  EXPECT_EQ(p.d(1, 0), 448) << "449 / 0.25 is too large";
  EXPECT_EQ(p.d(1, 1), 5) << "(0.5 * 0.5 + 1) / 0.25";
  EXPECT_TRUE(verify(p.data.problem, p.data.arguments(), nullptr)->ok());
  p.data.scale_d.set(0, 0.5);
  EXPECT_FALSE(verify(p.data.problem, p.data.arguments(), nullptr)->ok()) << "another scale makes them other numbers";
}

TEST(Fp8Result, WhatIsNotFinite) {
  for (const DataType type : {DataType::e4m3, DataType::e5m2}) {
    GemmProblem problem = fp8(2, 256, 16, per_vector_128, type);
    problem.epilogue.bias = Bias::per_column;
    Picked p(problem);
    p.data.bias.fill(0);
    p.set_b(0, 1, 2), p.set_b(1, 1, 2);
    p.data.bias.set(7, kNaN), p.data.bias.set(130, kInfinity);
    p.run();
    const double largest = type == DataType::e4m3 ? 448 : 57344;
    EXPECT_EQ(p.scale(0), static_cast<float>(2 / largest)) << "a NaN has no part in it";
    EXPECT_EQ(p.d(0, 1), largest);
    EXPECT_TRUE(std::isnan(p.d(0, 7)));
    EXPECT_EQ(p.scale(1), kInfinity);
    EXPECT_TRUE(std::isnan(p.d(0, 130)));
    EXPECT_TRUE(verify(p.data.problem, p.data.arguments(), nullptr)->ok());
  }
}

TEST(Fp8Result, ArgumentsAreNeeded) {
  for (const Scaling scaling : {per_tensor, per_vector_128}) {
    GemmProblem problem = fp8(8, 8, 16, scaling);
    problem.epilogue.bias = Bias::per_row;
    GemmData data(problem, Values::integers);
    const Plan made = plan_on_h10(problem).value();
    GemmArguments arguments = data.arguments();
    arguments.scale_d = nullptr;
    expect_refused(run_on_cpu(made, arguments), ErrorCode::invalid_argument, {"scale_d is null"});
    arguments.scale_d = reinterpret_cast<float*>(static_cast<char*>(data.scale_d.data()) + 2);
    expect_refused(run_on_cpu(made, arguments), ErrorCode::misaligned, {"scale_d = 0x", "at least 4 bytes"});
    arguments = data.arguments();
    arguments.bias = static_cast<const char*>(arguments.bias) + 2;
    expect_refused(run_on_cpu(made, arguments), ErrorCode::misaligned, {"bias = 0x", "fp32"});
    arguments.bias = static_cast<const char*>(arguments.bias) + 2;
    EXPECT_TRUE(run_on_cpu(made, arguments)) << "a bias needs no more than its own alignment";
  }
}

VerifyReport verified(GemmData& data, std::int64_t samples = 0) {
  const Result<VerifyReport> report = verify(data.problem, data.arguments(), nullptr, samples);
  EXPECT_TRUE(report) << report.error().message;
  return report ? *report : VerifyReport{};
}

TEST(Fp8Result, VerifyPassesTheReference) {
  for (const Scaling scaling : {none, per_tensor, per_vector_128})
    for (const DataType type : {DataType::e4m3, DataType::e5m2})
      for (const Activation activation : {Activation::none, Activation::gelu_tanh})
        for (const Values values : {Values::integers, Values::normal}) {
          GemmProblem problem = fp8(70, 200, 400, scaling, type);
          problem.batch = 2;
          problem.scaling_a = per_vector_128, problem.scaling_b = per_block_128;
          problem.scale_layout_d = Layout::column_major;
          problem.epilogue = {.alpha = 0.5f, .bias = Bias::per_column, .activation = activation};
          GemmData data(problem, values);
          ASSERT_TRUE(run_on_cpu(plan_on_h10(problem).value(), data.arguments()));
          const VerifyReport report = verified(data);
          ASSERT_TRUE(report.ok()) << describe(problem) << ": " << to_string(report);
          EXPECT_EQ(report.checked, 2 * 70 * 200);
          EXPECT_LE(report.worst_ratio, 1.0);
          EXPECT_TRUE(verified(data, 300).ok());
        }
}

TEST(Fp8Result, VerifyFindsOneWrongCodeAndOneWrongScale) {
  for (const Scaling scaling : {none, per_tensor, per_vector_128}) {
    GemmProblem problem = fp8(70, 200, 400, scaling);
    problem.scaling_a = per_vector_128, problem.scaling_b = per_block_128;
    GemmData data(problem, Values::integers);
    ASSERT_TRUE(run_on_cpu(plan_on_h10(problem).value(), data.arguments()));
    const std::int64_t place = data.index_d(0, 33, 150);
    auto& code = static_cast<unsigned char*>(data.d.data())[place];
    code = static_cast<unsigned char>((code & 0x7f) > 0x40 ? code - 1 : code + 1);  // the neighbour, towards the middle
    const VerifyReport report = verified(data);
    EXPECT_EQ(report.wrong, 1) << to_string(scaling);
    EXPECT_EQ(report.worst_row, 33);
    EXPECT_EQ(report.worst_column, 150);
  }
  GemmData data(fp8(70, 200, 400, per_vector_128), Values::normal);
  ASSERT_TRUE(run_on_cpu(plan_on_h10(data.problem).value(), data.arguments()));
  ASSERT_TRUE(verified(data).ok());
  const double right = data.scale_d.get(2 * 33 + 1);
  for (const double wrong : {right * 1.01, right * 0.99, right * 2, static_cast<double>(kNaN), 0.0}) {
    data.scale_d.set(2 * 33 + 1, wrong);
    const VerifyReport report = verified(data);
    EXPECT_EQ(report.wrong + report.not_a_number, 200 - 128) << "the scale is that of as many: " << wrong;
    EXPECT_EQ(report.worst_row, 33);
  }
}

// Halves of a step are lost in rounding to FP8: beyond the bound of the sum, less is noticed than a whole step.
TEST(Fp8Result, TheBoundIsThatOfTheRoundingAndOfTheSum) {
  GemmData data(fp8(64, 128, 1024, none), Values::normal);
  ASSERT_TRUE(run_on_cpu(plan_on_h10(data.problem).value(), data.arguments()));
  EXPECT_TRUE(verified(data).ok());
  int found = 0;
  for (std::int64_t row = 0; row < 64; ++row) {
    auto& code = static_cast<unsigned char*>(data.d.data())[data.index_d(0, row, row)];
    const unsigned char before = code;
    if ((code & 0x7f) < 0x10 || (code & 0x7f) >= 0x7d) continue;
    code = static_cast<unsigned char>(code + 2);
    found += verified(data).ok() ? 0 : 1;
    code = before;
  }
  EXPECT_GT(found, 40);
}

}  // namespace
}  // namespace sluice::test
