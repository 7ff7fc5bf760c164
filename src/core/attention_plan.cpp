// How attention is cut and what of it lies in shared memory.
#include <algorithm>
#include <cstdio>
#include <string>

#include "sluice/attention.hpp"

#include "core/attention_config.hpp"

namespace sluice {
namespace {

// What is under way to a CTA at once. Whatever else asks memory for something waits behind it: with 192 KB instead of 128, 8 sequences of
// 16,384 take 157.5 us instead of 148.7, and none takes less (H200, 22 November 2026).
constexpr int kMostRingBytes = 128 * 1024;

// Chunks of a sequence over all of its key heads: about as many as a large GPU has SMs, so that one sequence fills it. More would only be
// more to bring together.
constexpr int kChunksOfSequence = 128, kLeastMostChunks = 4, kMostMostChunks = 64;

AttentionSplit split_of(const AttentionProblem& p, int rows) {
  // Of 1024 tokens instead of 512: 16 sequences of 8192 and 8 heads take 135.0 us instead of 139.9, 128 of 2048 265.9 instead of 278.4, one
  // of 8192 as long (H200, 22 November 2026). Many rows make larger partial results.
  return {
      .least_chunk = rows <= 32 ? 1024 : 2048,
      .most_chunks = std::clamp(kChunksOfSequence / static_cast<int>(p.heads_kv), kLeastMostChunks, rows == 128 ? 32 : kMostMostChunks)};
}

// Longer sequences than max_kv_len there are not.
int chunks_of_longest(const AttentionProblem& p, const AttentionSplit& split) {
  const auto longest = static_cast<int>(p.max_kv_len);
  return std::clamp((longest + split.least_chunk - 1) / split.least_chunk, 1, split.most_chunks);
}

}  // namespace

Result<AttentionPlan> plan_attention(const AttentionProblem& problem, const DeviceSpec& device) {
  const Result<AttentionProblem> valid = validate(problem);
  if (!valid) return valid.error();
  const AttentionProblem& p = *valid;
  const AttentionConfig config = attention_config(p);
  AttentionPlan plan;
  plan.problem = p;
  plan.rows = config.rows;
  plan.split = split_of(p, config.rows);
  const int rows = attention_rows(p), chunks = chunks_of_longest(p, plan.split);
  const std::int64_t items = p.batch * p.heads_kv * chunks;
  plan.ctas = static_cast<int>(std::clamp<std::int64_t>(items, 1, device.sm_count));
  while (plan.stages < kMostStages && (plan.stages + 1) * stage_bytes(config) <= kMostRingBytes &&
         attention_layout(config, rows, plan.stages + 1, plan.split.most_chunks).bytes <= device.shared_memory_per_cta_bytes)
    ++plan.stages;
  plan.shared_memory_bytes = attention_layout(config, rows, plan.stages, plan.split.most_chunks).bytes;
  if (plan.stages < 2)
    return Error{ErrorCode::too_large, "two stages and what surrounds them take " +
                                           std::to_string(attention_layout(config, rows, 2, plan.split.most_chunks).bytes) +
                                           " bytes of shared memory, and a CTA has " + std::to_string(device.shared_memory_per_cta_bytes)};
  plan.workspace_bytes = static_cast<std::size_t>(partials_offset(p.batch * p.heads_kv)) +
                         static_cast<std::size_t>(p.batch * p.heads_kv) * static_cast<std::size_t>(plan.split.most_chunks) *
                             static_cast<std::size_t>(partial_vectors(rows, config.head_size)) * 16;
  plan.floor_us = kv_bytes(p, nullptr, p.batch) / device.hbm_gb_per_s * 1e-3;
  return plan;
}

std::string explain(const AttentionPlan& plan) {
  const AttentionProblem& p = plan.problem;
  char line[512];
  std::string all = describe(p) + "\n";
  std::snprintf(line, sizeof line, "  rows      %d (%lld new tokens x %lld heads of a group), kernel for %d: mma.sync, %d warps\n",
                attention_rows(p), static_cast<long long>(p.query_len), static_cast<long long>(p.heads_q / p.heads_kv), plan.rows,
                consumer_warps(attention_config(p)));
  all += line;
  std::snprintf(line, sizeof line, "  chunks    of %d tokens or more, at most %d for each sequence and key head, drawn by %d CTAs\n",
                plan.split.least_chunk, plan.split.most_chunks, plan.ctas);
  all += line;
  std::snprintf(line, sizeof line, "  ring      %d stages of %d tokens, %d bytes each; %d bytes of shared memory\n", plan.stages,
                stage_tokens(attention_config(p)), stage_bytes(attention_config(p)), plan.shared_memory_bytes);
  all += line;
  std::snprintf(line, sizeof line,
                "  workspace %zu bytes\n  floor     %.1f us for %.1f MB of K and V, all sequences of the greatest length\n",
                plan.workspace_bytes, plan.floor_us, kv_bytes(p, nullptr, p.batch) * 1e-6);
  return all + line;
}

}  // namespace sluice
