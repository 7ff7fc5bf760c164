#include "bench/report.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace sluice::bench {
namespace {

ShapeResult timed(std::int64_t m, double sluice_us, double rival_us) {
  ShapeResult result{.shape = {"llm", m, 4096, 4096}, .kernel = "a_kernel"};
  result.sluice = {.us = sluice_us, .rounds = 7, .launches_per_graph = 10};
  result.rivals = {{"cublaslt", "algorithm 66", {.us = rival_us}}};
  return result;
}

BenchReport report_of(std::vector<ShapeResult> results) {
  return {.environment = {.gpu = "a GPU", .commit = "0123"}, .rivals = {"cublaslt"}, .results = std::move(results)};
}

nlohmann::json find_group(const nlohmann::json& summary, const std::string& name) {
  for (const nlohmann::json& group : summary)
    if (group["group"] == name) return group;
  return nullptr;
}

TEST(Report, ARatioAboveOneMeansSluiceIsFaster) {
  const ShapeResult result = timed(64, 10, 12);
  EXPECT_DOUBLE_EQ(ratio(result, result.rivals.front()), 1.2);
  EXPECT_NE(table_row(result, false).find("1.200"), std::string::npos);
}

TEST(Report, SumsUpBySuiteAndByRows) {
  const nlohmann::json json =
      nlohmann::json::parse(to_json(report_of({timed(1, 10, 20), timed(64, 10, 5), timed(512, 10, 9), timed(8192, 10, 10)})));
  EXPECT_NEAR(find_group(json["summary"], "llm")["geometric_mean"].get<double>(), std::pow(2 * 0.5 * 0.9 * 1, 0.25), 1e-12);
  EXPECT_EQ(find_group(json["summary"], "llm m<=128")["geometric_mean"], 1.0);
  EXPECT_EQ(find_group(json["summary"], "llm m<=128")["minimum"], 0.5);
  EXPECT_EQ(find_group(json["summary"], "llm m<=128")["minimum_at"], "64x4096x4096");
  EXPECT_EQ(find_group(json["summary"], "llm 128<m<2048")["geometric_mean"], 0.9);
  EXPECT_EQ(find_group(json["summary"], "llm m>=2048")["shapes"], 1);
}

TEST(Report, ASuiteOfOneClassIsSummedUpOnce) {
  const nlohmann::json json = nlohmann::json::parse(to_json(report_of({timed(1, 10, 20), timed(64, 10, 5)})));
  EXPECT_EQ(json["summary"].size(), 1u);
}

TEST(Report, SaysLoudlyWhatIsWrong) {
  ShapeResult wrong = timed(64, 0, 0);
  wrong.wrong = "3 of 4096 elements wrong";
  const BenchReport report = report_of({timed(1, 10, 10), wrong});
  EXPECT_NE(table_row(wrong, false).find("WRONG: 64x4096x4096: 3 of 4096"), std::string::npos);
  EXPECT_NE(table_footer(report).find("WRONG RESULTS for 1 of 2"), std::string::npos);
  const nlohmann::json json = nlohmann::json::parse(to_json(report));
  EXPECT_EQ(json["results"][0]["correct"], true);
  EXPECT_EQ(json["results"][1]["correct"], false);
  EXPECT_EQ(find_group(json["summary"], "llm")["shapes"], 1);  // what was not timed does not count
}

TEST(Report, SaysWhichRivalCouldNotTakePart) {
  ShapeResult result = timed(3, 10, 0);
  result.rivals = {{"cublaslt", "cuBLASLt has no algorithm for 3x4096x4096", {}}};
  EXPECT_NE(table_row(result, false).find("no rival: cuBLASLt has no algorithm for 3x4096x4096"), std::string::npos);
  const nlohmann::json json = nlohmann::json::parse(to_json(report_of({timed(64, 10, 20), result})));
  EXPECT_EQ(find_group(json["summary"], "llm")["shapes"], 1);
  EXPECT_EQ(json["results"][1]["rivals"]["cublaslt"]["ratio"], 0);
}

TEST(Report, CountsTheBytesOfItsType) {
  ShapeResult result = timed(64, 10, 20);
  result.shape.type = DataType::e4m3;
  const nlohmann::json json = nlohmann::json::parse(to_json(report_of({result})))["results"][0];
  EXPECT_EQ(json["type"], "e4m3");
  EXPECT_NEAR(json["sluice"]["gb_per_s"].get<double>(), bytes(result.shape) / 10e-6 * 1e-9, 1e-9);
}

ShapeResult of_int4(std::int64_t m, double sluice_us, double stream_us) {
  ShapeResult result = timed(m, sluice_us, 30);
  result.shape.suite = "w4a16";
  result.shape.type = DataType::int4;
  result.stream = {.us = stream_us};
  return result;
}

TEST(Report, WeightsOf4BitsHaveAFloor) {
  const ShapeResult memory = of_int4(1, 10, 8), compute = of_int4(1024, 50, 8);
  EXPECT_EQ(floor_us(memory), 8);
  EXPECT_NEAR(floor_us(compute), 2.0 * 1024 * 4096 * 4096 / 869e6, 1e-9) << "869 TFLOP/s takes longer than reading";
  EXPECT_EQ(floor_us(timed(1, 10, 12)), 0);
  BenchReport report = report_of({memory, of_int4(8, 20, 8), compute});
  report.floor = true;
  const nlohmann::json json = nlohmann::json::parse(to_json(report));
  EXPECT_EQ(json["results"][0]["floor"]["us"], 8);
  EXPECT_EQ(json["results"][0]["floor"]["ratio"], 0.8);
  EXPECT_EQ(json["results"][0]["floor"]["stream_us"], 8);
  // Of the rival's own bytes, which are not packed.
  EXPECT_NEAR(json["results"][0]["rivals"]["cublaslt"]["gb_per_s"].get<double>(), bytes({"", 1, 4096, 4096}) / 30e-6 * 1e-9, 1e-9);
  const std::string header = table_header(report), row = table_row(memory, false);
  EXPECT_EQ(header.size(), row.size());
  EXPECT_NE(row.find("8.00  0.800"), std::string::npos) << row;
}

TEST(Report, WeightsOf4BitsAreSummedUpForEachM) {
  BenchReport report = report_of({of_int4(1, 10, 8), of_int4(8, 16, 8), of_int4(8, 32, 8)});
  report.floor = true;
  const nlohmann::json json = nlohmann::json::parse(to_json(report));
  std::vector<std::string> seen;
  for (const nlohmann::json& group : json["summary"])
    if (group["measure"] == "floor / Sluice") seen.push_back(group["group"]);
  EXPECT_EQ(seen, (std::vector<std::string>{"w4a16", "w4a16 m=1", "w4a16 m=8"}));
  EXPECT_NEAR(json["summary"][5]["geometric_mean"].get<double>(), std::sqrt(0.5 * 0.25), 1e-12);
  EXPECT_EQ(json["summary"][5]["minimum"], 0.25);
}

TEST(Report, CarriesWhatANumberBelongsTo) {
  BenchReport report = report_of({timed(64, 8, 8)});
  report.environment.before.sm_clock_mhz = 1980;
  const nlohmann::json json = nlohmann::json::parse(to_json(report));
  EXPECT_EQ(json["environment"]["gpu"], "a GPU");
  EXPECT_EQ(json["environment"]["commit"], "0123");
  EXPECT_EQ(json["environment"]["before"]["sm_clock_mhz"], 1980);
  EXPECT_TRUE(json["environment"]["after"]["power_w"].is_null());
  EXPECT_NEAR(json["results"][0]["sluice"]["gb_per_s"].get<double>(), bytes(report.results[0].shape) / 8e-6 * 1e-9, 1e-9);
  EXPECT_EQ(json["results"][0]["rivals"]["cublaslt"]["detail"], "algorithm 66");
}

TEST(Report, SaysHowLongTurnsWere) {
  BenchReport report = report_of({timed(2048, 10, 10)});
  EXPECT_EQ(table_footer(report).find("in turns of"), std::string::npos);
  report.turn_seconds = 0.2;
  EXPECT_NE(table_footer(report).find("in turns of 0.2 s"), std::string::npos);
  EXPECT_EQ(nlohmann::json::parse(to_json(report))["turn_seconds"], 0.2);
}

TEST(Report, ComparesThePlannersChoiceWithTheBestKernel) {
  ShapeResult result = timed(64, 11, 0);
  result.rivals.clear();
  KernelTiming best{.kernel = "best_kernel", .timing = {.us = 10}}, chosen{.kernel = "a_kernel", .timing = {.us = 11}};
  best.candidate.predicted.total_us = 12.5;
  result.kernels = {best, chosen};
  EXPECT_NEAR(planner_loss(result), 0.1, 1e-12);
  BenchReport report = report_of({result});
  report.planner = true;
  EXPECT_NE(table_row(result, true).find("best_kernel"), std::string::npos);
  const nlohmann::json json = nlohmann::json::parse(to_json(report));
  EXPECT_EQ(json["results"][0]["kernels"][0]["kernel"], "best_kernel");
  EXPECT_EQ(json["results"][0]["kernels"][0]["predicted"]["total_us"], 12.5);
  EXPECT_NEAR(json["summary"][0]["geometric_mean"].get<double>(), 1 / 1.1, 1e-12);
}

ShapeResult planned(const std::string& suite, std::int64_t m, double chosen_us, double best_us) {
  ShapeResult result = timed(m, chosen_us, 0);
  result.shape.suite = suite;
  KernelTiming chosen{.kernel = "a_kernel", .timing = {.us = chosen_us}}, best{.kernel = "b_kernel", .timing = {.us = best_us}};
  chosen.candidate.verdict = CandidateVerdict::chosen;
  best.candidate.scheduler = {.kind = SchedulerKind::split_k, .splits = 4};
  result.kernels = {best, chosen};
  return result;
}

TEST(Report, NamesTheWorstChoicesOfEachSuiteAndOfAll) {
  BenchReport report{.environment = {}, .rivals = {}, .planner = true, .results = {}};
  for (int m = 1; m <= 12; ++m) report.results.push_back(planned("llm", m, 100 + m, 100));
  report.results.push_back(planned("wave", 64, 150, 100));
  report.results.push_back(planned("wave", 65, 100, 100));  // the choice is the best
  const std::vector<const ShapeResult*> worst = worst_choices(report.results);
  ASSERT_EQ(worst.size(), 10u);
  EXPECT_EQ(worst[0]->shape.m, 64);
  EXPECT_EQ(worst[1]->shape.m, 12);
  EXPECT_EQ(worst[9]->shape.m, 4);
  const nlohmann::json json = nlohmann::json::parse(to_json(report));
  EXPECT_EQ(json["worst_choices"]["llm"].size(), 10u);
  EXPECT_EQ(json["worst_choices"]["wave"].size(), 1u);
  const nlohmann::json& first = json["worst_choices"]["all"][0];
  EXPECT_EQ(first["loss"], 0.5);
  EXPECT_EQ(first["best"], (nlohmann::json{{"kernel", "b_kernel"}, {"scheduler", "split-k"}, {"splits", 4}, {"us", 100.0}}));
  EXPECT_EQ(first["chosen"]["kernel"], "a_kernel");
  EXPECT_EQ(find_group(json["summary"], "all")["shapes"], 14);
  EXPECT_NEAR(find_group(json["summary"], "wave")["geometric_mean"].get<double>(), std::sqrt(100 / 150.0), 1e-12);
  EXPECT_NE(table_footer(report).find("b_kernel, split-k 4"), std::string::npos);
  EXPECT_NE(table_footer(report).find("all: furthest from the best"), std::string::npos);
}

TEST(Report, AWrongKernelIsNoBestOne) {
  ShapeResult result = planned("llm", 1, 20, 10);
  for (KernelTiming& kernel : result.kernels) kernel.wrong = "NaN";
  EXPECT_LT(planner_loss(result), 0);
  EXPECT_TRUE(worst_choices({result}).empty());
}

TEST(Report, TableColumnsLineUp) {
  const BenchReport report = report_of({timed(64, 10, 12)});
  const std::string header = table_header(report), row = table_row(report.results[0], false);
  EXPECT_EQ(header.find("ratio") + 5, row.find("1.200") + 5);
}

}  // namespace
}  // namespace sluice::bench
