// Small random products, computed by a plan's own division, pass the verifier; a planted error does not.
#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "random_plans.hpp"

namespace sluice {
namespace {

std::vector<unsigned char> random_elements(DataType type, std::int64_t count, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> values(-2, 2);
  std::vector<unsigned char> bytes;
  for (std::int64_t i = 0; i < count; ++i) {
    const float value = values(random);
    if (is_fp8(type)) {
      bytes.push_back(type == DataType::e4m3 ? to_e4m3_bits(value) : to_e5m2_bits(value));
      continue;
    }
    const std::uint16_t bits = type == DataType::bf16 ? to_bf16_bits(value) : to_fp16_bits(value);
    const auto* from =
        type == DataType::fp32 ? reinterpret_cast<const unsigned char*>(&value) : reinterpret_cast<const unsigned char*>(&bits);
    bytes.insert(bytes.end(), from, from + size_bytes(type));
  }
  return bytes;
}

std::vector<float> random_scales(std::int64_t count, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> values(0.01f, 3);
  std::vector<float> scales(static_cast<std::size_t>(count));
  std::generate(scales.begin(), scales.end(), [&] { return values(random); });
  return scales;
}

RC_GTEST_PROP(Products, VerifyAndAPlantedErrorDoesNot, ()) {
  GemmProblem unchecked = test::random_problem(140);
  unchecked.epilogue.activation = *rc::gen::element(Activation::none, Activation::relu, Activation::gelu_tanh, Activation::silu);
  if (!is_fp8(unchecked.type_a)) unchecked.alignment_a_bytes = unchecked.alignment_b_bytes = 2;
  const DeviceSpec device = test::random_device();
  RC_LOG() << describe(unchecked) << " on " << device.name;
  PlanOptions options;
  if (*rc::gen::arbitrary<bool>()) test::choose_scheduler(options);
  const Plan made = plan(unchecked, device, options).value();
  const GemmProblem& p = made.problem;
  RC_PRE(!is_empty(p));

  const auto span = [&](bool by_rows, std::int64_t rows, std::int64_t columns, std::int64_t leading, std::int64_t batch_stride) {
    return (by_rows ? rows : columns) * leading + p.batch * batch_stride;
  };
  const auto a = random_elements(p.type_a, span(p.layout_a == Layout::row_major, p.m, p.k, p.lda, p.batch_stride_a), 1);
  const auto b = random_elements(p.type_b, span(p.layout_b == Layout::row_major, p.k, p.n, p.ldb, p.batch_stride_b), 2);
  const auto c = random_elements(p.type_d, span(true, p.m, p.n, p.ldc, p.batch_stride_c), 3);
  const auto bias = random_elements(p.type_d, p.m + p.batch * p.n, 4);
  std::vector<unsigned char> d(static_cast<std::size_t>(span(true, p.m, p.n, p.ldd, p.batch_stride_d) * size_bytes(p.type_d)),
                               0xff);  // NaN
  const auto scale_a = random_scales(scale_elems_a(p), 5), scale_b = random_scales(scale_elems_b(p), 6);
  const GemmArguments arguments{a.data(), b.data(), c.data(), d.data(), bias.data(), scale_a.data(), scale_b.data()};
  RC_ASSERT(run_on_cpu(made, arguments, *rc::gen::inRange(1, 4)).ok());
  RC_ASSERT(verify(p, arguments, nullptr)->ok());

  const std::int64_t batch = *rc::gen::inRange<std::int64_t>(0, p.batch), row = *rc::gen::inRange<std::int64_t>(0, p.m);
  const std::int64_t column = *rc::gen::inRange<std::int64_t>(0, p.n);
  const std::int64_t at = (batch * p.batch_stride_d + row * p.ldd + column) * size_bytes(p.type_d);
  const float planted = 1e4f;
  const std::uint16_t bits = p.type_d == DataType::bf16 ? to_bf16_bits(planted) : to_fp16_bits(planted);
  const auto* from =
      p.type_d == DataType::fp32 ? reinterpret_cast<const unsigned char*>(&planted) : reinterpret_cast<const unsigned char*>(&bits);
  std::copy(from, from + size_bytes(p.type_d), d.begin() + at);
  const VerifyReport report = verify(p, arguments, nullptr).value();
  RC_ASSERT(report.wrong == 1);
  RC_ASSERT(report.worst_batch == batch);
  RC_ASSERT(report.worst_row == row);
  RC_ASSERT(report.worst_column == column);
}

}  // namespace
}  // namespace sluice
