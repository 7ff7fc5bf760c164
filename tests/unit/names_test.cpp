// Every enumerator has a name of its own that reads back.
#include <gtest/gtest.h>

#include <optional>
#include <set>
#include <string>

#include "sluice/kernel_config.hpp"
#include "sluice/kernel_list.hpp"
#include "sluice/plan.hpp"
#include "sluice/scaling.hpp"
#include "sluice/schedule.hpp"
#include "sluice/types.hpp"
#include "sluice/version.hpp"

namespace sluice {
namespace {

template <class Enum, class Parse>
void expect_round_trip(int count, Parse parse) {
  std::set<std::string> seen;
  for (int i = 0; i < count; ++i) {
    const std::string text = to_string(static_cast<Enum>(i));
    EXPECT_NE(text, "?") << "enumerator " << i;
    EXPECT_TRUE(seen.insert(text).second) << text << " names two enumerators";
    EXPECT_EQ(parse(text), static_cast<Enum>(i)) << text;
  }
  EXPECT_STREQ(to_string(static_cast<Enum>(count)), "?");
  for (const char* wrong : {"", " ", "?", "Bf16", "row", "none "}) EXPECT_EQ(parse(wrong), std::nullopt) << wrong;
}

TEST(Names, ReadBack) {
  expect_round_trip<DataType>(6, parse_data_type);
  expect_round_trip<Grouping>(5, parse_grouping);
  expect_round_trip<Scaling>(5, parse_scaling);
  expect_round_trip<Layout>(2, parse_layout);
  expect_round_trip<Activation>(4, parse_activation);
  expect_round_trip<Bias>(4, parse_bias);
  expect_round_trip<SchedulerKind>(5, parse_scheduler);
  expect_round_trip<WorkClaim>(2, parse_work_claim);
  expect_round_trip<Reduction>(3, parse_reduction);
  expect_round_trip<Determinism>(3, parse_determinism);
  expect_round_trip<Rasterization>(2, parse_rasterization);
  expect_round_trip<KernelSchedule>(4, parse_kernel_schedule);
  expect_round_trip<OperandOrder>(2, parse_operand_order);
  expect_round_trip<LoadPath>(2, parse_load_path);
  expect_round_trip<CandidateVerdict>(11, parse_verdict);
}

TEST(Names, ErrorCodes) {
  std::set<std::string> seen;
  for (int code = 1; code <= static_cast<int>(ErrorCode::internal); ++code) {
    const std::string text = to_string(static_cast<ErrorCode>(code));
    EXPECT_NE(text, "?") << code;
    EXPECT_TRUE(seen.insert(text).second) << text;
  }
  EXPECT_STREQ(to_string(static_cast<ErrorCode>(0)), "?");
}

TEST(Names, KernelNamesAreUniqueAndStable) {
  std::set<std::string> seen;
  for (const KernelConfig& kernel : kernel_list()) EXPECT_TRUE(seen.insert(name(kernel)).second) << name(kernel) << " is in the list twice";
  EXPECT_EQ(name({.tile_m = 128, .tile_n = 256, .cluster_m = 2}), "bf16_rc_coop_128x256x64_c2x1");
  EXPECT_EQ(name({.type_a = DataType::fp16,
                  .type_b = DataType::fp16,
                  .layout_a = Layout::column_major,
                  .layout_b = Layout::row_major,
                  .schedule = KernelSchedule::pingpong,
                  .order = OperandOrder::columns_of_b,
                  .load = LoadPath::threads,
                  .tile_m = 64,
                  .tile_n = 32,
                  .cluster_n = 2}),
            "fp16_cr_ping_64x32x64_c1x2_swap_anyalign");
}

TEST(Names, KernelsOfTwoTypesNameBoth) {
  KernelConfig kernel{.type_a = DataType::e4m3, .type_b = DataType::e4m3, .tile_m = 128, .tile_n = 128, .tile_k = 128};
  EXPECT_EQ(name(kernel), "e4m3_rc_coop_128x128x128_c1x1");
  kernel.type_b = DataType::e5m2;
  EXPECT_EQ(name(kernel), "e4m3xe5m2_rc_coop_128x128x128_c1x1");
}

TEST(Names, VersionIsTheMacros) {
  EXPECT_EQ(version(),
            std::to_string(SLUICE_VERSION_MAJOR) + "." + std::to_string(SLUICE_VERSION_MINOR) + "." + std::to_string(SLUICE_VERSION_PATCH));
}

}  // namespace
}  // namespace sluice
