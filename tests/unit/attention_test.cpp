// What attention() refuses, known answers of the reference, and how sequences are cut.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "sluice/attention.hpp"
#include "sluice/verify.hpp"

#include "core/attention_config.hpp"
#include "refused.hpp"

namespace sluice {
namespace {

using test::expect_refused;

TEST(AttentionProblem, RefusalsSayWhatIsWrong) {
  using enum ErrorCode;
  const auto changed = [](auto change) {
    AttentionProblem p{.batch = 2, .heads_q = 8, .heads_kv = 2, .max_kv_len = 100};
    change(p);
    return validate(p);
  };
  expect_refused(changed([](auto& p) { p.batch = -1; }), invalid_argument, {"batch = -1 is negative"});
  expect_refused(changed([](auto& p) { p.query_len = 9; }), unsupported, {"query_len = 9 is not in [1, 8]", "prefill"});
  expect_refused(changed([](auto& p) { p.heads_q = 7; }), invalid_argument, {"heads_q = 7 is no multiple of heads_kv = 2"});
  expect_refused(changed([](auto& p) { p.heads_q = 34; }), unsupported, {"heads_q / heads_kv = 17 is over 16"});
  expect_refused(changed([](auto& p) { p.head_size = 96; }), unsupported, {"head_size = 96", "64, 128 and 256", "pad"});
  expect_refused(changed([](auto& p) {
                   p.head_size = 256;
                   p.heads_q = 32;
                   p.query_len = 5;
                 }),
                 unsupported, {"more than the 64 rows", "split the query heads"});
  expect_refused(changed([](auto& p) { p.max_kv_len = -5; }), invalid_argument, {"max_kv_len = -5"});
  expect_refused(changed([](auto& p) { p.type = DataType::fp32; }), unsupported, {"type = fp32"});
  expect_refused(changed([](auto& p) { p.kv_type = DataType::fp16; }), unsupported, {"kv_type = fp16 with bf16 queries"});
  expect_refused(changed([](auto& p) {
                   p.kv_type = DataType::e4m3;
                   p.head_size = 64;
                 }),
                 unsupported, {"e4m3 with head_size = 64", "pad"});
  expect_refused(changed([](auto& p) { p.scale = -1; }), invalid_argument, {"scale = -1"});
  expect_refused(changed([](auto& p) { p.soft_cap = std::nan(""); }), invalid_argument, {"soft_cap = "});
  expect_refused(changed([](auto& p) { p.window = -1; }), invalid_argument, {"window = -1"});
  expect_refused(changed([](auto& p) { p.page_size = 32; }), unsupported, {"page_size = 32", "16, 64 or 128"});
  expect_refused(changed([](auto& p) { p.page_size = 16; }), invalid_argument, {"pages = 0"});
  expect_refused(changed([](auto& p) { p.pages = 4; }), invalid_argument, {"pages = 4 without page_size"});
  expect_refused(changed([](auto& p) { p.kv_stride = 100; }), invalid_argument, {"kv_stride = 100 is less than the 25600 elements"});
  expect_refused(changed([](auto& p) { p.kv_stride = 25601; }), misaligned, {"kv_stride = 25601", "pad to 25608"});
}

TEST(AttentionProblem, ArgumentsAreChecked) {
  AttentionProblem p{.heads_q = 1, .heads_kv = 1, .head_size = 64, .max_kv_len = 20, .page_size = 16, .pages = 2, .lse = true};
  alignas(16) std::uint16_t memory[4096] = {};
  std::int32_t table[2] = {0, 1};
  float lse[1];
  const AttentionArguments good{
      .q = memory, .k = memory, .v = memory, .o = memory, .lse = lse, .block_table = table, .block_table_stride = 2};
  const auto changed = [&](auto change) {
    AttentionArguments a = good;
    change(a);
    return attention_on_cpu(p, a, 1);
  };
  EXPECT_TRUE(changed([](auto&) {}).ok());
  expect_refused(changed([](auto& a) { a.q = nullptr; }), ErrorCode::invalid_argument, {"q is null"});
  expect_refused(changed([&](auto& a) { a.k = memory + 1; }), ErrorCode::misaligned, {"k lies 2 bytes behind a multiple of 16"});
  expect_refused(changed([](auto& a) { a.lse = nullptr; }), ErrorCode::invalid_argument, {"lse is null", "clear AttentionProblem::lse"});
  expect_refused(changed([](auto& a) { a.block_table = nullptr; }), ErrorCode::invalid_argument, {"block_table is null"});
  expect_refused(changed([](auto& a) { a.block_table_stride = 1; }), ErrorCode::invalid_argument,
                 {"block_table_stride = 1 is less than the 2 pages"});
}

// Keys of zeros weigh all values alike; the mask says which.
TEST(AttentionReference, MeansOfWhatIsSeen) {
  constexpr int kTokens = 10;
  AttentionProblem p{.query_len = 2, .heads_q = 1, .heads_kv = 1, .head_size = 64, .max_kv_len = kTokens, .lse = true};
  std::vector<std::uint16_t> q(2 * 64, to_bf16_bits(1.0f)), k(kTokens * 64), v(kTokens * 64), o(2 * 64);
  for (int j = 0; j < kTokens; ++j)
    for (int d = 0; d < 64; ++d) v[static_cast<std::size_t>(j * 64 + d)] = to_bf16_bits(static_cast<float>(j));
  float lse[2];
  const AttentionArguments arguments{.q = q.data(), .k = k.data(), .v = v.data(), .o = o.data(), .lse = lse};
  const auto means = [&](auto change) {
    AttentionProblem changed = p;
    change(changed);
    EXPECT_TRUE(attention_on_cpu(changed, arguments, 1).ok());
    return std::pair{from_bf16_bits(o[0]), from_bf16_bits(o[64])};
  };
  EXPECT_EQ(means([](auto&) {}), (std::pair{4.0f, 4.5f}));  // 0..8 and 0..9
  EXPECT_NEAR(lse[0], std::log(9.0), 1e-6);
  EXPECT_NEAR(lse[1], std::log(10.0), 1e-6);
  EXPECT_EQ(means([](auto& p) { p.causal = false; }), (std::pair{4.5f, 4.5f}));
  EXPECT_EQ(means([](auto& p) { p.window = 3; }), (std::pair{7.0f, 8.0f}));
  EXPECT_EQ(means([](auto& p) {
              p.window = 3;
              p.causal = false;
            }),
            (std::pair{7.5f, 8.0f}));
  const std::int32_t one[] = {1};
  AttentionArguments shorter = arguments;
  shorter.lengths = one;
  ASSERT_TRUE(attention_on_cpu(p, shorter, 1).ok());
  EXPECT_EQ(from_bf16_bits(o[0]), 0.0f);  // sees nothing: it stands before the beginning
  EXPECT_EQ(lse[0], -INFINITY);
  EXPECT_EQ(lse[1], 0.0f);
}

// Every token that may be seen lies in one chunk, chunks are whole stages, and their number is bounded.
TEST(AttentionSplit, ChunksCoverWhatIsSeen) {
  for (const int query_len : {1, 5})
    for (const int window : {0, 1, 500, 4096})
      for (const int most : {1, 4, 16, 64})
        for (int length = 0; length < 140000; length += 1 + length / 7) {
          const AttentionChunks c = attention_chunks(length, query_len, window, 9, most);
          const int seen = window > 0 ? std::max(length - query_len - window + 1, 0) : 0;
          ASSERT_LE(c.first, seen);
          ASSERT_LT(seen - c.first, kChunkGrain);
          ASSERT_GE(c.tokens(), 512);
          ASSERT_GE(c.count, 1);
          ASSERT_LE(c.count, most);
          ASSERT_GE(c.first + c.count * c.tokens(), length);
          if (c.count > 1) {
            ASSERT_LT(c.first + (c.count - 1) * c.tokens(), length) << "a chunk without tokens";
          }
        }
}

TEST(AttentionPlan, FitsTheDeviceAndExplainsItself) {
  const Result<DeviceSpec> device = find_device("h200");
  ASSERT_TRUE(device.ok());
  for (const AttentionConfig& config : kListedAttentionKernels) {
    const AttentionProblem p{.batch = 3,
                             .query_len = config.rows == 8 ? 1 : 8,
                             .heads_q = config.rows == 8 ? 8 : config.rows / 8,
                             .heads_kv = 1,
                             .head_size = config.head_size,
                             .max_kv_len = 5000,
                             .type = config.type,
                             .kv_type = config.fp8 ? DataType::e4m3 : config.type};
    ASSERT_EQ(attention_config(p), config);
    const Result<AttentionPlan> plan = plan_attention(p, *device);
    ASSERT_TRUE(plan.ok()) << plan.error().message;
    EXPECT_GE(plan->stages, 2);
    EXPECT_LE(plan->shared_memory_bytes, device->shared_memory_per_cta_bytes);
    EXPECT_NE(explain(*plan).find("chunks"), std::string::npos);
  }
  // A plan of one batch size cuts a sequence as that of another.
  AttentionProblem p{.batch = 1, .heads_q = 32, .heads_kv = 8, .max_kv_len = 8192};
  const AttentionSplit one = plan_attention(p, *device)->split;
  p.batch = 100;
  EXPECT_EQ(plan_attention(p, *device)->split, one);
}

}  // namespace
}  // namespace sluice
