// Packing weights of 4 bits: round trips beside a naive decode, the layout beside wgmma's definition, and what is refused.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "sluice/w4.hpp"

#include "core/streaming_layout.hpp"
#include "refused.hpp"
#include "w4_data.hpp"

namespace sluice {
namespace {

using namespace test;

W4Packed packed(const W4Weights& w) {
  W4Packed to = room_for(w.problem);
  const W4Stored stored = store_w4_weights(w);
  const Status status = pack_w4_on_cpu(w.problem, arguments_of(w, stored, to));
  EXPECT_TRUE(status.ok()) << status.error().message;
  return to;
}

std::vector<float> unpacked(const PackW4Problem& p, const W4Packed& from) {
  const Result<std::vector<float>> weights = unpacked_w4(p, from.data());
  EXPECT_TRUE(weights.ok()) << weights.error().message;
  return weights ? *weights : std::vector<float>(static_cast<std::size_t>(p.n * p.k));
}

// Every source, group size, kind of zero points and type over odd shapes: f(problem, seed).
void for_each_problem(const std::function<void(const PackW4Problem&, std::uint64_t)>& f) {
  struct Shape {
    std::int64_t n, k;
  };
  std::uint64_t seed = 0;
  for (const W4Source source : {W4Source::plain, W4Source::gptq, W4Source::awq})
    for (const int group_size : {0, 32, 64, 128})
      for (const bool zero_points : {false, true})
        for (const Shape shape : {Shape{8, 8}, {8, 16}, {64, 128}, {200, 304}, {128, 256}, {72, 1040}, {136, 512}}) {
          PackW4Problem p{.n = shape.n, .k = shape.k, .format = {.group_size = group_size, .zero_points = zero_points}, .source = source};
          if (group_size > 0 && p.k % group_size != 0 && p.k % 16 != 0) continue;
          ++seed;
          p.type = std::vector{DataType::bf16, DataType::fp16, DataType::e4m3}[seed / 3 % 3];
          p.type_scales = std::vector{DataType::bf16, DataType::fp16, DataType::fp32}[seed % 3];
          p.zeros_less_one = seed % 5 != 0;
          f(p, seed);
        }
}

TEST(PackW4, GivesBackWhatTheSourceMeans) {
  for_each_problem([](const PackW4Problem& p, std::uint64_t seed) {
    for (const bool reordered : {false, true}) {
      const W4Weights w = random_w4_weights(p, reordered, seed);
      const std::vector<float> got = unpacked(p, packed(w));
      for (std::int64_t c = 0; c < p.n; ++c)
        for (std::int64_t k = 0; k < p.k; ++k)
          ASSERT_EQ(got[static_cast<std::size_t>(c * p.k + k)], w.weight(c, k)) << describe(p) << ", column " << c << ", element " << k;
    }
  });
}

// PTX ISA, "Register Fragments for wgmma.mma_async.m64nNk16", matrix A: thread t has in register r, half h, row
// 16 (t / 32) + t % 32 / 4 + 8 (r % 2) and column 2 (t % 4) + h + 8 (r / 2). A thread takes 16 bytes for four steps of 16 of K, and
// register r of a step by shifting its word by 4 r: the halves lie 16 bits apart.
TEST(PackW4, CodesLieAsWgmmaTakesThem) {
  for (const W4Format format : {W4Format{.group_size = 128}, {.group_size = 64, .zero_points = true}, {.group_size = 32}}) {
    const W4Weights w = random_w4_weights({.n = 256, .k = 512, .format = format}, false, 3);
    const W4Packed all = packed(w);
    const std::int64_t slab_bytes = packed_w4_bytes(256, 512, format) / (4 * 4);
    const int groups = 128 / format.group_size;
    ASSERT_EQ(slab_bytes, 4096 + groups * (128 + (format.zero_points ? 64 : 0)));
    for (std::int64_t block = 0; block < 4; ++block)
      for (std::int64_t slab = 0; slab < 4; ++slab) {
        const std::uint8_t* const bytes = bytes_of(all) + (block * 4 + slab) * slab_bytes;
        for (int step = 0; step < 8; ++step)
          for (int t = 0; t < 128; ++t) {
            std::uint32_t word = 0;
            std::memcpy(&word, bytes + step / 4 * 2048 + t * 16 + step % 4 * 4, sizeof word);
            for (int r = 0; r < 4; ++r)
              for (int h = 0; h < 2; ++h) {
                const std::int64_t column = block * 64 + t / 32 * 16 + t % 32 / 4 + 8 * (r % 2);
                const std::int64_t k = slab * 128 + step * 16 + 2 * (t % 4) + h + 8 * (r / 2);
                ASSERT_EQ(static_cast<int>(word >> (4 * r) >> (16 * h) & 15), w.q[static_cast<std::size_t>(column * 512 + k)]);
              }
          }
        for (int group = 0; group < groups; ++group)
          for (int t = 0; t < 128; ++t)
            for (int row = 0; row < 2; ++row) {  // the two of a thread, neighbours
              const int place = (t / 32 * 8 + t % 32 / 4) * 2 + row;
              const std::int64_t column = block * 64 + t / 32 * 16 + t % 32 / 4 + 8 * row;
              const auto of_group = static_cast<std::size_t>(column * w.groups + slab * groups + group);
              std::uint16_t scale = 0;
              std::memcpy(&scale, bytes + 4096 + group * 128 + place * 2, sizeof scale);
              ASSERT_EQ(scale, to_bf16_bits(w.s[of_group]));
              if (!format.zero_points) continue;
              ASSERT_EQ(bytes[4096 + groups * 128 + group * 64 + place], w.z[of_group]);
            }
      }
  }
}

// The same beside activations of 8 bits: "Register Fragments for wgmma.mma_async.m64nNk32". Thread t has in byte b of register r row
// 16 (t / 32) + t % 32 / 4 + 8 (r % 2) and column 4 (t % 4) + b + 16 (r / 2). Each word of its 16 bytes holds two registers' codes.
TEST(PackW4, CodesLieAsWgmmaOf8BitsTakesThem) {
  const W4Weights w = random_w4_weights({.n = 128, .k = 256, .format = {.group_size = 128}, .type = DataType::e4m3}, false, 4);
  const W4Packed all = packed(w);
  const std::int64_t slab_bytes = packed_w4_bytes(128, 256, w.problem.format) / (2 * 2);
  for (std::int64_t block = 0; block < 2; ++block)
    for (std::int64_t slab = 0; slab < 2; ++slab) {
      const std::uint8_t* const bytes = bytes_of(all) + (block * 2 + slab) * slab_bytes;
      for (int step = 0; step < 4; ++step)
        for (int t = 0; t < 128; ++t)
          for (int r = 0; r < 4; ++r) {
            std::uint32_t word = 0;
            std::memcpy(&word, bytes + step / 2 * 2048 + t * 16 + step % 2 * 8 + r / 2 * 4, sizeof word);
            for (int b = 0; b < 4; ++b) {
              const std::int64_t column = block * 64 + t / 32 * 16 + t % 32 / 4 + 8 * (r % 2);
              const std::int64_t k = slab * 128 + step * 32 + 4 * (t % 4) + b + 16 * (r / 2);
              ASSERT_EQ(static_cast<int>(word >> (16 * (r % 2) + 4 * b) & 15), w.q[static_cast<std::size_t>(column * 256 + k)]);
            }
          }
      for (int place = 0; place < 64; ++place) {
        std::uint16_t scale = 0;
        std::memcpy(&scale, bytes + 4096 + place * 2, sizeof scale);
        const std::int64_t column = block * 64 + place / 16 * 16 + place % 16 / 2 + place % 2 * 8;
        ASSERT_EQ(scale, to_fp16_bits(w.s[static_cast<std::size_t>(column * w.groups + slab)]));
      }
    }
}

// All of a slab is weights to a kernel, and those beyond n and k are 0.
TEST(PackW4, PaddingIsWeightsOfZero) {
  for_each_problem([](const PackW4Problem& p, std::uint64_t seed) {
    const W4Weights w = random_w4_weights(p, false, seed);
    const W4Packed all = packed(w);
    const std::int64_t n = (p.n + 127) / 128 * 128, k = (p.k + 255) / 256 * 256;
    // The same bytes, seen as a matrix without padding. Whole columns and groups of 128 lie alike.
    W4Format whole = p.format;
    if (whole.group_size == 0) whole.group_size = 128;
    ASSERT_EQ(packed_w4_bytes(n, k, whole), packed_w4_bytes(p.n, p.k, p.format));
    PackW4Problem of_all = p;
    of_all.n = n, of_all.k = k, of_all.format = whole;
    const std::vector<float> weights = unpacked(of_all, all);
    for (std::int64_t c = 0; c < n; ++c)
      for (std::int64_t i = 0; i < k; ++i) {
        const float got = weights[static_cast<std::size_t>(c * k + i)];
        if (c < p.n && i < p.k) {
          ASSERT_EQ(got, w.weight(c, i));
          continue;
        }
        // A zero point of 16 has no code: what shares its scale is one step from 0.
        const std::int64_t begin = i / whole.group_size * whole.group_size;
        const bool sixteen = c < p.n && begin < p.k && w.zero(c, begin / w.group_elems) == 16;
        ASSERT_TRUE(got == 0.0f || sixteen) << describe(p) << ", column " << c << ", element " << i;
        ASSERT_TRUE(std::isfinite(got));
      }
  });
}

TEST(PackW4, PaddingHasScalesOfZeroAndTheMiddleCode) {
  const W4Format format{.group_size = 64, .zero_points = true};
  W4Weights w = random_w4_weights({.n = 8, .k = 64, .format = format}, false, 5);
  const W4Packed all = packed(w);
  const std::uint8_t* const slab = bytes_of(all);
  for (int byte = 2048; byte < 4096; ++byte) ASSERT_EQ(slab[byte], 0x88);  // the second chunk is all beyond K
  for (int group = 0; group < 2; ++group)
    for (int place = 0; place < 64; ++place) {
      const bool there = group == 0 && place < 16 && place % 2 == 0;
      std::uint16_t scale = 1;
      std::memcpy(&scale, slab + 4096 + group * 128 + place * 2, sizeof scale);
      ASSERT_EQ(scale, there ? to_bf16_bits(w.s[static_cast<std::size_t>(place / 2)]) : 0);
      ASSERT_EQ(slab[4096 + 256 + group * 64 + place], there ? w.z[static_cast<std::size_t>(place / 2)] : 8);
    }
}

TEST(PackW4, KnownWeights) {
  // GPTQ, one word of codes 0, 1, .. 7 for column 0, zero point 15 stored: 16.
  PackW4Problem p{
      .n = 8, .k = 8, .format = {.group_size = 0, .zero_points = true}, .source = W4Source::gptq, .type_scales = DataType::fp32};
  std::vector<std::uint32_t> codes(8, 0x76543210), zeros(1, 0xf7f7f7ff);
  std::vector<float> scales(8, 0.5f);
  W4Packed to = room_for(p);
  const PackW4Arguments arguments{.codes = codes.data(), .scales = scales.data(), .zeros = zeros.data(), .packed = to.data()};
  ASSERT_TRUE(pack_w4_on_cpu(p, arguments).ok());
  std::vector<float> got = unpacked(p, to);
  for (int k = 0; k < 8; ++k) EXPECT_EQ(got[static_cast<std::size_t>(k)], static_cast<float>(k - 16) * 0.5f);
  for (int k = 0; k < 8; ++k) EXPECT_EQ(got[static_cast<std::size_t>(16 + k)], static_cast<float>(k - 8) * 0.5f);
  // The second format of GPTQ has them as they are.
  p.zeros_less_one = false;
  ASSERT_TRUE(pack_w4_on_cpu(p, arguments).ok());
  got = unpacked(p, to);
  EXPECT_EQ(got[0], -7.5f);
  // AWQ: the first row's columns 0 to 7 are 0, 4, 1, 5, 2, 6, 3, 7.
  p.source = W4Source::awq;
  zeros[0] = 0;
  ASSERT_TRUE(pack_w4_on_cpu(p, arguments).ok());
  got = unpacked(p, to);
  const std::vector<float> expected = {0, 4, 1, 5, 2, 6, 3, 7};
  for (std::size_t c = 0; c < 8; ++c) EXPECT_EQ(got[c * 8], expected[c] * 0.5f);
}

TEST(PackW4, ScalesAreRoundedOnceAndWeightsOnce) {
  PackW4Problem p{.n = 8, .k = 16, .format = {.group_size = 0}, .type_scales = DataType::fp32};
  std::vector<std::uint8_t> codes(64, 0xff);
  std::vector<float> scales(8, 1.0f + 0x1p-8f + 0x1p-20f);  // above the middle of two neighbours in bf16
  scales[1] = std::numeric_limits<float>::quiet_NaN();
  scales[2] = 3e38f;
  W4Packed to = room_for(p);
  const PackW4Arguments arguments{.codes = codes.data(), .scales = scales.data(), .packed = to.data()};
  ASSERT_TRUE(pack_w4_on_cpu(p, arguments).ok());
  std::vector<float> got = unpacked(p, to);
  EXPECT_EQ(got[0], 7.0625f);  // 7 (1 + 2^-7) = 7.0546875 is nearer to it than to 7.03125
  EXPECT_TRUE(std::isnan(got[16]));
  EXPECT_TRUE(std::isinf(got[32]));
  p.type = DataType::fp16;
  ASSERT_TRUE(pack_w4_on_cpu(p, arguments).ok());
  got = unpacked(p, to);
  EXPECT_EQ(got[0], 7.02734375f);  // exact: 7 (1 + 2^-8)
  // Beside e4m3 scales are fp16, and weights are what they are.
  p.type = DataType::e4m3;
  scales[3] = 1.0f + 0x1p-10f;
  ASSERT_TRUE(pack_w4_on_cpu(p, arguments).ok());
  got = unpacked(p, to);
  EXPECT_EQ(got[0], 7.02734375f);
  EXPECT_EQ(got[48], 7 * (1.0f + 0x1p-10f)) << "14 bits: no number of fp16 or bf16";
}

template <class Change>
Result<PackW4Problem> changed(Change change) {
  PackW4Problem p{.n = 4096, .k = 4096};
  change(p);
  return validate(p);
}

TEST(PackW4Problem, RefusalsSayWhatIsWrong) {
  using enum ErrorCode;
  expect_refused(changed([](auto& p) { p.n = -8; }), invalid_argument, {"n = -8 is negative"});
  expect_refused(changed([](auto& p) { p.k = -8; }), invalid_argument, {"k = -8 is negative"});
  expect_refused(changed([](auto& p) { p.n = 4100; }), invalid_argument, {"n = 4100 is no multiple of 8", "to 4104"});
  expect_refused(changed([](auto& p) { p.k = 4100; }), invalid_argument, {"k = 4100 is no multiple of 8", "to 4104"});
  expect_refused(changed([](auto& p) { p.k = 4104; }), invalid_argument, {"k = 4104 ends within a group of 128", "to 4112"});
  expect_refused(changed([](auto& p) { p.k = 40, p.format.group_size = 32; }), invalid_argument, {"k = 40", "to 48"});
  expect_refused(changed([](auto& p) { p.format.group_size = 16; }), unsupported, {"group_size = 16", "32, 64 or 128"});
  expect_refused(changed([](auto& p) { p.format.group_size = -1; }), unsupported, {"group_size = -1", "0 for the whole column"});
  expect_refused(changed([](auto& p) { p.type = DataType::fp32; }), unsupported, {"type = fp32", "bf16, fp16 or e4m3"});
  expect_refused(changed([](auto& p) { p.type = DataType::e5m2; }), unsupported, {"type = e5m2", "bf16, fp16 or e4m3"});
  expect_refused(changed([](auto& p) { p.type_scales = DataType::e4m3; }), unsupported, {"type_scales = e4m3"});
  expect_refused(changed([](auto& p) { p.source = static_cast<W4Source>(7); }), invalid_argument, {"source is none"});
  expect_refused(changed([](auto& p) { p.n = std::int64_t{1} << 31; }), too_large, {"n = 2147483648 is over the limit"});
  expect_refused(changed([](auto& p) { p.n = p.k = 1 << 30; }), too_large, {"slabs", "in parts"});
  EXPECT_TRUE(changed([](auto& p) { p.k = 8, p.format.group_size = 0; }).ok());
  EXPECT_TRUE(changed([](auto& p) { p.k = 4112; }).ok());
  EXPECT_TRUE(changed([](auto& p) { p.n = p.k = 0; }).ok());
}

TEST(PackW4Problem, PointersAreChecked) {
  const PackW4Problem p{.n = 8, .k = 32, .format = {.group_size = 32, .zero_points = true}};
  W4Packed memory(40), to = room_for(p);
  auto* const bytes = reinterpret_cast<std::byte*>(memory.data());
  std::vector<std::int32_t> order(32);
  std::iota(order.begin(), order.end(), 0);
  std::fill(bytes, bytes + memory.size() * 256, std::byte{0});
  const PackW4Arguments good{.codes = bytes, .scales = bytes, .zeros = bytes, .order = order.data(), .packed = to.data()};
  const auto packing = [&](auto change) {
    PackW4Problem problem = p;
    PackW4Arguments arguments = good;
    change(problem, arguments);
    return pack_w4_on_cpu(problem, arguments);
  };
  using enum ErrorCode;
  EXPECT_TRUE(packing([](auto&, auto&) {}).ok());
  EXPECT_TRUE(packing([&](auto&, auto& a) { a.zeros = bytes + 1; }).ok()) << "bytes lie anywhere";
  expect_refused(packing([](auto&, auto& a) { a.codes = nullptr; }), invalid_argument, {"codes is null"});
  expect_refused(packing([](auto&, auto& a) { a.scales = nullptr; }), invalid_argument, {"scales is null"});
  expect_refused(packing([](auto&, auto& a) { a.zeros = nullptr; }), invalid_argument, {"zeros is null", "a format without them"});
  expect_refused(packing([](auto&, auto& a) { a.packed = nullptr; }), invalid_argument, {"packed is null", "packed_w4_bytes()"});
  expect_refused(packing([](auto& q, auto&) { q.format.zero_points = false; }), invalid_argument,
                 {"zeros are given, but the format has none"});
  expect_refused(packing([&](auto&, auto& a) { a.codes = bytes + 2; }), misaligned, {"codes lies 2 bytes behind a multiple of 4"});
  expect_refused(packing([&](auto&, auto& a) { a.scales = bytes + 1; }), misaligned, {"scales lies 1 bytes"});
  expect_refused(packing([&](auto& q, auto& a) { q.source = W4Source::gptq, a.zeros = bytes + 1; }), misaligned, {"zeros lies 1 bytes"});
  expect_refused(packing([&](auto&, auto& a) { a.packed = bytes + 16; }), misaligned, {"packed lies 16 bytes behind a multiple of 256"});
  bytes[2] = std::byte{17};
  expect_refused(packing([](auto&, auto&) {}), invalid_argument, {"zeros[2] = 17 is above 16"});
  bytes[2] = std::byte{0};
  order[5] = 6;
  expect_refused(packing([](auto&, auto&) {}), invalid_argument, {"order[6] = 6 is there before"});
  order[5] = 32;
  expect_refused(packing([](auto&, auto&) {}), invalid_argument, {"order[5] = 32 is no row of the 32"});
  EXPECT_TRUE(pack_w4_on_cpu({.n = 0, .k = 32}, {}).ok());
  EXPECT_TRUE(pack_w4_on_cpu({.n = 8, .k = 0}, {}).ok());
  expect_refused(unpack_w4_on_cpu(8, 32, {}, DataType::bf16, nullptr, bytes), invalid_argument, {"packed is null"});
  expect_refused(unpack_w4_on_cpu(8, 32, {}, DataType::fp32, bytes, bytes), unsupported, {"type = fp32"});
  expect_refused(unpack_w4_on_cpu(8, 32, {}, DataType::e4m3, bytes, bytes + 2), misaligned, {"weights lies 2 bytes", "4"});
  expect_refused(unpack_w4_on_cpu(8, 36, {}, DataType::bf16, bytes, bytes), invalid_argument, {"k = 36"});
}

TEST(PackW4Problem, SizesAndWords) {
  EXPECT_EQ(packed_w4_bytes(1, 1, {.group_size = 128}), 2 * 2 * (4096 + 128));
  EXPECT_EQ(packed_w4_bytes(128, 256, {.group_size = 32, .zero_points = true}), 2 * 2 * (4096 + 4 * 192));
  EXPECT_EQ(packed_w4_bytes(57344, 8192, {.group_size = 128}), std::int64_t{896} * 64 * 4224);
  EXPECT_EQ(packed_w4_bytes(0, 256, {}), 0);
  for (const int group_size : {0, 32, 64, 128})
    for (const bool zero_points : {false, true}) EXPECT_EQ(packed_w4_bytes(200, 304, {group_size, zero_points}) % 256, 0);
  PackW4Problem p{.n = 4096, .k = 8192, .format = {.group_size = 128, .zero_points = true}, .source = W4Source::gptq};
  EXPECT_EQ(describe(p), "8192 x 4096 int4 from gptq, groups of 128 with zero points, for bf16");
  p.zeros_less_one = false;
  EXPECT_EQ(describe(p), "8192 x 4096 int4 from gptq, groups of 128 with zero points as they are, for bf16");
  EXPECT_EQ(describe(PackW4Problem{.n = 8, .k = 16, .format = {.group_size = 0}, .type = DataType::fp16}),
            "16 x 8 int4 from plain, whole columns, for fp16");
  for (const W4Source source : {W4Source::plain, W4Source::gptq, W4Source::awq}) EXPECT_EQ(parse_w4_source(to_string(source)), source);
  EXPECT_FALSE(parse_w4_source("marlin"));
  EXPECT_STREQ(to_string(static_cast<W4Source>(3)), "?");
}

TEST(OrderOfGroups, BringsTheRowsOfEachGroupTogether) {
  const std::vector<std::int32_t> group_of = [] {
    std::vector<std::int32_t> groups(80);
    for (std::size_t i = 0; i < groups.size(); ++i) groups[i] = i < 16 ? 2 : static_cast<std::int32_t>(i % 2);  // 16 of the last
    return groups;
  }();
  std::vector<std::int32_t> order(80, -1);
  ASSERT_TRUE(order_of_groups(80, 32, group_of.data(), order.data()).ok());
  for (std::size_t i = 0; i < 80; ++i) {
    EXPECT_EQ(group_of[static_cast<std::size_t>(order[i])], static_cast<std::int32_t>(i / 32));
    EXPECT_TRUE(i % 32 == 0 || order[i - 1] < order[i]) << "rows of a group stay in their order";
  }
  std::vector<std::int32_t> in_order(256);
  for (std::size_t i = 0; i < 256; ++i) in_order[i] = static_cast<std::int32_t>(i / 64);
  std::vector<std::int32_t> same(256);
  ASSERT_TRUE(order_of_groups(256, 64, in_order.data(), same.data()).ok());
  for (std::size_t i = 0; i < 256; ++i) EXPECT_EQ(same[i], static_cast<std::int32_t>(i));
  EXPECT_TRUE(order_of_groups(0, 64, nullptr, nullptr).ok());
}

TEST(OrderOfGroups, RefusesGroupsOfOtherSizes) {
  std::vector<std::int32_t> group_of(128, 0), order(128);
  using enum ErrorCode;
  expect_refused(order_of_groups(128, 64, group_of.data(), order.data()), unsupported, {"group 0 has 128 rows, not 64"});
  group_of[7] = 2;
  expect_refused(order_of_groups(128, 64, group_of.data(), order.data()), invalid_argument, {"group_of[7] = 2 is none of the 2 groups"});
  group_of[7] = -1;
  expect_refused(order_of_groups(128, 64, group_of.data(), order.data()), invalid_argument, {"group_of[7] = -1"});
  expect_refused(order_of_groups(128, 48, group_of.data(), order.data()), unsupported, {"group_size = 48"});
  expect_refused(order_of_groups(128, 64, nullptr, order.data()), invalid_argument, {"group_of is null"});
  expect_refused(order_of_groups(128, 64, group_of.data(), nullptr), invalid_argument, {"order is null"});
}

// A in the order of the packed rows, times B packed in it, is the same product: each term is there, elsewhere.
TEST(PermuteColumns, BelongsToThePackedOrder) {
  const PackW4Problem p{.n = 8, .k = 96, .format = {.group_size = 32, .zero_points = true}, .source = W4Source::gptq};
  W4Weights w = random_w4_weights(p, false, 9);
  std::vector<std::int32_t> group_of(96);
  for (std::size_t i = 0; i < 96; ++i) group_of[i] = static_cast<std::int32_t>(i * 7 % 3);
  w.order.resize(96);
  ASSERT_TRUE(order_of_groups(96, 32, group_of.data(), w.order.data()).ok());
  const std::vector<float> weights = unpacked(p, packed(w));
  std::vector<std::uint16_t> a(96), permuted(2 * 104, 0x7777);
  std::iota(a.begin(), a.end(), std::uint16_t{100});
  ASSERT_TRUE(permute_columns_on_cpu({.m = 2, .k = 96, .ld_from = 0 + 96, .ld_to = 104}, std::vector<std::uint16_t>(192, 5).data(),
                                     w.order.data(), permuted.data())
                  .ok());
  for (std::size_t i = 0; i < permuted.size(); ++i) EXPECT_EQ(permuted[i], i % 104 < 96 ? 5 : 0x7777);
  ASSERT_TRUE(permute_columns_on_cpu({.m = 1, .k = 96}, a.data(), w.order.data(), permuted.data()).ok());
  for (std::size_t c = 0; c < 8; ++c)
    for (std::size_t i = 0; i < 96; ++i) {
      const std::size_t row = permuted[i] - 100u;  // of K, as the checkpoint has it
      const auto group = static_cast<std::size_t>(group_of[row]);
      const double scale = from_bf16_bits(to_bf16_bits(w.s[c * 3 + group]));
      EXPECT_EQ(weights[c * 96 + i], from_bf16_bits(to_bf16_bits(static_cast<float>((w.q[c * 96 + row] - w.z[c * 3 + group]) * scale))));
    }
}

TEST(PermuteColumns, RefusalsSayWhatIsWrong) {
  std::vector<std::uint16_t> from(64), to(64);
  std::vector<std::int32_t> order(32);
  std::iota(order.begin(), order.end(), 0);
  const auto permuting = [&](PermuteColumnsProblem p, const void* a, const std::int32_t* o, void* b) {
    return permute_columns_on_cpu(p, a, o, b);
  };
  using enum ErrorCode;
  EXPECT_TRUE(permuting({.m = 2, .k = 32}, from.data(), order.data(), to.data()).ok());
  EXPECT_TRUE(permuting({.m = 0, .k = 32}, nullptr, nullptr, nullptr).ok());
  expect_refused(permuting({.m = -1, .k = 32}, from.data(), order.data(), to.data()), invalid_argument, {"m = -1 is negative"});
  expect_refused(permuting({.m = 2, .k = std::int64_t{1} << 31}, from.data(), order.data(), to.data()), too_large, {"k = 2147483648"});
  expect_refused(permuting({.m = 2, .k = 32, .ld_from = 31}, from.data(), order.data(), to.data()), invalid_argument, {"ld_from = 31"});
  expect_refused(permuting({.m = 2, .k = 32, .ld_to = 3}, from.data(), order.data(), to.data()), invalid_argument, {"ld_to = 3"});
  expect_refused(permuting({.m = 2, .k = 32}, nullptr, order.data(), to.data()), invalid_argument, {"from is null"});
  expect_refused(permuting({.m = 2, .k = 32}, from.data(), nullptr, to.data()), invalid_argument, {"order is null"});
  expect_refused(permuting({.m = 2, .k = 32}, from.data(), order.data(), from.data()), invalid_argument, {"the same memory"});
  expect_refused(permuting({.m = 1, .k = 32}, from.data(), order.data(), reinterpret_cast<std::byte*>(to.data()) + 1), misaligned,
                 {"to lies 1"});
  order[3] = 40;
  expect_refused(permuting({.m = 2, .k = 32}, from.data(), order.data(), to.data()), invalid_argument, {"order[3] = 40"});
}

TEST(Streaming, WarpsWithManySlabsAskFurtherAhead) {
  const auto far = [](std::int64_t n, std::int64_t k) { return asks_far_ahead((n / 16 + 131) / 132, k / 128); };  // an H200's 132 CTAs
  EXPECT_FALSE(far(4096, 4096));
  EXPECT_FALSE(far(4096, 14336));
  EXPECT_FALSE(far(8192, 8192));
  EXPECT_TRUE(far(10240, 8192));
  EXPECT_TRUE(far(28672, 4096));
  EXPECT_TRUE(far(8192, 28672));
  EXPECT_TRUE(far(57344, 8192));
  EXPECT_FALSE(asks_far_ahead(0, 0));
}

}  // namespace
}  // namespace sluice
