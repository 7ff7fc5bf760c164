// How the attention kernel cuts its work and lays out shared memory: decided here for the kernel and for those who launch it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "sluice/attention.hpp"

#include "core/host_device.hpp"

namespace sluice {

// What is compiled apart.
struct AttentionConfig {
  DataType type = DataType::bf16;
  bool fp8 = false;  // K and V of e4m3
  int head_size = 128;
  int rows = 8;  // of the queries, at most: new tokens x heads of a group; 8, 16, 32, 64 or 128

  bool operator==(const AttentionConfig&) const = default;
};

inline constexpr int kBlockTokens = 16;    // keys or values that a warp multiplies at once: M of mma.sync, and K of the second product
inline constexpr int kTileRows = 8;        // of the queries: N of mma.sync
inline constexpr int kGroupTokens = 8;     // of the boxes at a sequence's end
inline constexpr int kChunkGrainLog2 = 7;  // of tokens: chunks are multiples of 128, and so of every kernel's stage
inline constexpr int kChunkGrain = 1 << kChunkGrainLog2;
inline constexpr int kSwizzleRowBytes = 128;  // of a box

constexpr int attention_rows(const AttentionProblem& p) { return static_cast<int>(p.query_len * (p.heads_q / p.heads_kv)); }

constexpr AttentionConfig attention_config(const AttentionProblem& p) {
  AttentionConfig c{.type = p.type, .fp8 = p.kv_type == DataType::e4m3, .head_size = static_cast<int>(p.head_size)};
  while (c.rows < attention_rows(p)) c.rows *= 2;
  return c;
}

// Sums of a head of 256 fill a warp's registers with 8 rows, and there are eight such warps.
constexpr int most_rows(int head_size) { return head_size == 256 ? 64 : 128; }

// All there are: each type, with keys and values of it or of e4m3, each head size and number of rows. Not e4m3 and 64: single rows of 64
// bytes are no boxes, which begin at multiples of 128.
inline constexpr auto kListedAttentionKernels = [] {
  std::array<AttentionConfig, 46> all{};
  std::size_t i = 0;
  for (const DataType type : {DataType::bf16, DataType::fp16})
    for (const bool fp8 : {false, true})
      for (const int head_size : {64, 128, 256})
        for (const int rows : {8, 16, 32, 64, 128})
          if ((!fp8 || head_size > 64) && rows <= most_rows(head_size))
            all[i++] = {.type = type, .fp8 = fp8, .head_size = head_size, .rows = rows};
  return all;
}();

// A warp has one tile of rows or two, and of each stage the tokens of its slice.
SLUICE_HOST_DEVICE constexpr int tiles_of_warp(const AttentionConfig& c) { return c.rows == kTileRows || c.head_size == 256 ? 1 : 2; }
SLUICE_HOST_DEVICE constexpr int row_groups(const AttentionConfig& c) { return c.rows / (kTileRows * tiles_of_warp(c)); }
SLUICE_HOST_DEVICE constexpr int consumer_warps(const AttentionConfig& c) { return row_groups(c) == 1 ? 4 : 8; }
SLUICE_HOST_DEVICE constexpr int token_slices(const AttentionConfig& c) { return consumer_warps(c) / row_groups(c); }
SLUICE_HOST_DEVICE constexpr int consumer_threads(const AttentionConfig& c) { return 32 * consumer_warps(c); }
// Then the dispatcher's warp and the producer's. Behind eight consumers' warps two idle ones make them a warpgroup, from which the
// consumers' two take registers: 256 x 208 + 128 x 88 of 65,536.
SLUICE_HOST_DEVICE constexpr int attention_threads(const AttentionConfig& c) {
  return consumer_threads(c) + (row_groups(c) == 1 ? 64 : 128);
}
inline constexpr int kManyRegisters = 208, kFewRegisters = 88;

SLUICE_HOST_DEVICE constexpr int kv_row_bytes(const AttentionConfig& c) { return c.head_size * (c.fp8 ? 1 : 2); }
// A row of a box: 128 bytes, or all of a row that has less.
SLUICE_HOST_DEVICE constexpr int box_row_bytes(const AttentionConfig& c) {
  return kv_row_bytes(c) < kSwizzleRowBytes ? kv_row_bytes(c) : kSwizzleRowBytes;
}
SLUICE_HOST_DEVICE constexpr int boxes_per_row(const AttentionConfig& c) { return kv_row_bytes(c) / box_row_bytes(c); }
// Of keys or values that come together: no more than 32 KB, and 64 for each warp.
SLUICE_HOST_DEVICE constexpr int stage_tokens(const AttentionConfig& c) { return kv_row_bytes(c) > 256 || row_groups(c) == 8 ? 64 : 128; }
SLUICE_HOST_DEVICE constexpr int stage_bytes(const AttentionConfig& c) { return stage_tokens(c) * kv_row_bytes(c); }

// Blocks of a warp that are on their way from shared memory together, as far as its registers go. A stage is filled up with zeros to whole
// ones.
SLUICE_HOST_DEVICE constexpr int blocks_of_warp(const AttentionConfig& c) { return stage_tokens(c) / token_slices(c) / kBlockTokens; }
SLUICE_HOST_DEVICE constexpr int blocks_at_once(const AttentionConfig& c) { return tiles_of_warp(c) == 1 && blocks_of_warp(c) > 1 ? 2 : 1; }

// Rows of Q are 16 bytes longer, so that eight of them lie in different banks.
inline constexpr int kPadBytes = 16;
SLUICE_HOST_DEVICE constexpr int q_pitch_bytes(const AttentionConfig& c) { return c.head_size * 2 + kPadBytes; }
SLUICE_HOST_DEVICE constexpr int q_slot_bytes(const AttentionConfig& c) { return c.rows * q_pitch_bytes(c); }
SLUICE_HOST_DEVICE constexpr int q_slots(const AttentionConfig& c) { return c.rows <= 32 ? 2 : 1; }

// Where the warps' sums meet: so many columns at once. Rows are 32 bytes longer.
SLUICE_HOST_DEVICE constexpr int meeting_columns(const AttentionConfig& c) { return row_groups(c) == 1 && c.head_size >= 128 ? 128 : 64; }
SLUICE_HOST_DEVICE constexpr int meeting_pitch_bytes(const AttentionConfig& c) { return meeting_columns(c) * 4 + 32; }

// What a stage of keys says of itself.
struct AttentionStageHeader {
  std::int32_t flags;
  std::int32_t first_token;  // of the stage
  std::int32_t sequence, head;
  std::int32_t length;  // of the sequence
  std::int32_t slot;    // of the run's result in the workspace; kNoSlot: it is the sequence's
  std::int32_t chunk;   // of the run
  // With kNoMoreStages: 0 when this CTA brings nothing together and leaves, 1, or 1 more than CTAs have left so
  // (kernel/attention/work_list.cuh).
  std::int32_t merge_counts;
};
inline constexpr int kChunkEnds = 1, kRunEnds = 2, kStageEmpty = 4, kNoMoreStages = 8;  // flags
inline constexpr int kNoSlot = -1;

inline constexpr int kMostStages = 48;
inline constexpr int kMostCtas = 0xffff;               // of a grid: they are counted in 16 bits (kernel/attention/work_list.cuh)
inline constexpr int kItemSlots = 1, kItemBytes = 32;  // runs that are drawn ahead: whoever has more than one keeps others from it

// Offsets in shared memory. Everything that depends on rows depends on those that there are: a tile's padding is only in Q.
struct AttentionLayout {
  int q_offset;
  int meeting_offset;     // [slice][row][columns] of fp32
  int statistics_offset;  // [slice][row] of maximum and sum
  int tree_offset;        // [level][row] of maximum and sum, behind [level][row][columns] (kernel/attention/part_tree.cuh)
  int header_offset;
  int item_offset;
  int barrier_offset;  // full and empty of the stages, then of Q, then of items
  int bytes;
};
SLUICE_HOST_DEVICE constexpr int even_rows(int rows) { return (rows + 1) / 2 * 2; }
SLUICE_HOST_DEVICE constexpr AttentionLayout attention_layout(const AttentionConfig& c, int rows, int stages, int run_levels) {
  AttentionLayout l{};
  l.q_offset = stages * stage_bytes(c);
  l.meeting_offset = l.q_offset + q_slots(c) * q_slot_bytes(c);
  l.statistics_offset = l.meeting_offset + token_slices(c) * rows * meeting_pitch_bytes(c);
  l.tree_offset = l.statistics_offset + token_slices(c) * even_rows(rows) * 8;
  l.header_offset = l.tree_offset + run_levels * (rows * c.head_size * 4 + even_rows(rows) * 8);
  l.item_offset = l.header_offset + stages * static_cast<int>(sizeof(AttentionStageHeader));
  l.barrier_offset = l.item_offset + kItemSlots * kItemBytes;
  l.bytes = l.barrier_offset + (2 * stages + 2 * q_slots(c) + 2 * kItemSlots) * 8;
  return l;
}

// The tokens of a sequence that count, and how they are cut. `first` is a multiple of 128.
struct AttentionChunks {
  std::int32_t first;
  std::int32_t tokens_log2;  // of a chunk
  std::int32_t count;

  SLUICE_HOST_DEVICE constexpr int tokens() const { return 1 << tokens_log2; }
};
// Chunks are twice as long for twice the tokens, so that there are no more than most_chunks. Nothing here depends on other sequences.
SLUICE_HOST_DEVICE constexpr AttentionChunks attention_chunks(int length, int query_len, int window, int least_chunk_log2,
                                                              int most_chunks) {
  AttentionChunks c{.first = 0, .tokens_log2 = least_chunk_log2, .count = 1};
  if (window > 0 && length - query_len - window + 1 > 0) c.first = (length - query_len - window + 1) / kChunkGrain * kChunkGrain;
  const int last = length - c.first - 1;
  while (last >> c.tokens_log2 >= most_chunks) ++c.tokens_log2;
  if (last > 0) c.count = (last >> c.tokens_log2) + 1;
  return c;
}
SLUICE_HOST_DEVICE constexpr int grains_of(const AttentionChunks& chunks, int length) {
  return length > chunks.first ? (length - chunks.first - 1) / kChunkGrain + 1 : 0;
}

// Chunks that a CTA takes in one go: aligned runs of 2^level, the last of a sequence perhaps fewer. Long ones first, for they leave little
// to bring together; short ones at the end of the batch, so that all CTAs end at about the same time.
struct AttentionRuns {
  std::int32_t long_level, short_level;
  std::int32_t long_count;
  std::int32_t count;

  SLUICE_HOST_DEVICE constexpr int begin(int run) const {
    return run < long_count ? run << long_level : (long_count << long_level) + ((run - long_count) << short_level);
  }
  SLUICE_HOST_DEVICE constexpr int level(int run) const { return run < long_count ? long_level : short_level; }
};
inline constexpr int kMostRunLevels = 7;
// A CTA's share of all tokens is about so many long runs; the last sixth of them is cut into short ones, of a quarter of that.
inline constexpr int kLongRunsOfShare = 3, kShortRunLevels = 2, kShortPart = 6;
// Short runs begin at a multiple of so many, for the results of neighbouring ones are fetched together.
inline constexpr int kRunsOfBatch = 16;

// In grains of kChunkGrain tokens, of one head: those before the sequence, those of all sequences, and the logarithm of a long run's.
SLUICE_HOST_DEVICE constexpr AttentionRuns attention_runs(const AttentionChunks& chunks, int grains_before, int grains_of_all,
                                                          int run_grains_log2, int most_levels) {
  const auto within = [most_levels](int level) { return level < 0 ? 0 : level > most_levels ? most_levels : level; };
  const int chunk_log2 = chunks.tokens_log2 - kChunkGrainLog2, levels = run_grains_log2 - chunk_log2;
  AttentionRuns r{.long_level = within(levels), .short_level = within(levels - kShortRunLevels), .long_count = 0, .count = 0};
  const int long_chunks = r.long_level == r.short_level ? 0 : (grains_of_all - grains_of_all / kShortPart - grains_before) >> chunk_log2;
  if (long_chunks >= chunks.count)
    r.long_count = ((chunks.count - 1) >> r.long_level) + 1;
  else if (long_chunks > 0)
    r.long_count = (long_chunks & -(kRunsOfBatch << r.short_level)) >> r.long_level;
  const int rest = chunks.count - (r.long_count << r.long_level);
  r.count = r.long_count + (rest > 0 ? ((rest - 1) >> r.short_level) + 1 : 0);
  return r;
}

// A run's part of the workspace, in vectors of four floats: rows' sums, then each row's maximum and sum of exponentials, once for every
// eight vectors, which different warps may take.
inline constexpr int kVectorsOfStatistics = 8;
SLUICE_HOST_DEVICE constexpr int statistics_copies(int head_size) { return head_size / 4 / kVectorsOfStatistics; }
SLUICE_HOST_DEVICE constexpr int partial_vectors(int rows, int head_size) { return rows * (head_size / 4 + statistics_copies(head_size)); }

// Where a warp that brings runs together keeps what waits for its neighbour, in the ring: sums and statistics of each level and lane.
inline constexpr int kMergedSumsPitch = 32 * 16, kMergedStatisticsPitch = 32 * 8;
SLUICE_HOST_DEVICE constexpr int merging_bytes() { return kMostRunLevels * (kMergedSumsPitch + kMergedStatisticsPitch); }

// The workspace: counters of tickets, for runs and for rows, then results of runs. All bits are set as long as nobody uses it, the counters
// at -1 included, so that any problem may follow any other.
inline constexpr int kWorkspaceAlignment = 256;
std::size_t attention_workspace_bytes(const AttentionPlan& plan);  // for its problem, CTAs and levels

}  // namespace sluice
