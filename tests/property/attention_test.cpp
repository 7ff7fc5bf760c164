// How attention cuts sequences: every token once, and nothing of it hangs on the batch.
#include <algorithm>
#include <cstdint>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "sluice/attention.hpp"

#include "core/attention_config.hpp"

namespace sluice {
namespace {

DeviceSpec h200() { return *find_device("h200"); }

AttentionProblem random_problem() {
  AttentionProblem p;
  p.head_size = *rc::gen::element<std::int64_t>(64, 128, 256);
  p.query_len = *rc::gen::inRange<std::int64_t>(1, kMostQueryTokens + 1);
  const std::int64_t most = p.head_size == 256 ? std::min<std::int64_t>(kMostHeadsOfGroup, 64 / p.query_len) : kMostHeadsOfGroup;
  p.heads_kv = *rc::gen::inRange<std::int64_t>(1, 33);
  p.heads_q = p.heads_kv * *rc::gen::inRange<std::int64_t>(1, most + 1);
  p.max_kv_len = *rc::gen::inRange<std::int64_t>(1, 1 << *rc::gen::inRange(1, 18));
  p.window = *rc::gen::element<std::int64_t>(0, 1, 100, 4096);
  p.causal = *rc::gen::arbitrary<bool>();
  return p;
}

RC_GTEST_PROP(Attention, ChunksHoldEachTokenThatIsSeenOnce, ()) {
  const AttentionProblem p = random_problem();
  const Result<AttentionPlan> plan = plan_attention(p, h200());
  RC_ASSERT(plan.ok());
  const auto length = *rc::gen::inRange<int>(0, static_cast<int>(p.max_kv_len) + 1);
  const auto query_len = static_cast<int>(p.query_len), window = static_cast<int>(p.window);
  const AttentionChunks c = attention_chunks(length, query_len, window, plan->split.least_chunk, plan->split.most_chunks);
  RC_ASSERT(c.count >= 1 && c.count <= plan->split.most_chunks);
  RC_ASSERT(c.tokens >= plan->split.least_chunk && c.tokens % kChunkGrain == 0);
  // The first new token, the one furthest back, sees nothing before the first chunk; the last chunk ends with the sequence, and has tokens.
  const int seen = window == 0 ? 0 : std::max(0, length - query_len - window + 1);
  RC_ASSERT(c.first >= 0 && c.first <= seen && seen - c.first < kChunkGrain);
  RC_ASSERT(std::int64_t{c.first} + std::int64_t{c.tokens} * c.count >= length);
  RC_ASSERT(c.count == 1 || std::int64_t{c.first} + std::int64_t{c.tokens} * (c.count - 1) < length);
}

RC_GTEST_PROP(Attention, TheCutDoesNotHangOnTheBatch, ()) {
  AttentionProblem p = random_problem();
  const Result<AttentionPlan> alone = plan_attention(p, h200());
  p.batch = *rc::gen::inRange<std::int64_t>(2, 513);
  const Result<AttentionPlan> together = plan_attention(p, h200());
  RC_ASSERT(alone.ok() && together.ok());
  RC_ASSERT(alone->split == together->split);
  RC_ASSERT(alone->rows == together->rows);
  RC_ASSERT(together->workspace_bytes >= alone->workspace_bytes);
}

}  // namespace
}  // namespace sluice
