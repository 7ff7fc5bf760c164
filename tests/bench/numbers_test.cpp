#include <gtest/gtest.h>

#include "bench/environment.hpp"
#include "bench/sizing.hpp"
#include "bench/statistics.hpp"

namespace sluice::bench {
namespace {

constexpr std::size_t kL2 = 60u << 20;
constexpr std::size_t kMemory = std::size_t{100} << 30;

TEST(Statistics, MedianOfOddAndEvenCounts) {
  EXPECT_EQ(median({}), 0);
  EXPECT_EQ(median({3, 1, 2}), 2);
  EXPECT_EQ(median({4, 1, 2, 3}), 2.5);
}

TEST(Statistics, GeometricMeanAndMinimum) {
  EXPECT_EQ(geometric_mean({}), 0);
  EXPECT_DOUBLE_EQ(geometric_mean({2, 8}), 4);
  EXPECT_EQ(minimum({2, 0.5, 8}), 0.5);
}

TEST(Statistics, SpreadIsHalfTheQuartileDistanceOverTheMedian) {
  EXPECT_EQ(relative_spread({5, 5, 5}), 0);
  EXPECT_DOUBLE_EQ(relative_spread({8, 9, 10, 11, 12}), 0.1);
}

TEST(Sizing, SetsMakeManyTimesTheCache) {
  for (const Shape& shape : {Shape{"", 512, 512, 512}, Shape{"", 16, 4096, 4096}, Shape{"", 128, 128, 16384}}) {
    const SetBytes bytes(shape);
    EXPECT_GT(static_cast<std::size_t>(rotating_set_count(shape, kL2, kMemory)) * (bytes.a + bytes.b + bytes.d), kRotatingCaches * kL2)
        << to_string(shape);
  }
}

TEST(Sizing, Fp8TakesOneByteAndItsScales) {
  const SetBytes bytes({"", 128, 4096, 7168, DataType::e4m3}), of_bf16({"", 128, 4096, 7168});
  EXPECT_EQ(bytes.a, of_bf16.a / 2);
  EXPECT_EQ(bytes.b, of_bf16.b / 2);
  EXPECT_EQ(bytes.d, of_bf16.d);
  EXPECT_EQ(bytes.scale_a, 128u * 56 * 4);
  EXPECT_EQ(bytes.scale_b, 32u * 56 * 4);
  EXPECT_EQ(bytes.all(), bytes.a + bytes.b + bytes.d + bytes.scale_a + bytes.scale_b);
  EXPECT_EQ(of_bf16.scales(), 0u);
  EXPECT_EQ(SetBytes({"", 128, 4096, 16, DataType::e4m3}).scale_b, 1024u) << "32 blocks, 4 scales apart, and padded";
}

TEST(Sizing, PackedWeightsMakeManyTimesTheCacheByThemselves) {
  const Shape shape{"", 1024, 4096, 4096, DataType::int4};
  const SetBytes bytes(shape), of_bf16({"", 1024, 4096, 4096});
  EXPECT_EQ(bytes.a, of_bf16.a);
  EXPECT_EQ(bytes.b, 4096u * 4096 / 2 + 4096u * 32 * 2) << "codes and scales";
  EXPECT_EQ(bytes.dense_b, of_bf16.b);
  EXPECT_EQ(of_bf16.dense_b + of_bf16.codes + of_bf16.code_scales, 0u);
  const int sets = rotating_set_count(shape, kL2, kMemory);
  EXPECT_GT(static_cast<std::size_t>(sets) * bytes.b, kRotatingCaches * kL2);
  const std::size_t once = bytes.d + bytes.codes + bytes.code_scales;
  EXPECT_EQ(rotating_set_count(shape, kL2, once + 2 * (bytes.all() + bytes.dense_b)), 2) << "the rival's weights take memory too";
  const SetBytes beside_e4m3({"", 1024, 4096, 4096, DataType::int4, DataType::e4m3});
  EXPECT_EQ(beside_e4m3.b, bytes.b);
  EXPECT_EQ(beside_e4m3.code_scales, bytes.code_scales);
  EXPECT_EQ(2 * beside_e4m3.dense_b, bytes.dense_b);
  EXPECT_EQ(2 * beside_e4m3.a, bytes.a);
  EXPECT_GE(rotating_set_count({"", 16, 12, 64, DataType::int4}, kL2, kMemory), 1) << "refused later, with its reason";
}

TEST(Sizing, TwoSetsAtLeastAndAThousandAtMost) {
  EXPECT_EQ(rotating_set_count({"", 16384, 16384, 16384}, kL2, kMemory), 2);
  EXPECT_EQ(rotating_set_count({"", 1, 8, 8}, kL2, kMemory), 1024);
}

TEST(Sizing, MemoryBoundsTheSets) {
  const Shape shape{"", 16384, 16384, 16384};  // 512 MB each of A, B, D
  EXPECT_EQ(rotating_set_count(shape, kL2, std::size_t{2048} << 20), 1);
  EXPECT_EQ(rotating_set_count(shape, kL2, std::size_t{2047} << 20), 0);
}

TEST(Sizing, GraphsHoldEverySetAndAboutTheirTime) {
  EXPECT_EQ(launches_for(10, 3, 2000), 200);
  EXPECT_EQ(launches_for(10, 500, 2000), 500);
  EXPECT_EQ(launches_for(1500, 2, 2000), 4);
  EXPECT_EQ(launches_for(12000, 2, 2000), 2);
  EXPECT_EQ(launches_for(0, 1, 2000), 4000);
}

TEST(Sizing, RoundsFillTheSeconds) {
  EXPECT_EQ(rounds_within(0.3, 1e6), 7);
  EXPECT_EQ(rounds_within(0.3, 20e3), 15);
  EXPECT_EQ(rounds_within(0.3, 6e3), 25);
  EXPECT_EQ(rounds_within(0.3, 6e3, 0, 2e5), 3);
  EXPECT_EQ(rounds_within(0.3, 6e3, 9, 2e5), 9);
}

TEST(GpuState, IsReadFromTheToolsLine) {
  const GpuState state = parse_gpu_state("1980, 3201, 214.55, 38");
  EXPECT_EQ(state.sm_clock_mhz, 1980);
  EXPECT_EQ(state.memory_clock_mhz, 3201);
  EXPECT_EQ(state.power_w, 214.55);
  EXPECT_EQ(state.temperature_c, 38);
}

TEST(GpuState, WhatIsNotToldStaysEmpty) {
  const GpuState state = parse_gpu_state("1980, [N/A], [Not Supported], 40");
  EXPECT_EQ(state.sm_clock_mhz, 1980);
  EXPECT_FALSE(state.memory_clock_mhz.has_value());
  EXPECT_FALSE(state.power_w.has_value());
  EXPECT_EQ(state.temperature_c, 40);
  EXPECT_FALSE(parse_gpu_state("").sm_clock_mhz.has_value());
}

}  // namespace
}  // namespace sluice::bench
