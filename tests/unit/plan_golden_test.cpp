// The planner's choices for a set of shapes and devices, as text under tests/golden: a change of the cost model shows as a diff.
//
// After a change that is meant: SLUICE_UPDATE_GOLDEN=1 build/tests/unit_tests --gtest_filter='PlanGolden.*', then look at the diff.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "sluice/plan.hpp"

namespace sluice {
namespace {

const char* const kFile = SLUICE_SOURCE_DIR "/tests/golden/plans.txt";

struct Shape {
  std::int64_t m, n, k;
};

std::vector<GemmProblem> problems_for_all_devices() {
  std::vector<GemmProblem> problems;
  // Squares, a row of decode sizes, a wave and a bit more (132 tiles of 128 x 256 and one more), deep K, odd sizes.
  for (const Shape& s : std::vector<Shape>{{256, 256, 256},
                                           {1024, 1024, 1024},
                                           {4096, 4096, 4096},
                                           {8192, 8192, 8192},
                                           {1, 4096, 4096},
                                           {16, 6144, 4096},
                                           {64, 28672, 4096},
                                           {512, 4096, 14336},
                                           {1408, 3072, 4096},
                                           {1408, 3328, 4096},
                                           {128, 128, 16384},
                                           {384, 384, 128},
                                           {127, 129, 65}})
    problems.push_back({.m = s.m, .n = s.n, .k = s.k});
  return problems;
}

std::vector<GemmProblem> problems_for_one_device() {
  std::vector<GemmProblem> problems;
  for (const Layout a : {Layout::row_major, Layout::column_major})
    for (const Layout b : {Layout::row_major, Layout::column_major})
      problems.push_back({.m = 2048,
                          .n = 2048,
                          .k = 2048,
                          .type_a = DataType::fp16,
                          .type_b = DataType::fp16,
                          .type_d = DataType::fp32,
                          .layout_a = a,
                          .layout_b = b});
  problems.push_back({.m = 128, .n = 128, .k = 128, .batch = 64});
  problems.push_back({.m = 128, .n = 128, .k = 0});
  problems.push_back({.m = 0, .n = 128, .k = 128});
  problems.push_back({.m = 4096, .n = 4096, .k = 4096, .alignment_a_bytes = 2});
  problems.push_back(
      {.m = 2048, .n = 4096, .k = 1024, .epilogue = {.beta = 1, .bias = Bias::per_column, .activation = Activation::gelu_tanh}});
  const auto fp8 = [&](GemmProblem problem, Scaling of_a, Scaling of_b) {
    problem.type_a = DataType::e4m3;
    problem.scaling_a = of_a, problem.scaling_b = of_b;
    problems.push_back(problem);
  };
  fp8({.m = 4096, .n = 4096, .k = 4096, .type_b = DataType::e4m3}, Scaling::per_vector, Scaling::per_vector);
  fp8({.m = 64, .n = 7168, .k = 4096, .type_b = DataType::e4m3}, Scaling::per_vector_128, Scaling::per_block_128);
  fp8({.m = 2048, .n = 2048, .k = 2048, .type_b = DataType::e5m2}, Scaling::none, Scaling::per_tensor);
  const GemmProblem gradients{.m = 4096, .n = 7168, .k = 32768, .batch = 8, .grouping = Grouping::along_k};
  problems.push_back(gradients);
  problems.back().layout_a = Layout::column_major, problems.back().layout_b = Layout::row_major;
  fp8(gradients, Scaling::per_vector_128, Scaling::per_vector_128);
  problems.back().type_b = DataType::e4m3;
  const GemmProblem experts{.m = 32768, .n = 4096, .k = 4096, .batch = 64, .grouping = Grouping::ragged};
  problems.push_back(experts);
  fp8(experts, Scaling::per_vector_128, Scaling::per_block_128);
  problems.back().type_b = DataType::e4m3;
  problems.push_back({.m = 4096, .n = 6144, .k = 7168, .batch = 32, .grouping = Grouping::masked, .expected_rows = 204});
  problems.push_back({.m = 6907, .n = 4096, .k = 4096, .batch = 64, .grouping = Grouping::general, .expected_rows = 512});
  for (const Scaling of_d : {Scaling::per_tensor, Scaling::per_vector_128})  // few rows of A: the second in fewer kernels than the first
    fp8({.m = 16, .n = 7168, .k = 4096, .type_b = DataType::e4m3, .type_d = DataType::e4m3, .scaling_d = of_d}, Scaling::per_vector_128,
        Scaling::per_block_128);
  return problems;
}

std::string line_for(const GemmProblem& problem, const DeviceSpec& device) {
  const Result<Plan> made = plan(problem, device, {.keep_candidates = false});
  std::ostringstream line;
  line << device.name << " | " << describe(problem) << " | ";
  if (!made) {
    line << made.error().message;
  } else if (made->grid_ctas == 0) {
    line << "nothing to compute";
  } else {
    const SchedulerParams& s = made->scheduler;
    line << name(made->kernel) << " | " << to_string(s.kind) << ' ' << to_string(s.raster) << " cohort " << s.cohort << " | " << s.tiles_m
         << " x " << s.tiles_n << " tiles, grid " << made->grid_ctas;
  }
  return line.str();
}

std::vector<std::string> lines_now() {
  std::vector<std::string> lines;
  for (const DeviceSpec& device : builtin_devices())
    for (const GemmProblem& problem : problems_for_all_devices()) lines.push_back(line_for(problem, device));
  for (const GemmProblem& problem : problems_for_one_device()) lines.push_back(line_for(problem, *find_device("h200")));
  return lines;
}

TEST(PlanGolden, ChoicesAreThoseOnRecord) {
  const std::vector<std::string> now = lines_now();
  if (std::getenv("SLUICE_UPDATE_GOLDEN") != nullptr) {
    std::ofstream file(kFile);
    for (const std::string& line : now) file << line << '\n';
    ASSERT_TRUE(file.flush().good()) << kFile << " cannot be written";
    return;
  }
  std::ifstream file(kFile);
  ASSERT_TRUE(file.good()) << kFile << " cannot be read";
  std::vector<std::string> recorded;
  for (std::string line; std::getline(file, line);) recorded.push_back(line);
  EXPECT_EQ(recorded.size(), now.size());
  for (std::size_t i = 0; i < std::min(recorded.size(), now.size()); ++i)
    EXPECT_EQ(now[i], recorded[i]) << "if this is meant: SLUICE_UPDATE_GOLDEN=1 unit_tests --gtest_filter='PlanGolden.*'";
}

}  // namespace
}  // namespace sluice
