#include "bench/grouped.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace sluice::bench {
namespace {

std::vector<std::string> names(const std::vector<GroupedShape>& shapes) {
  std::vector<std::string> all;
  for (const GroupedShape& shape : shapes) all.push_back(shape.set + " " + to_string(shape));
  return all;
}

GroupedShape ragged(std::vector<std::int32_t> rows, DataType type = DataType::bf16) {
  return {.set = "mine", .type = type, .grouping = Grouping::ragged, .rows = std::move(rows), .n = 256, .k = 384};
}
GroupedShape masked(std::vector<std::int32_t> rows, std::int64_t room, DataType type = DataType::bf16) {
  return {.set = "mine", .type = type, .grouping = Grouping::masked, .rows = std::move(rows), .room = room, .n = 256, .k = 384};
}

TEST(GroupedShapes, EachHasANameOfItsOwn) {
  std::vector<std::string> all = names(grouped_shapes(""));
  EXPECT_EQ(all.front(), "contiguous e4m3 ragged 4x8192x4096x7168");
  EXPECT_EQ(all.back(), "gradients bf16 along-k 64x~512x4096x4096");
  std::sort(all.begin(), all.end());
  EXPECT_EQ(std::adjacent_find(all.begin(), all.end()), all.end()) << *std::adjacent_find(all.begin(), all.end());
}

TEST(GroupedShapes, AreOfTheSetsThatAreNamed) {
  std::map<std::string, int> sets;
  for (const GroupedShape& shape : grouped_shapes("")) ++sets[shape.set];
  const std::map<std::string, int> expected = {{"contiguous", 12}, {"unpadded", 8}, {"experts", 3},    {"masked", 39},
                                               {"skewed", 4},      {"general", 10}, {"gradients", 10}, {"w4", 6}};
  EXPECT_EQ(sets, expected);
}

TEST(GroupedShapes, AreFoundByAPartOfTheirName) {
  EXPECT_EQ(grouped_shapes("contiguous").size(), 12u);
  EXPECT_EQ(names(grouped_shapes("ragged 256x128x")), std::vector<std::string>{"experts e4m3 ragged 256x128x512x7168"});
  EXPECT_EQ(names(grouped_shapes("masked e4m3 masked 1x1024x4096")), std::vector<std::string>{"masked e4m3 masked 1x1024x4096x7168"});
  for (const GroupedShape& shape : grouped_shapes("bf16")) EXPECT_EQ(shape.type, DataType::bf16);
  EXPECT_EQ(grouped_shapes("bf16").size() + grouped_shapes("e4m3").size() + grouped_shapes("int4").size(), grouped_shapes("").size());
  EXPECT_TRUE(grouped_shapes("nonesuch").empty());
}

// Groups of 8 and 24 tokens, weights of 384 x 256.
TEST(GroupedShapes, AlongK) {
  const GroupedShape shape{.set = "mine", .type = DataType::bf16, .grouping = Grouping::along_k, .rows = {8, 24}, .n = 256, .k = 384};
  EXPECT_EQ(to_string(shape), "bf16 along-k 2x~16x256x384");
  EXPECT_EQ(flops(shape), 2.0 * 384 * 256 * 32);
  EXPECT_EQ(bytes(shape), 32.0 * (384 + 256) * 2 + 2.0 * 384 * 256 * 2);
  EXPECT_EQ(group_numbers(shape), (std::vector<std::int32_t>{0, 8, 32}));
  const Result<GemmProblem> grouped = validate(grouped_problem(shape)), dense = validate(dense_problem(shape));
  ASSERT_TRUE(grouped) << grouped.error().message;
  ASSERT_TRUE(dense) << dense.error().message;
  EXPECT_EQ(flops(*grouped), flops(shape));
  EXPECT_EQ(flops(*dense), flops(shape));
}

// Each token goes to eight experts, and the comparison is the same with bf16 weights.
TEST(GroupedShapes, OfWeightsOf4Bits) {
  for (const GroupedShape& shape : grouped_shapes("w4")) {
    const std::int64_t rows = all_rows(shape), touched = std::count_if(shape.rows.begin(), shape.rows.end(), [](auto r) { return r > 0; });
    EXPECT_EQ(rows % (8 * 16), 0);
    EXPECT_LE(*std::max_element(shape.rows.begin(), shape.rows.end()), rows / 8) << "no token goes twice to one";
    const Result<GemmProblem> grouped = validate(grouped_problem(shape)), dense = validate(dense_problem(shape));
    ASSERT_TRUE(grouped) << grouped.error().message;
    ASSERT_TRUE(dense) << dense.error().message;
    EXPECT_EQ(grouped->type_b, DataType::int4);
    EXPECT_EQ(dense->type_b, DataType::bf16);
    EXPECT_EQ(dense->grouping, grouped->grouping);
    const double weights = static_cast<double>(touched * shape.n) * static_cast<double>(shape.k) * (0.5 + 2.0 / 128);
    EXPECT_NEAR(bytes(shape), weights + 2.0 * static_cast<double>(rows * (shape.n + shape.k)), 1e-6 * weights);
  }
}

// The same in FP8: K contiguous in both, and scales of 1 x 128.
TEST(GroupedShapes, AlongKInFp8) {
  const GroupedShape shape{.set = "mine", .type = DataType::e4m3, .grouping = Grouping::along_k, .rows = {128, 384}, .n = 256, .k = 384};
  EXPECT_EQ(to_string(shape), "e4m3 along-k 2x~256x256x384");
  EXPECT_EQ(bytes(shape), 512.0 * (384 + 256) + 4.0 * (384 + 256) * 4 + 2.0 * 384 * 256 * 2);
  EXPECT_EQ(group_numbers(shape), (std::vector<std::int32_t>{0, 128, 512}));
  const Result<GemmProblem> grouped = validate(grouped_problem(shape)), dense = validate(dense_problem(shape));
  ASSERT_TRUE(grouped) << grouped.error().message;
  ASSERT_TRUE(dense) << dense.error().message;
  EXPECT_EQ(flops(*grouped), flops(shape));
  EXPECT_EQ(flops(*dense), flops(shape));
  EXPECT_EQ(scale_elems_a(*grouped), 384 * 4);
  EXPECT_EQ(scale_elems_a(*grouped), scale_elems_a(*dense)) << "both are timed with the same scales";
  for (const GroupedShape& each : grouped_shapes("gradients e4m3"))
    for (const std::int32_t rows : each.rows) EXPECT_EQ(rows % 128, 0) << to_string(each);
  EXPECT_EQ(all_rows(grouped_shapes("gradients e4m3 along-k 64x~").front()), 32768);
}

TEST(GroupedShapes, ShareOutAllTheirRows) {
  const auto rows_of = [](const std::string& filter) { return all_rows(grouped_shapes(filter).front()); };
  EXPECT_EQ(rows_of("contiguous e4m3 ragged 4x8192"), 32768);
  EXPECT_EQ(rows_of("contiguous e4m3 ragged 8x~"), 33464);
  EXPECT_EQ(rows_of("unpadded e4m3 ragged 256x~"), 8157);
  EXPECT_EQ(rows_of("masked e4m3 masked 6x~20x"), 121);
  EXPECT_EQ(rows_of("skewed e4m3 ragged 64x~"), 32768);
  const std::vector<std::int32_t> zipf = grouped_shapes("skewed e4m3 ragged 64x~").front().rows;
  EXPECT_TRUE(std::is_sorted(zipf.rbegin(), zipf.rend() - 1)) << "fewer from group to group";
  EXPECT_GT(zipf.front(), 32768 / 5);
  for (const GroupedShape& shape : grouped_shapes("")) {
    const auto mean = static_cast<double>(all_rows(shape)) / static_cast<double>(shape.rows.size());
    for (const std::int32_t rows : shape.rows) {
      EXPECT_GE(rows, 0);
      EXPECT_TRUE(shape.grouping != Grouping::masked || rows <= shape.room) << to_string(shape);
      const bool about_equal = shape.set == "unpadded" || shape.set == "masked";
      EXPECT_TRUE(!about_equal || std::abs(rows - mean) <= 0.4 * mean + 1) << to_string(shape) << " has a group of " << rows;
    }
  }
}

TEST(GroupedShapes, MakeProblemsThatCanBePlanned) {
  for (const GroupedShape& shape : grouped_shapes("")) {
    for (const GemmProblem& p : {grouped_problem(shape), dense_problem(shape)}) {
      const Result<Plan> made = plan(p, *find_device("h200"), {.keep_candidates = false});
      EXPECT_TRUE(made) << describe(p) << ": " << made.error().message;
    }
    EXPECT_EQ(dense_problem(shape).grouping, shape.type == DataType::int4 ? shape.grouping : Grouping::none);
    EXPECT_EQ(dense_problem(shape).m, shape.grouping == Grouping::along_k ? shape.k : all_rows(shape));
  }
}

TEST(GroupedShapes, GeneralGroupsLieInMemoryAsRaggedOnes) {
  const GroupedShape shape{
      .set = "general", .type = DataType::bf16, .grouping = Grouping::general, .rows = {10, 0, 50}, .n = 256, .k = 512};
  EXPECT_EQ(to_string(shape), "bf16 general 3x~20x256x512");
  EXPECT_EQ(grouped_problem(shape).m, 50) << "the largest";
  EXPECT_EQ(grouped_problem(shape).expected_rows, 20);
  EXPECT_EQ(problem_in_memory(shape).grouping, Grouping::ragged);
  EXPECT_EQ(problem_in_memory(shape).m, 60);
  EXPECT_EQ(group_numbers(shape), (std::vector<std::int32_t>{0, 10, 10, 60}));
  EXPECT_EQ(flops(shape), flops(*validate(problem_in_memory(shape))));
  GroupedShape fp8 = shape;
  fp8.type = DataType::e4m3;
  const Result<GemmProblem> apart = validate(grouped_problem(fp8)), together = validate(problem_in_memory(fp8));
  ASSERT_TRUE(apart) << apart.error().message;
  ASSERT_TRUE(together) << together.error().message;
  EXPECT_EQ(apart->scaling_b, together->scaling_b) << "their scales lie there, too";
  EXPECT_EQ(apart->scale_layout_a, together->scale_layout_a);
  EXPECT_EQ(together->ld_scale_a, 60);
  EXPECT_EQ(together->batch_stride_scale_b, 2 * 4);
}

TEST(GroupedShapes, SayHowManyRowsToExpectWhereThereIsMoreRoom) {
  GemmProblem p = grouped_problem(ragged({10, 30, 20}));
  EXPECT_EQ(p.m, 60);
  EXPECT_EQ(p.batch, 3);
  EXPECT_EQ(p.expected_rows, 0);
  EXPECT_EQ(p.most_rows, 0);
  GroupedShape known = ragged({10, 30, 20});
  known.knows_most = true;
  EXPECT_EQ(grouped_problem(known).most_rows, 30);
  EXPECT_EQ(to_string(known), "bf16 ragged 3x<=20x256x384");
  p = grouped_problem(masked({10, 30, 20}, 64));
  EXPECT_EQ(p.m, 64);
  EXPECT_EQ(p.batch, 3);
  EXPECT_EQ(p.expected_rows, 20);
  EXPECT_EQ(grouped_problem(masked({0, 1, 0}, 64)).expected_rows, 1) << "0 would leave it to be guessed";
  p = grouped_problem(ragged({10, 30, 20}, DataType::e4m3));
  EXPECT_EQ(p.scaling_a, Scaling::per_vector_128);
  EXPECT_EQ(p.scaling_b, Scaling::per_block_128);
}

TEST(GroupedShapes, NumbersAreWhatTheLibraryReads) {
  EXPECT_EQ(group_numbers(ragged({10, 0, 20})), (std::vector<std::int32_t>{0, 10, 10, 30}));
  EXPECT_EQ(group_numbers(masked({10, 0, 20}, 64)), (std::vector<std::int32_t>{10, 0, 20}));
}

TEST(GroupedShapes, CountWorkAndBytesOfTheRowsThatThereAre) {
  for (const GroupedShape& shape : {ragged({10, 0, 20}), masked({10, 0, 20}, 64)}) {
    EXPECT_EQ(flops(shape), 2.0 * 30 * 256 * 384);
    EXPECT_EQ(bytes(shape), 2.0 * (30 * 384 + 2 * 256 * 384 + 30 * 256)) << "the weights of two groups: one has no rows";
  }
  // A byte an element, D in bf16, scales of rows and of blocks of 128.
  EXPECT_EQ(bytes(ragged({10, 0, 20}, DataType::e4m3)), 30 * 384 + 2 * 256 * 384 + 2.0 * 30 * 256 + 4.0 * (30 * 3 + 2 * 2 * 3));
}

GroupedReport report() {
  GroupedReport made{.environment = {.gpu = "a GPU", .commit = "0123"}, .results = {}};
  made.results.push_back({.shape = ragged({10, 0, 20}), .kernel = "a_kernel", .scheduler = "data-parallel"});
  made.results.back().grouped = {.us = 10, .spread = 0.5};
  made.results.back().stream = {.us = 8};
  made.results.back().beside_dense = {.us = 12};
  made.results.back().dense = {.us = 9};
  return made;
}

TEST(GroupedReportText, RatiosAreOverTheGroupedTime) {
  GroupedReport made = report();
  const std::string row = table_row(made.results.front());
  for (const char* piece : {"mine", "bf16 ragged 3x~10x256x384", "10.00", "0.800", "0.750", "a_kernel data-parallel"})
    EXPECT_NE(row.find(piece), std::string::npos) << piece << " is not in " << row;
  EXPECT_EQ(std::count(row.begin(), row.end(), '\n'), 1);
  made.results.front().dense.us = 0;
  EXPECT_EQ(table_row(made.results.front()).find("0.750"), std::string::npos);
  made.results.front().best_us = 5;
  made.results.front().best = "another";
  EXPECT_NE(table_row(made.results.front()).find("2.000  best: another"), std::string::npos);
  EXPECT_NE(table_header(made).find("groups x rows x n x k"), std::string::npos);
  EXPECT_NE(table_footer(made).find("a GPU"), std::string::npos);
}

TEST(GroupedReportText, SaysLoudlyWhatIsWrong) {
  GroupedReport made = report();
  EXPECT_FALSE(any_wrong(made));
  EXPECT_EQ(table_footer(made).find("WRONG"), std::string::npos);
  made.results.front().wrong = "element 3";
  EXPECT_TRUE(any_wrong(made));
  EXPECT_NE(table_row(made.results.front()).find("WRONG: element 3"), std::string::npos);
  EXPECT_NE(table_footer(made).find("WRONG RESULTS"), std::string::npos);
}

TEST(GroupedReportText, JsonHoldsEveryNumber) {
  GroupedReport made = report();
  made.results.push_back({.shape = masked({1, 2}, 8), .wrong = "all of it"});
  const nlohmann::json json = nlohmann::json::parse(to_json(made));
  EXPECT_EQ(json["environment"]["commit"], "0123");
  const nlohmann::json& first = json["results"][0];
  EXPECT_EQ(first["rows"], (std::vector<int>{10, 0, 20}));
  EXPECT_EQ(first["us"], 10.0);
  EXPECT_EQ(first["dense_us"], 9.0);
  EXPECT_EQ(first["beside_dense_us"], 12.0);
  EXPECT_EQ(first["correct"], true);
  EXPECT_FALSE(first.contains("best"));
  const nlohmann::json& second = json["results"][1];
  EXPECT_EQ(second["grouping"], "masked");
  EXPECT_EQ(second["room"], 8);
  EXPECT_EQ(second["wrong"], "all of it");
  EXPECT_FALSE(second.contains("dense_us"));
}

}  // namespace
}  // namespace sluice::bench
