// The producers: one warp draws runs of chunks and fetches their queries, another fetches their keys and values.
#pragma once

#include "arch/warp_mma.cuh"
#include "core/attention_config.hpp"
#include "kernel/attention/attention_params.hpp"
#include "kernel/attention/attention_ring.cuh"
#include "kernel/attention/work_list.cuh"

namespace sluice {

// Draws ahead of all others, so that nobody waits for lengths and tickets but at the very beginning.
template <AttentionConfig config>
class AttentionDispatcher {
 public:
  SLUICE_DEVICE AttentionDispatcher(const AttentionParams& params, std::byte* shared) : params_(params), ring_(params, shared) {}

  SLUICE_DEVICE void run() {
    AttentionWorkList list(params_);
    AttentionItem item{};
    bool has_one = list.take_own(item);
    if (has_one) hand_over(item);
    arch::wait_for_predecessor();
    list.begin();
    if (has_one) fetch_queries(item);
    do {
      if (has_one) wait_for_room();
      list.draw_next();
      has_one = list.take(item);
      hand_over(item);
      if (has_one) fetch_queries(item);
    } while (has_one);
  }

 private:
  SLUICE_DEVICE void hand_over(const AttentionItem& item) {
    if (arch::lane() == 0) {
      ring_.write_item(at_, item);
      arch::barrier_arrive(ring_.item_full(at_));
    }
    arch::sync_warp();
    at_.advance(kItemSlots);
  }
  SLUICE_DEVICE void wait_for_room() { arch::barrier_wait(ring_.item_empty(at_), at_.parity ^ 1); }

  // A lane a row: tokens x heads of the group.
  SLUICE_DEVICE void fetch_queries(const AttentionItem& item) {
    constexpr int kBytes = config.head_size * 2;
    arch::barrier_wait(ring_.q_empty(q_at_), q_at_.parity ^ 1);
    arch::sync_warp();  // no lane waits still when the barrier goes on
    if (arch::lane() == 0) arch::barrier_arrive_expect_bytes(ring_.q_full(q_at_), params_.rows * kBytes);
    arch::sync_warp();
    const auto* const sequence = static_cast<const std::byte*>(params_.q) +
                                 std::int64_t{item.sequence} * params_.query_len * params_.heads_kv * params_.group * kBytes;
    for (int row = arch::lane(); row < params_.rows; row += 32) {
      const int token = row / params_.group, head = item.head * params_.group + row % params_.group;
      const int from = (token * params_.heads_kv * params_.group + head) * kBytes;
      arch::bulk_load(ring_.q_slot(q_at_) + row * q_pitch_bytes(config), sequence + from, kBytes, ring_.q_full(q_at_));
    }
    arch::sync_warp();
    q_at_.advance(q_slots(config));
  }

  const AttentionParams& params_;
  AttentionRing<config> ring_;
  AttentionPosition at_, q_at_;
};

template <AttentionConfig config>
class KvProducer {
 public:
  SLUICE_DEVICE KvProducer(const AttentionParams& params, std::byte* shared) : params_(params), ring_(params, shared) {}

  SLUICE_DEVICE void run() {
    while (take_over()) fetch_run();
    if (arch::lane() == 0) {
      ring_.wait_empty(at_);
      write_header(kNoMoreStages, 0, 0);
      arch::barrier_arrive(ring_.full(at_));
    }
    arch::sync_warp();
  }

 private:
  static constexpr int kBoxes = boxes_per_row(config), kRowBytes = box_row_bytes(config), kBoxElems = kRowBytes / (config.fp8 ? 1 : 2);
  static constexpr int kStageTokens = stage_tokens(config);
  static constexpr int kGroups = kStageTokens / kGroupTokens;

  SLUICE_DEVICE bool take_over() {
    arch::barrier_wait(ring_.item_full(items_at_), items_at_.parity);
    item_ = ring_.read_item(items_at_);
    arch::sync_warp();
    // From the first token that anyone sees, and no further than the last.
    const int seen = params_.window > 0 ? item_.length - params_.query_len - params_.window + 1 : 0;
    from_ = item_.first_token > seen ? item_.first_token : seen;
    to_ = item_.end();
    return item_.sequence >= 0;
  }

  SLUICE_DEVICE void fetch_run() {
    int token = item_.first_token, page = page_of(token), chunk = 0, chunk_end = token + item_.chunk_tokens;
    bool has_room = false;
    do {
      if (!has_room && token + kTokensAhead >= to_) {
        has_room = true;
        make_room();
      }
      if (!has_waited_) {
        if (at_.parity != 0) prefetch(token);
        if (at_.parity != 0 || token + kStageTokens > item_.length - params_.query_len) wait_for_predecessor();
      }
      const int next_page = page_of(token + kStageTokens);
      int flags = token >= to_ ? kStageEmpty : 0;
      if (token + kStageTokens >= to_)
        flags |= kChunkEnds | kRunEnds;
      else if (token + kStageTokens == chunk_end)
        flags |= kChunkEnds;
      if (arch::lane() == 0) {
        ring_.wait_empty(at_);
        write_header(flags, token, chunk);
      }
      fetch(params_.k, page, token);
      at_.advance(params_.stages);
      if (arch::lane() == 0) ring_.wait_empty(at_);
      fetch(params_.v, page, token);
      at_.advance(params_.stages);
      page = next_page;
      token += kStageTokens;
      if (token == chunk_end) {
        ++chunk;
        chunk_end += item_.chunk_tokens;
      }
    } while (token < to_);
  }

  // Before new tokens are fetched, and whatever is no part of a constant cache.
  SLUICE_DEVICE void wait_for_predecessor() {
    arch::wait_for_predecessor();
    has_waited_ = true;
  }

  // The ring is full for the first time. While nothing can be multiplied yet memory need not rest: half of what is left of the run, up to
  // 128 KiB, is fetched as far as L2. More of it would come before what is waited for.
  static constexpr int kMostPrefetched = 128 * 1024 / (2 * kv_row_bytes(config));  // tokens
  SLUICE_DEVICE void prefetch(int token) const {
    const int settled = item_.length - params_.query_len < to_ ? item_.length - params_.query_len : to_, half = (settled - token + 1) / 2;
    const int end = token + (half < kMostPrefetched ? half : kMostPrefetched);
    for (; token + kStageTokens <= end; token += kStageTokens) {
      const int page = page_of(token);
      for (int first = 0; first < kStageTokens; first += params_.many_rows) {
        const arch::TensorCoordinates at = place(page, token + first, first / kGroupTokens);
        if (arch::lane() != 0) continue;
        for (int box = 0; box < kBoxes; ++box) {
          arch::tma_prefetch(params_.k.map, {.inner = at.inner + box * kBoxElems, .outer = at.outer, .batch = at.batch});
          arch::tma_prefetch(params_.v.map, {.inner = at.inner + box * kBoxElems, .outer = at.outer, .batch = at.batch});
        }
      }
    }
    arch::sync_warp();
  }

  // For the next run: as late as its ticket and queries take to come.
  static constexpr int kTokensAhead = 256;
  SLUICE_DEVICE void make_room() {
    if (arch::lane() == 0) arch::barrier_arrive(ring_.item_empty(items_at_));
    items_at_.advance(kItemSlots);
  }

  SLUICE_DEVICE void write_header(int flags, int token, int chunk) {
    const std::uint32_t low[4] = {static_cast<std::uint32_t>(flags), static_cast<std::uint32_t>(token),
                                  static_cast<std::uint32_t>(item_.sequence), static_cast<std::uint32_t>(item_.head)};
    const std::uint32_t high[4] = {static_cast<std::uint32_t>(item_.length), static_cast<std::uint32_t>(item_.slot),
                                   static_cast<std::uint32_t>(chunk), static_cast<std::uint32_t>(item_.merge_counts)};
    arch::store_shared(ring_.header(at_), low);
    arch::store_shared(ring_.header(at_) + 16, high);
  }

  // Whole blocks are multiplied: what no token fills becomes zeros.
  SLUICE_DEVICE int fetched_tokens(int token) const {
    constexpr int kWhole = kBlockTokens * blocks_at_once(config);
    const int tokens = (to_ - token + kWhole - 1) / kWhole * kWhole;
    return tokens < kStageTokens ? tokens : kStageTokens;
  }

  // Lane l has the page of the l % kGroups-th group of eight tokens. What is no page becomes one that is outside.
  SLUICE_DEVICE int page_of(int token) const {
    if (params_.block_table == nullptr) return 0;
    const int mine = token + arch::lane() % kGroups * kGroupTokens;
    if (mine >= to_ || mine + kGroupTokens <= from_) return 0;
    const int page = arch::load_global(params_.block_table + item_.sequence * params_.block_table_stride + (mine >> params_.page_shift));
    if (page >= 0 && page < params_.pages) return page;
    report_fault(params_, 2);
    return params_.pages;
  }

  // Into the stage at at_, which is free.
  SLUICE_DEVICE void fetch(const AttentionTensor& tensor, int page, int token) {
    if (token >= from_ && token + kStageTokens <= to_)
      fetch_whole(tensor, page, token);
    else
      fetch_part(tensor, page, token);
    arch::sync_warp();
  }

  // All boxes of a stage are asked for by one lane: to the copy engine lanes are one after the other anyway.
  SLUICE_DEVICE void fetch_whole(const AttentionTensor& tensor, int page, int token) {
    if (has_copied_) {  // where lanes have written, the copy engine will
      arch::fence_shared_for_async();
      arch::sync_warp();
      has_copied_ = false;
    }
    if (arch::lane() == 0) arch::barrier_arrive_expect_bytes(ring_.full(at_), kStageTokens * kv_row_bytes(config));
    for (int first = 0; first < kStageTokens; first += params_.many_rows) {
      const arch::TensorCoordinates at = place(page, token + first, first / kGroupTokens);
      if (arch::lane() == 0) load(first, tensor.map, at);
    }
  }

  SLUICE_DEVICE arch::TensorCoordinates place(int page, int token, int group) const {
    if (params_.block_table == nullptr)
      return {.inner = item_.head * params_.head_inner,
              .outer = token,
              .batch = item_.sequence * params_.block_batch + item_.head * params_.head_batch};
    return {.inner = item_.head * params_.head_inner,
            .outer = token & ((1 << params_.page_shift) - 1),
            .batch = arch::from_lane(page, group) * params_.block_batch + item_.head * params_.head_batch};
  }

  // Boxes for all of a row's bytes, to the stage's row `row`.
  SLUICE_DEVICE void load(int row, const arch::TensorMap& map, arch::TensorCoordinates at) {
    SLUICE_UNROLL
    for (int box = 0; box < kBoxes; ++box)
      arch::tma_load(ring_.pointer(ring_.stage(at_) + box * (kStageTokens * kRowBytes) + row * kRowBytes), map,
                     {.inner = at.inner + box * kBoxElems, .outer = at.outer, .batch = at.batch}, ring_.full(at_),
                     arch::CachePolicy::evict_first);
  }

  // A stage in which tokens begin or end. A box must not leave a sequence, and many small ones take their time: so lanes fetch packets of
  // 16 bytes, and zeros where no token is, up to whole blocks, for these are multiplied. All that a packet takes is worked out before,
  // because the instructions of a single warp are what such a stage waits for.
  SLUICE_DEVICE void fetch_part(const AttentionTensor& tensor, int page, int token) {
    static_assert(kRowBytes == 128, "packets of eight rows are turned in shared memory as the copy engine turns them");
    constexpr int kPackets = kv_row_bytes(config) / 16, kPacketsOfBox = kRowBytes / 16;
    constexpr int kRowsAtOnce = 32 / kPackets, kTimes = kGroupTokens / kRowsAtOnce;  // for a group of eight rows
    arch::sync_warp();                                                               // lane 0 has waited until the stage is free
    if (token < to_) {
      const int packet = arch::lane() % kPackets, lane_row = arch::lane() / kPackets;
      const bool paged = params_.block_table != nullptr;
      const std::int64_t step = tensor.token_bytes * kRowsAtOnce;
      const std::byte* const head = tensor.data + item_.head * tensor.head_bytes + lane_row * tensor.token_bytes + packet * 16;
      const std::byte* group = head + item_.sequence * tensor.block_bytes + token * tensor.token_bytes;
      arch::SharedAddress to[kTimes];
      SLUICE_UNROLL
      for (int i = 0; i < kTimes; ++i) {
        const int row = lane_row + i * kRowsAtOnce;
        to[i] =
            ring_.stage(at_) + packet / kPacketsOfBox * (kStageTokens * kRowBytes) + row * kRowBytes + (packet % kPacketsOfBox ^ row) * 16;
      }
      const int rows = fetched_tokens(token), first = from_ - token - lane_row, behind = to_ - token - lane_row;
      SLUICE_NO_UNROLL
      for (int row = 0; row < rows; row += kGroupTokens) {
        bool there = true;
        if (paged) {
          const int number = arch::from_lane(page, row / kGroupTokens), in_page = (token + row) & ((1 << params_.page_shift) - 1);
          there = number != params_.pages;
          group = head + number * tensor.block_bytes + in_page * tensor.token_bytes;
        }
        const std::byte* from = group;
        SLUICE_UNROLL
        for (int i = 0; i < kTimes; ++i) {
          const int own = row + i * kRowsAtOnce;
          arch::copy_packet_async(to[i], from, there && own >= first && own < behind ? 16 : 0);
          from += step;
          to[i] += kGroupTokens * kRowBytes;
        }
        group = from;
      }
      arch::barrier_hold_until_copied(ring_.full(at_));
      has_copied_ = true;
      arch::sync_warp();
    }
    if (arch::lane() == 0) arch::barrier_arrive(ring_.full(at_));
  }

  const AttentionParams& params_;
  AttentionRing<config> ring_;
  AttentionPosition at_, items_at_;
  AttentionItem item_{};
  int from_ = 0, to_ = 0;  // tokens of the run
  bool has_waited_ = false;
  bool has_copied_ = false;
};

}  // namespace sluice
