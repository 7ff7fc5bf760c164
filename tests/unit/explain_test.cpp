// explain() must say what an expert asks: the roofs, every candidate's parts, and what each loser loses by.
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "sluice/plan.hpp"

namespace sluice {
namespace {

Plan plan_for(const GemmProblem& problem, const char* on = "h200", const PlanOptions& options = {}) {
  const Result<Plan> made = plan(problem, *find_device(on), options);
  EXPECT_TRUE(made.ok()) << made.error().message;
  return made.ok() ? *made : Plan{};
}

void expect_says(const std::string& text, const std::string& piece) {
  EXPECT_NE(text.find(piece), std::string::npos) << "'" << piece << "' is not in:\n" << text;
}
void expect_silent(const std::string& text, const std::string& piece) {
  EXPECT_EQ(text.find(piece), std::string::npos) << "'" << piece << "' is in:\n" << text;
}

std::vector<std::string> rows(const std::string& text) {
  std::vector<std::string> found;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    if (std::regex_search(line, std::regex("^ *[0-9]+  (bf16|fp16|e4m3)_"))) found.push_back(line);
  return found;
}

// A plan whose figures are set by hand, so that the words do not hang on the cost model: the winner, and one loser.
Plan duel(const PredictedTime& winner, const PredictedTime& loser) {
  Plan made = plan_for({.m = 4096, .n = 4096, .k = 4096});
  made.candidates.resize(2);
  made.candidates[0].predicted = made.predicted = winner;
  made.candidates[1].predicted = loser;
  return made;
}

constexpr PredictedTime kWinner{.launch_us = 2,
                                .matrix_us = 100,
                                .hbm_us = 20,
                                .l2_us = 50,
                                .ramp_us = 1,
                                .exposed_epilogue_us = 2,
                                .total_us = 105,
                                .waves = 1.95,
                                .useful_share = 1,
                                .busy_share = 0.975};

std::string why(PredictedTime loser) {
  loser.total_us = loser.launch_us + std::max({loser.matrix_us, loser.hbm_us, loser.l2_us}) + loser.ramp_us + loser.exposed_epilogue_us +
                   loser.reduction_us + loser.learnt_us + loser.power_us;
  const std::vector<std::string> found = rows(explain(duel(kWinner, loser)));
  EXPECT_EQ(found.size(), 2u);
  return found.empty() ? std::string() : found.back();
}

TEST(Explain, HeaderHoldsProblemDeviceAndRoofs) {
  Plan made = plan_for({.m = 4096, .n = 2048, .k = 1024});
  made.predicted.l2_us = 12;
  const std::string text = explain(made);
  expect_says(text, "4096 x 2048 x 1024 bf16 -> bf16, A row-major, B column-major");
  expect_says(text, "h200: 132 SMs");
  // 2 * 4096 * 2048 * 1024 FLOP over 2 * (4096 * 1024 + 1024 * 2048 + 4096 * 2048) bytes
  expect_says(text, "17.2 GFLOP");
  expect_says(text, "29.4 MB");
  expect_says(text, "585.1 FLOP/B");
  // 132 SMs * 4096 FLOP * 1.755 GHz = 948.9 TFLOP/s; 29.4 MB at 4650 GB/s
  expect_says(text, "949 TFLOP/s");
  expect_says(text, "FLOP 18.11 us");
  expect_says(text, "HBM 6.31 us, L2 12.00 us");
  expect_says(text, "FLOP binds");
  made.predicted.l2_us = 19;
  expect_says(explain(made), "L2 binds");
}

// The tensor cores take FP8 at twice the rate, and no plan is faster than they are.
TEST(Explain, RoofsOfFp8) {
  Plan made = plan_for({.m = 4096, .n = 2048, .k = 1024, .type_a = DataType::e4m3, .type_b = DataType::e5m2});
  made.predicted.l2_us = 5;
  made.predicted.total_us = 18.11;
  const std::string text = explain(made);
  expect_says(text, "1.9 PFLOP/s dense 8-bit");
  expect_says(text, "23.1 MB");
  expect_says(text, "turns from memory to matrix at 408");
  expect_says(text, "FLOP 9.05 us, HBM 4.96 us");
  expect_says(text, "50% of the binding roof");
}

TEST(Explain, TheMemoryRoofBindsAtSmallM) {
  Plan made = plan_for({.m = 1, .n = 8192, .k = 8192});
  made.predicted.l2_us = 1;
  const std::string text = explain(made);
  expect_says(text, "HBM binds");
  expect_silent(text, "FLOP binds");
}

// What is read once, what is read again: a repeated B counts once, beta reads C.
TEST(Explain, BytesThatMoveOnce) {
  GemmProblem p{.m = 1000, .n = 1000, .k = 1000, .batch = 10};
  expect_says(explain(plan_for(p)), "60 MB");
  p.batch_stride_b = 0;
  expect_says(explain(plan_for(p)), "42 MB");
  p.epilogue.beta = 1;
  expect_says(explain(plan_for(p)), "62 MB");
}

TEST(Explain, OneRowPerCandidateInOrder) {
  const Plan made = plan_for({.m = 1000, .n = 3000, .k = 512});
  const auto able = std::count_if(made.candidates.begin(), made.candidates.end(), [](const Candidate& c) {
    return c.verdict == CandidateVerdict::chosen || c.verdict == CandidateVerdict::slower;
  });
  const std::vector<std::string> all = rows(explain(made, 1000));
  ASSERT_EQ(static_cast<std::ptrdiff_t>(all.size()), able);
  for (std::size_t i = 0; i < all.size(); ++i) {
    expect_says(all[i], name(made.candidates[i].kernel) + " ");
    if (i > 0) expect_silent(all[i], "  chosen");
  }
  expect_says(all.front(), "  chosen");
}

TEST(Explain, ShowsAsManyAsAsked) {
  const Plan made = plan_for({.m = 1000, .n = 3000, .k = 512});
  EXPECT_EQ(rows(explain(made, 3)).size(), 3u);
  expect_says(explain(made, 3), "slower ones, up to");
  EXPECT_EQ(rows(explain(made, 0)).size(), 1u);
  EXPECT_EQ(rows(explain(made, -5)).size(), 1u);
  EXPECT_EQ(rows(explain(made)).size(), 12u);
  expect_silent(explain(made, 1000), "slower ones");
}

TEST(Explain, GridIsThatOfThePlan) {
  for (const char* on : {"h200", "h10"})
    for (const GemmProblem& p : {GemmProblem{.m = 1000, .n = 3000, .k = 512}, GemmProblem{.m = 16, .n = 64, .k = 64}}) {
      const Plan made = plan_for(p, on);
      const std::vector<std::string> found = rows(explain(made));
      ASSERT_FALSE(found.empty());
      EXPECT_TRUE(std::regex_search(found.front(), std::regex("cohort +[0-9]+ +" + std::to_string(made.grid_ctas) + " "))) << found.front();
    }
}

TEST(Explain, APartialLastWave) {
  PredictedTime loser = kWinner;
  loser.matrix_us = 150;
  loser.waves = 2.12;
  loser.busy_share = 0.65;
  expect_says(why(loser), "third wave 12% full");
  expect_says(why(loser), "+48%");
}

TEST(Explain, Padding) {
  PredictedTime loser = kWinner;
  loser.matrix_us = 100 / 0.66;
  loser.useful_share = 0.66;
  expect_says(why(loser), "34% of the tiles is padding");
  expect_silent(why(loser), "wave");
}

TEST(Explain, TrafficThroughL2) {
  PredictedTime loser = kWinner;
  loser.l2_us = 105;
  loser.matrix_us = 90;
  expect_says(why(loser), "fetches 2.1x the bytes through L2");
}

TEST(Explain, ASlowerTile) {
  PredictedTime loser = kWinner;
  loser.matrix_us = 200;
  expect_says(why(loser), "tensor cores 2.00x less busy");
}

TEST(Explain, AnExposedEpilogue) {
  PredictedTime loser = kWinner;
  loser.exposed_epilogue_us = 12.5;
  expect_says(why(loser), "12.50 us of epilogue not hidden");
  expect_says(why(loser), "+10%");
}

TEST(Explain, ALongerRamp) {
  PredictedTime loser = kWinner;
  loser.ramp_us = 3;
  expect_says(why(loser), "3.00 us until the first wgmma");
}

TEST(Explain, PiecesToBeBroughtTogether) {
  PredictedTime loser = kWinner;
  loser.reduction_us = 4;
  expect_says(why(loser), "4.00 us for bringing pieces together");
}

// What a row shows under a heading: headings and figures end in the same column.
std::string figure(const std::string& text, const std::string& row, const std::string& heading) {
  const std::size_t head = text.find("rank  kernel"), at = text.find(" " + heading + " ", head);
  if (head == std::string::npos || at == std::string::npos) return "no heading " + heading;
  const std::size_t end = at - head + 1 + heading.size(), begin = row.rfind(' ', end - 1) + 1;
  return row.substr(begin, row.find_first_of("* ", begin) - begin);
}

TEST(Explain, ThePartsOfARowAddUpToItsTotal) {
  PredictedTime loser = kWinner;
  loser.reduction_us = 4.25;
  loser.learnt_us = -1.5;
  loser.power_us = 3.5;
  loser.total_us = 2 + 100 + 1 + 2 + 4.25 - 1.5 + 3.5;
  const std::string text = explain(duel(kWinner, loser)), row = rows(text).back();
  expect_says(text, "total = launch + matrix, hbm and l2 overlapping (*: the longest) + ramp + reduction + epilogue + learnt + power");
  for (const auto& [heading, us] : {std::pair{"total", "111.25"},
                                    {"launch", "2.00"},
                                    {"matrix", "100.00"},
                                    {"hbm", "20.00"},
                                    {"l2", "50.00"},
                                    {"ramp", "1.00"},
                                    {"reduction", "4.25"},
                                    {"epilogue", "2.00"},
                                    {"learnt", "-1.50"},
                                    {"power", "3.50"}})
    EXPECT_EQ(figure(text, row, heading), us) << heading << " in\n" << text;
  EXPECT_EQ(figure(text, rows(text).front(), "reduction"), "0.00") << text;
}

TEST(Explain, WhatWasLearntIsACause) {
  PredictedTime loser = kWinner;
  loser.learnt_us = 7.5;
  expect_says(why(loser), "measured times of their like say 7.50 us more beside the chosen one");
}

TEST(Explain, ThePowerLimitIsACause) {
  PredictedTime loser = kWinner;
  loser.power_us = 2.5;
  expect_says(why(loser), "2.50 us more at the power limit");
}

TEST(Explain, TheLargerCauseComesFirst) {
  PredictedTime loser = kWinner;
  loser.exposed_epilogue_us = 12;
  loser.l2_us = 120;
  const std::string row = why(loser);
  const std::size_t l2 = row.find("through L2"), epilogue = row.find("epilogue not hidden");
  ASSERT_NE(l2, std::string::npos) << row;
  ASSERT_NE(epilogue, std::string::npos) << row;
  EXPECT_LT(l2, epilogue);
}

// A cause that is a small part of the delay would only distract.
TEST(Explain, SmallCausesAreLeftOut) {
  PredictedTime loser = kWinner;
  loser.exposed_epilogue_us = 2.5;
  loser.l2_us = 120;
  expect_silent(why(loser), "epilogue not hidden");
}

TEST(Explain, Ties) {
  expect_says(why(kWinner), "predicted equal; the chosen one stands earlier");
  PredictedTime loser = kWinner;
  loser.l2_us = 60;
  expect_says(why(loser), "predicted equal, but fetches 1.2x the bytes through L2");
}

TEST(Explain, TheBindingPartCarriesAStar) {
  expect_says(why(kWinner), "100.00*");
  expect_silent(why(kWinner), "50.00*");
}

TEST(Explain, RealLosersAllHaveAReason) {
  for (const char* on : {"h200", "h20", "h10"})
    for (const GemmProblem& p : {GemmProblem{.m = 4096, .n = 4096, .k = 4096}, GemmProblem{.m = 16, .n = 8192, .k = 4096},
                                 GemmProblem{.m = 1100, .n = 1100, .k = 8192}, GemmProblem{.m = 64, .n = 64, .k = 64}})
      expect_silent(explain(plan_for(p, on), 1000), "several parts");
}

TEST(Explain, ThoseThatCannotRunAreCounted) {
  const auto not_bf16_rc = std::count_if(kernel_list().begin(), kernel_list().end(), [](const KernelConfig& k) {
    return k.type_a != DataType::bf16 || k.type_b != DataType::bf16 || k.layout_a != Layout::row_major ||
           k.layout_b != Layout::column_major;
  });
  GemmProblem p{.m = 256, .n = 256, .k = 256};
  expect_says(explain(plan_for(p)), std::to_string(not_bf16_rc) + " kernels: compiled for another type or layout");
  expect_silent(explain(plan_for(p)), "excluded");
  p.alignment_a_bytes = 2;
  expect_says(explain(plan_for(p)), "not a multiple of 16 bytes");
  p.alignment_a_bytes = 16;
  expect_says(explain(plan_for(p, "h200", {.schedule = KernelSchedule::pingpong})), "excluded by the plan's options");
}

TEST(Explain, NothingToCompute) {
  const std::string text = explain(plan_for({.m = 0, .n = 64, .k = 64}));
  expect_says(text, "nothing to compute");
  EXPECT_TRUE(rows(text).empty());
  expect_says(to_string(plan_for({.m = 0, .n = 64, .k = 64})), "nothing to compute");
}

TEST(Explain, WithoutCandidates) {
  const std::string text = explain(plan_for({.m = 64, .n = 64, .k = 64}, "h200", {.keep_candidates = false}));
  expect_says(text, "chosen   bf16_rc_");
  expect_says(text, "keep_candidates");
}

TEST(Explain, TheShortFormIsAFewLines) {
  const Plan made = plan_for({.m = 4096, .n = 4096, .k = 4096});
  const std::string text = to_string(made);
  EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 6);
  expect_says(text, name(made.kernel));
  expect_says(text, "h200");
  expect_says(text, std::to_string(made.grid_ctas) + " CTAs");
  expect_says(text, "predicted");
}

}  // namespace
}  // namespace sluice
