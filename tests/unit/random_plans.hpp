// Problems and plans at random, from a seed.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <random>
#include <vector>

#include "sluice/plan.hpp"

namespace sluice::testing {

template <class T>
T pick(std::mt19937& random, std::initializer_list<T> values) {
  return values.begin()[std::uniform_int_distribution<std::size_t>(0, values.size() - 1)(random)];
}

// FP8 operands, which only come with K contiguous and in rows of 16 bytes, and their scales.
inline void make_fp8(std::mt19937& random, GemmProblem& p) {
  p.type_a = pick(random, {DataType::e4m3, DataType::e5m2});
  p.type_b = pick(random, {DataType::e4m3, DataType::e5m2});
  p.layout_a = Layout::row_major, p.layout_b = Layout::column_major;
  p.alignment_a_bytes = 16;
  p.lda = (p.k + 15) / 16 * 16 + 16;
  p.ldb = p.lda + 32;
  const auto scaling = [&] {
    return pick(random, {Scaling::none, Scaling::per_tensor, Scaling::per_vector, Scaling::per_vector_128, Scaling::per_block_128});
  };
  p.scaling_a = scaling(), p.scaling_b = scaling();
  p.scale_layout_a = pick(random, {Layout::row_major, Layout::column_major});
  p.scale_layout_b = pick(random, {Layout::row_major, Layout::column_major});
  if (pick(random, {true, false})) p.ld_scale_b = std::max(p.n, p.k / 128 + 1) + 3;
  if (pick(random, {true, false})) p.batch_stride_scale_a = 0;
}

inline GemmProblem random_problem(std::mt19937& random) {
  const auto extent = [&] { return pick<std::int64_t>(random, {0, 1, 7, 8, 16, 63, 64, 100, 129, 512, 1000, 4096, 8191}); };
  GemmProblem p{.m = extent(), .n = extent(), .k = extent(), .batch = pick<std::int64_t>(random, {1, 1, 1, 2, 5})};
  p.type_a = p.type_b = pick(random, {DataType::bf16, DataType::fp16});
  p.type_d = pick(random, {DataType::bf16, DataType::fp16, DataType::fp32});
  p.layout_a = pick(random, {Layout::row_major, Layout::column_major});
  p.layout_b = pick(random, {Layout::row_major, Layout::column_major});
  if (pick(random, {true, false})) p.ldd = p.n + pick<std::int64_t>(random, {1, 8, 24});
  if (pick(random, {true, false})) p.batch_stride_b = 0;
  p.alignment_a_bytes = pick(random, {2, 8, 16, 16, 16});
  p.constant_a = p.m % 2 == 1, p.constant_b = p.n % 3 == 1;
  if (pick(random, {true, false, false})) make_fp8(random, p);
  p.epilogue.alpha = pick(random, {1.0f, 0.0f, -0.0f, 0.1f, 1e-40f, 3.4e38f});
  p.epilogue.beta = pick(random, {0.0f, 1.0f, -1.0f / 3.0f});
  p.epilogue.bias = pick(random, {Bias::none, Bias::per_row, Bias::per_column, Bias::per_group_column});
  p.epilogue.activation = pick(random, {Activation::none, Activation::relu, Activation::gelu_tanh, Activation::silu});
  return p;
}

inline Plan random_plan(std::mt19937& random) {
  const std::vector<DeviceSpec>& devices = builtin_devices();
  const DeviceSpec& device = devices[std::uniform_int_distribution<std::size_t>(0, devices.size() - 1)(random)];
  PlanOptions options;
  if (pick(random, {true, false})) options.raster = pick(random, {Rasterization::along_m, Rasterization::along_n});
  if (pick(random, {true, false}))
    options.scheduler = pick(random, {SchedulerKind::one_tile_per_cta, SchedulerKind::data_parallel, SchedulerKind::split_k,
                                      SchedulerKind::stream_k, SchedulerKind::hybrid});
  options.keep_candidates = pick(random, {true, false});
  const Result<Plan> made = plan(random_problem(random), device, options);
  EXPECT_TRUE(made.ok()) << made.error().message;
  return made.ok() ? *made : Plan{};
}

}  // namespace sluice::testing
