// How attention cuts sequences: every token once, and nothing of it hangs on the batch.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

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

AttentionChunks chunks_of(const AttentionPlan& plan, int length) {
  return attention_chunks(length, static_cast<int>(plan.problem.query_len), static_cast<int>(plan.problem.window),
                          std::countr_zero(static_cast<unsigned>(plan.split.least_chunk)), plan.split.most_chunks);
}

RC_GTEST_PROP(Attention, ChunksHoldEachTokenThatIsSeenOnce, ()) {
  const AttentionProblem p = random_problem();
  const Result<AttentionPlan> plan = plan_attention(p, h200());
  RC_ASSERT(plan.ok());
  const auto length = *rc::gen::inRange<int>(0, static_cast<int>(p.max_kv_len) + 1);
  const auto query_len = static_cast<int>(p.query_len), window = static_cast<int>(p.window);
  const AttentionChunks c = chunks_of(*plan, length);
  RC_ASSERT(c.count >= 1 && c.count <= plan->split.most_chunks);
  RC_ASSERT(c.tokens() >= plan->split.least_chunk);
  // The first new token, the one furthest back, sees nothing before the first chunk; the last chunk ends with the sequence, and has tokens.
  const int seen = window == 0 ? 0 : std::max(0, length - query_len - window + 1);
  RC_ASSERT(c.first >= 0 && c.first <= seen && seen - c.first < kChunkGrain);
  RC_ASSERT(std::int64_t{c.first} + std::int64_t{c.tokens()} * c.count >= length);
  RC_ASSERT(c.count == 1 || std::int64_t{c.first} + std::int64_t{c.tokens()} * (c.count - 1) < length);
}

// Runs are what the kernel makes of a batch (kernel/attention/sequences.cuh): every chunk is in one of them, their beginnings are where the
// order of bringing together wants them, and the workspace has room for all.
RC_GTEST_PROP(Attention, RunsHoldEachChunkOnceAndFitTheWorkspace, ()) {
  AttentionProblem p = random_problem();
  p.batch = *rc::gen::inRange<std::int64_t>(1, 200);
  const Result<AttentionPlan> plan = plan_attention(p, h200());
  RC_ASSERT(plan.ok());
  const bool short_ones = *rc::gen::arbitrary<bool>();
  const auto most = static_cast<int>(short_ones ? std::max<std::int64_t>(1, p.max_kv_len / 50) : p.max_kv_len);
  std::vector<int> lengths;
  for (std::int64_t b = 0; b < p.batch; ++b) lengths.push_back(*rc::gen::inRange(0, most + 1));
  int grains_of_all = 0;
  for (const int length : lengths) grains_of_all += grains_of(chunks_of(*plan, length), length);
  const double run_grains = static_cast<double>(grains_of_all) * static_cast<double>(p.heads_kv) / (kLongRunsOfShare * plan->ctas);
  const int run_grains_log2 = run_grains > 0 ? static_cast<int>(std::floor(std::log2(run_grains))) : -127;
  std::int64_t items = 0;
  int grains_before = 0;
  for (const int length : lengths) {
    const AttentionChunks chunks = chunks_of(*plan, length);
    const AttentionRuns runs = attention_runs(chunks, grains_before, grains_of_all, run_grains_log2, plan->run_levels);
    RC_ASSERT(runs.count >= 1 && runs.long_count >= 0 && runs.long_count <= runs.count);
    RC_ASSERT(runs.short_level >= 0 && runs.short_level <= runs.long_level && runs.long_level <= plan->run_levels);
    int begin = 0;
    for (int run = 0; run < runs.count; ++run) {
      RC_ASSERT(runs.begin(run) == begin && begin < chunks.count);
      RC_ASSERT(begin % (1 << runs.level(run)) == 0);
      begin += 1 << runs.level(run);
    }
    RC_ASSERT(begin >= chunks.count);
    items += runs.count * p.heads_kv;
    grains_before += grains_of(chunks, length);
  }
  const auto slot_bytes = std::int64_t{16} * partial_vectors(attention_rows(p), static_cast<int>(p.head_size));
  RC_ASSERT(kWorkspaceAlignment + items * slot_bytes <= static_cast<std::int64_t>(plan->workspace_bytes));
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
