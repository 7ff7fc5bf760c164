#include "bench/floor.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace sluice::bench {
namespace {

TEST(Floor, SizesAreMegabytesOrAll) {
  const Result<std::vector<std::size_t>> all = floor_sizes("all");
  ASSERT_TRUE(all.ok());
  EXPECT_EQ(all->size(), 11u);
  EXPECT_EQ(all->front(), 1'000'000u);
  EXPECT_EQ(all->back(), 1'024'000'000u);
  EXPECT_EQ(*floor_sizes("8.65,242"), (std::vector<std::size_t>{8'650'000, 242'000'000}));
  EXPECT_EQ(*floor_sizes("0.00002"), std::vector<std::size_t>{16}) << "bulk copies take whole 16 bytes";
}

TEST(Floor, AWrongSizeIsNamedWithItsLimits) {
  for (const char* wrong : {"", "1,", "x", "1,2x", "0", "-1", "nan", "1e9"}) {
    const Result<std::vector<std::size_t>> sizes = floor_sizes(wrong);
    ASSERT_FALSE(sizes.ok()) << wrong;
    EXPECT_NE(sizes.error().message.find("16384"), std::string::npos) << sizes.error().message;
  }
}

TEST(Floor, IsReportedAsARate) {
  const FloorReport report{.environment = {.gpu = "a GPU"}, .results = {{.bytes = 8'000'000, .timing = {.us = 4}, .rotating_regions = 20}}};
  EXPECT_EQ(gb_per_s(report.results[0]), 2000);
  EXPECT_EQ(table_header(report).size(), table_row(report.results[0]).size());
  const nlohmann::json json = nlohmann::json::parse(to_json(report));
  EXPECT_EQ(json["environment"]["gpu"], "a GPU");
  EXPECT_EQ(json["results"][0]["bytes"], 8'000'000);
  EXPECT_EQ(json["results"][0]["gb_per_s"], 2000);
}

}  // namespace
}  // namespace sluice::bench
