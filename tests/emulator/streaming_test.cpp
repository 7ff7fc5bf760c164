// What kernels that pass over data once are written in.
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "arch/streaming.cuh"
#include "small_kernels.hpp"

namespace sluice::test {
namespace {

struct alignas(16) Words {
  std::uint32_t words[4];
};

TEST(Streaming, LoadsWhatIsInside) {
  std::vector<Words> data(128);
  for (std::uint32_t i = 0; i < 512; ++i) data[i / 4].words[i % 4] = i;
  expect_right({.threads_per_cta = 128, .buffers = {input("data", data)}}, [&] {
    std::uint32_t words[4] = {9, 9, 9, 9};
    const bool inside = thread() % 3 != 0;
    const Words* const source = data.data() + (inside ? thread() : 1000);  // outside nothing is touched
    arch::load_streaming(source, inside, words);
    for (std::uint32_t i = 0; i < 4; ++i) EXPECT_EQ(words[i], inside ? static_cast<std::uint32_t>(thread()) * 4 + i : 0);
  });
}

TEST(Streaming, LoadsAreCheckedLikeOthers) {
  const std::vector<Words> data(16);
  const emulated::Launch launch{.buffers = {input("data", data)}};
  expect_objection(launch, "reads 16 bytes of global memory outside every operand: byte 256 of data", [&] {
    std::uint32_t words[4];
    arch::load_streaming(data.data() + 16, true, words);
  });
  expect_objection(launch, "reads 16 bytes of data at an address that is not a multiple of that", [&] {
    std::uint32_t words[4];
    arch::load_streaming(reinterpret_cast<const char*>(data.data()) + 8, true, words);
  });
}

TEST(Streaming, BroadcastsFromAnyLane) {
  expect_right({.threads_per_cta = 64}, [] {
    const auto mine = static_cast<float>(arch::lane());
    EXPECT_EQ(arch::from_lane(mine, 7), 7.0f);
    EXPECT_EQ(arch::from_lane(mine, arch::lane() / 8 * 8 + 3), static_cast<float>(arch::lane() / 8 * 8 + 3));
  });
}

TEST(Streaming, TheLargestIsNoNan) {
  const float nan = std::nanf("");
  EXPECT_EQ(arch::maximum(nan, 2.0f), 2.0f);
  EXPECT_EQ(arch::maximum(2.0f, nan), 2.0f);
  EXPECT_EQ(arch::maximum(-1.0f, 3.0f), 3.0f);
  EXPECT_EQ(arch::as_bits(-2.0f), 0xc0000000u);
  EXPECT_EQ(arch::opaque(std::uint32_t{5}), 5u);
}

TEST(Streaming, SiluIsThatOfTheReference) {
  for (const float x : {-100.0f, -3.5f, -0.0f, 0.0f, 1e-30f, 2.0f, 80.0f})
    EXPECT_NEAR(arch::silu(x), x / (1 + std::exp(-static_cast<double>(x))), std::abs(x) * 0x1p-17);
}

TEST(Streaming, FourNumbersMakeAWord) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(arch::pack_e4m3({1.0f, -2.0f, 448.0f, 0.0f}), 0x007ec038u);
  EXPECT_EQ(arch::pack_e4m3({std::nanf(""), 1e9f, -infinity, -0.0f}), 0x80fe7e7fu);
  EXPECT_EQ(arch::pack_e5m2({1.0f, -2.0f, 57344.0f, 0.0f}), 0x007bc03cu);
  EXPECT_EQ(arch::pack_e5m2({std::nanf(""), 1e9f, -infinity, -0.0f}), 0x80fb7b7fu);
}

}  // namespace
}  // namespace sluice::test
