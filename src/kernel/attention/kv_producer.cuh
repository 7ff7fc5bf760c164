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
    while (list.take(item)) {
      hand_over(item);
      fetch_queries(item);
      q_at_.advance(q_slots(config));
      wait_for_room();
      list.draw_next();
    }
    item.sequence = -1;
    hand_over(item);
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
      const int next_page = page_of(token + kStageTokens);
      int flags = token >= to_ ? kStageEmpty : 0;
      if (token + kStageTokens >= to_)
        flags |= kChunkEnds | kRunEnds;
      else if (token + kStageTokens == chunk_end)
        flags |= kChunkEnds;
      if (arch::lane() == 0) {
        ring_.wait_empty(at_);
        write_header(flags, token, chunk);
        announce(token);
      }
      fetch(params_.k, page, token);
      at_.advance(params_.stages);
      if (arch::lane() == 0) {
        ring_.wait_empty(at_);
        announce(token);
      }
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

  // For the next run: as late as its ticket and queries take to come.
  static constexpr int kTokensAhead = 256;
  SLUICE_DEVICE void make_room() {
    if (arch::lane() == 0) arch::barrier_arrive(ring_.item_empty(items_at_));
    items_at_.advance(kItemSlots);
  }

  // By one lane: so many bytes will come.
  SLUICE_DEVICE void announce(int token) {
    if (token >= to_)
      arch::barrier_arrive(ring_.full(at_));
    else
      arch::barrier_arrive_expect_bytes(ring_.full(at_), fetched_tokens(token) * kv_row_bytes(config));
  }

  SLUICE_DEVICE void write_header(int flags, int token, int chunk) {
    const std::uint32_t low[4] = {static_cast<std::uint32_t>(flags), static_cast<std::uint32_t>(token),
                                  static_cast<std::uint32_t>(item_.sequence), static_cast<std::uint32_t>(item_.head)};
    const std::uint32_t high[4] = {static_cast<std::uint32_t>(item_.length), static_cast<std::uint32_t>(item_.slot),
                                   static_cast<std::uint32_t>(chunk), 0};
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
    if (params_.fault != nullptr) arch::store_relaxed(params_.fault, 2);
    return params_.pages;
  }

  // All copies of a stage are started by one lane: to the copy engine lanes are one after the other anyway.
  SLUICE_DEVICE void fetch(const AttentionTensor& tensor, int page, int token) {
    if (token >= from_ && token + kStageTokens <= to_)
      fetch_whole(tensor, page, token);
    else if (token < to_)
      fetch_part(tensor, page, token);
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

  SLUICE_DEVICE void fetch_whole(const AttentionTensor& tensor, int page, int token) {
    for (int first = 0; first < kStageTokens; first += params_.many_rows) {
      const arch::TensorCoordinates at = place(page, token + first, first / kGroupTokens);
      if (arch::lane() == 0) load(first, tensor.many, at);
    }
    arch::sync_warp();
  }

  // The stage's tokens in [from, to). A box may leave a tensor but not a sequence: what ends inside a box comes in boxes of eight and of
  // one, and boxes from outside the tensor are zeros.
  SLUICE_DEVICE void fetch_part(const AttentionTensor& tensor, int page, int token) {
    const int groups = fetched_tokens(token) / kGroupTokens;
    for (int group = 0; group < groups; ++group) {
      const int first = token + group * kGroupTokens;
      const arch::TensorCoordinates at = place(page, first, group);
      if (arch::lane() != 0) continue;
      if (first >= from_ && first + kGroupTokens <= to_)
        load(first - token, tensor.eight, at);
      else if (first >= to_ || first + kGroupTokens <= from_)
        load(first - token, tensor.eight, moved(at, -1));
      else
        for (int i = 0; i < kGroupTokens; ++i)
          load(first - token + i, tensor.one, moved(at, first + i >= from_ && first + i < to_ ? i : -1));
    }
    arch::sync_warp();
  }

  // So many rows further; -1: to where no tensor is.
  SLUICE_DEVICE arch::TensorCoordinates moved(arch::TensorCoordinates at, int rows) const {
    at.outer = rows >= 0 ? at.outer + rows : params_.outside_row;
    return at;
  }

  // Boxes for all of a row's bytes, to the stage's row `row`.
  SLUICE_DEVICE void load(int row, const arch::TensorMap& map, arch::TensorCoordinates at) {
    SLUICE_UNROLL
    for (int box = 0; box < kBoxes; ++box)
      arch::tma_load(ring_.pointer(ring_.stage(at_) + box * (kStageTokens * kRowBytes) + row * kRowBytes), map,
                     {.inner = at.inner + box * kBoxElems, .outer = at.outer, .batch = at.batch}, ring_.full(at_),
                     arch::CachePolicy::evict_first);
  }

  const AttentionParams& params_;
  AttentionRing<config> ring_;
  AttentionPosition at_, items_at_;
  AttentionItem item_{};
  int from_ = 0, to_ = 0;  // tokens of the run
};

}  // namespace sluice
