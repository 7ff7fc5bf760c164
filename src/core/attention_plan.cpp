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

// Many rows make large partial results, and leave no room to bring chunks together in shared memory.
AttentionSplit split_of(int rows) {
  if (rows <= 32) return {.least_chunk = 512, .most_chunks = 128};
  return {.least_chunk = 2048, .most_chunks = rows == 64 ? 64 : 32};
}

// Longer sequences than max_kv_len there are not.
int chunks_of_longest(const AttentionProblem& p, const AttentionSplit& split) {
  const auto longest = static_cast<int>(p.max_kv_len);
  return std::clamp((longest + split.least_chunk - 1) / split.least_chunk, 1, split.most_chunks);
}

// Of a run R or less long than wanted there is none shorter than R / 2 but at the end of a sequence and where levels are missing. So the
// long ones are 1.5 kLongRunsOfShare times the CTAs, the short ones 2 kLongRunsOfShare times; R is rounded, by a quarter at most; and where
// long ones become short ones within a sequence, it is at a batch of short ones.
std::int64_t most_runs(const AttentionProblem& p, const AttentionSplit& split, int ctas, int run_levels) {
  const std::int64_t pairs = p.batch * p.heads_kv, chunks = chunks_of_longest(p, split);
  const std::int64_t shares = (7 * kLongRunsOfShare * std::int64_t{ctas} * 5 + 7) / 8 + (kRunsOfBatch + 1) * p.heads_kv;
  return std::min(pairs * chunks, shares + pairs * (2 + (chunks >> run_levels)));
}

}  // namespace

std::size_t attention_workspace_bytes(const AttentionPlan& plan) {
  const AttentionProblem& p = plan.problem;
  const auto vectors = static_cast<std::size_t>(partial_vectors(attention_rows(p), static_cast<int>(p.head_size)));
  return kWorkspaceAlignment + static_cast<std::size_t>(most_runs(p, plan.split, plan.ctas, plan.run_levels)) * vectors * 16;
}

Result<AttentionPlan> plan_attention(const AttentionProblem& problem, const DeviceSpec& device) {
  const Result<AttentionProblem> valid = validate(problem);
  if (!valid) return valid.error();
  const AttentionProblem& p = *valid;
  const AttentionConfig config = attention_config(p);
  AttentionPlan plan;
  plan.problem = p;
  plan.rows = config.rows;
  plan.split = split_of(config.rows);
  const int rows = attention_rows(p), chunks = chunks_of_longest(p, plan.split);
  const std::int64_t items = p.batch * p.heads_kv * chunks;
  plan.ctas = static_cast<int>(std::clamp<std::int64_t>(items, 1, std::min(device.sm_count, kMostCtas)));
  const auto fits = [&](int stages, int levels) {
    return attention_layout(config, rows, stages, levels).bytes <= device.shared_memory_per_cta_bytes;
  };
  while (plan.stages < kMostStages && (plan.stages + 1) * stage_bytes(config) <= kMostRingBytes && fits(plan.stages + 1, 0)) ++plan.stages;
  while (plan.run_levels < kMostRunLevels && chunks >> plan.run_levels > 1 && fits(plan.stages, plan.run_levels + 1)) ++plan.run_levels;
  plan.shared_memory_bytes = attention_layout(config, rows, plan.stages, plan.run_levels).bytes;
  if (plan.stages < 2 || plan.stages * stage_bytes(config) < consumer_warps(config) * merging_bytes())
    return Error{ErrorCode::too_large, "two stages and what surrounds them take " +
                                           std::to_string(attention_layout(config, rows, 2, 0).bytes) +
                                           " bytes of shared memory, and a CTA has " + std::to_string(device.shared_memory_per_cta_bytes)};
  plan.workspace_bytes = attention_workspace_bytes(plan);
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
  std::snprintf(line, sizeof line, "  chunks    of %d tokens or more, at most %d for each sequence and key head\n", plan.split.least_chunk,
                plan.split.most_chunks);
  all += line;
  std::snprintf(line, sizeof line, "  runs      of up to %d chunks, drawn by %d CTAs\n", 1 << plan.run_levels, plan.ctas);
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
