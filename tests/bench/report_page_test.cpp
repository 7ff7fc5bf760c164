#include "bench/report_page.hpp"

#include <algorithm>

#include <gtest/gtest.h>

namespace sluice::bench {
namespace {

std::size_t count(const std::string& text, const std::string& what) {
  std::size_t found = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++found;
  return found;
}

ShapeResult timed(std::int64_t n, double sluice_us, double rival_us, double predicted_us) {
  ShapeResult result{.shape = {"wave", 2048, n, 4096}, .kernel = "a_kernel"};
  result.predicted.total_us = predicted_us;
  result.sluice = {.us = sluice_us, .rounds = 7, .launches_per_graph = 10};
  result.rivals = {{"cublaslt-best", "algorithm 66", {.us = rival_us}}};
  return result;
}

BenchReport report_of(std::vector<ShapeResult> results) {
  return {.environment = {.gpu = "a <GPU>", .commit = "0123"}, .rivals = {"cublaslt-best"}, .results = std::move(results)};
}

std::string plot(const BenchReport& report, const std::string& name) {
  for (const auto& [each, svg] : report_plots(report, find_device("h200").value()))
    if (each == name) return svg;
  return "";
}

const std::vector<ShapeResult> kSweep = {timed(1024, 30, 33, 31), timed(2048, 60, 57, 62), timed(3072, 80, 88, 81),
                                         timed(4096, 110, 99, 100)};

TEST(ReportPage, ThroughputHasAPointForEachShapeAndAMarkForEachFullWave) {
  const std::string svg = plot(report_of(kSweep), "throughput");
  EXPECT_EQ(count(svg, "<circle"), 8u);           // Sluice and its rival
  EXPECT_EQ(count(svg, "stroke-dasharray"), 3u);  // N = 1056, 2112 and 3168: 16 rows of 8.25 tiles are 132
  EXPECT_EQ(count(svg, ">-0<"), 0u);
  EXPECT_EQ(plot(report_of({kSweep[0], kSweep[1]}), "throughput"), "");
}

TEST(ReportPage, RatiosAreSortedTheWorstFirst) {
  const std::string svg = plot(report_of(kSweep), "ratio");
  const std::size_t worst = svg.find("2048x4096x4096: 0.900"), next = svg.find("2048x2048x4096: 0.950"), best = svg.find("1.100");
  ASSERT_NE(worst, std::string::npos);
  EXPECT_LT(worst, next);
  EXPECT_LT(next, best);
}

TEST(ReportPage, WhatWasNotTimedIsLeftOut) {
  std::vector<ShapeResult> results = kSweep;
  results.push_back(timed(5120, 0, 0, 0));
  for (const char* name : {"roofline", "planner"}) {
    const std::string svg = plot(report_of(results), name);
    EXPECT_EQ(count(svg, "<title>2048x"), 4u) << name;
    EXPECT_EQ(count(svg, "nan") + count(svg, "inf"), 0u) << name;
  }
  EXPECT_TRUE(report_plots(report_of({}), find_device("h200").value()).empty());
}

TEST(ReportPage, IsOneFileThatSaysAllNumbers) {
  const std::string page = report_page(report_of(kSweep), find_device("h200").value());
  EXPECT_EQ(count(page, "<svg"), 4u);
  EXPECT_EQ(count(page, "</svg>"), 4u);
  EXPECT_NE(page.find("a &lt;GPU&gt;"), std::string::npos);
  EXPECT_NE(page.find("2048x3072x4096"), std::string::npos);
  EXPECT_EQ(count(page, "http"), 4u);  // the SVGs' name space
}

}  // namespace
}  // namespace sluice::bench
