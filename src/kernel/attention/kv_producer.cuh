// The producer: one warp, which draws chunks and fetches their queries, keys and values.
#pragma once

#include "arch/warp_mma.cuh"
#include "core/attention_config.hpp"
#include "kernel/attention/attention_params.hpp"
#include "kernel/attention/attention_ring.cuh"
#include "kernel/attention/work_list.cuh"

namespace sluice {

template <AttentionConfig config>
class AttentionProducer {
 public:
  SLUICE_DEVICE AttentionProducer(const AttentionParams& params, std::byte* shared) : params_(params), ring_(params, shared) {}

  SLUICE_DEVICE void run() {
    AttentionWorkList list(params_);
    AttentionItem item{};
    while (list.take(item)) {
      fetch_queries(item);
      fetch_chunk(item);
      q_at_.advance(q_slots(config));
    }
    ring_.wait_empty(at_);
    if (arch::lane() == 0) {
      write_header(item, kNoMoreStages, 0);
      arch::barrier_arrive(ring_.full(at_));
    }
    arch::sync_warp();
  }

 private:
  static constexpr int kBoxes = boxes_per_row(config), kRowBytes = box_row_bytes(config);
  static constexpr int kGroups = kStageTokens / kGroupTokens;

  // A lane a row: tokens x heads of the group.
  SLUICE_DEVICE void fetch_queries(const AttentionItem& item) {
    constexpr int kBytes = config.head_size * 2;
    arch::barrier_wait(ring_.q_empty(q_at_), q_at_.parity ^ 1);
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

  SLUICE_DEVICE void fetch_chunk(const AttentionItem& item) {
    // From the first row that anyone sees, and no further than the last.
    const int seen = params_.window > 0 ? item.length - params_.query_len - params_.window + 1 : 0;
    const int from = item.begin() > seen ? item.begin() : seen, to = item.end();
    int flags = kStageBegins;
    int token = item.begin();
    int page = page_of(item, token);
    do {
      const int next_page = page_of(item, token + kStageTokens);
      if (token + kStageTokens >= to) flags |= kStageEnds;
      if (token >= to) flags |= kStageEmpty;
      if (arch::lane() == 0) wait_and_announce(item, flags, token, to);
      fetch(params_.k, item, page, token, from, to);
      at_.advance(params_.stages);
      if (arch::lane() == 0) wait_and_announce(token, to);
      fetch(params_.v, item, page, token, from, to);
      at_.advance(params_.stages);
      flags = 0;
      page = next_page;
      token += kStageTokens;
    } while (token < to);
  }

  // By one lane: the stage is free, and so many bytes will come.
  SLUICE_DEVICE void wait_and_announce(const AttentionItem& item, int flags, int token, int to) {
    ring_.wait_empty(at_);
    write_header(item, flags, token);
    announce(token, to);
  }
  SLUICE_DEVICE void wait_and_announce(int token, int to) {
    ring_.wait_empty(at_);
    announce(token, to);
  }
  SLUICE_DEVICE void announce(int token, int to) {
    if (token >= to)
      arch::barrier_arrive(ring_.full(at_));
    else
      arch::barrier_arrive_expect_bytes(ring_.full(at_), fetched_tokens(token, to) * kv_row_bytes(config));
  }

  SLUICE_DEVICE void write_header(const AttentionItem& item, int flags, int token) {
    const std::uint32_t low[4] = {static_cast<std::uint32_t>(flags), static_cast<std::uint32_t>(token),
                                  static_cast<std::uint32_t>(item.sequence), static_cast<std::uint32_t>(item.head)};
    const std::uint32_t high[4] = {static_cast<std::uint32_t>(item.length), static_cast<std::uint32_t>(item.chunk),
                                   static_cast<std::uint32_t>(item.chunks.count), static_cast<std::uint32_t>(q_at_.stage)};
    arch::store_shared(ring_.header(at_), low);
    arch::store_shared(ring_.header(at_) + 16, high);
  }

  // Whole blocks are multiplied: of one that is there in part, the rest becomes zeros.
  static SLUICE_DEVICE int fetched_tokens(int token, int to) {
    const int tokens = (to - token + kBlockTokens - 1) / kBlockTokens * kBlockTokens;
    return tokens < kStageTokens ? tokens : kStageTokens;
  }

  // Lane l has the l % 8-th group of eight tokens: its page, or the sequence itself. What is no page becomes one that is outside.
  SLUICE_DEVICE int page_of(const AttentionItem& item, int token) const {
    if (params_.block_table == nullptr) return item.sequence;
    const int mine = token + arch::lane() % kGroups * kGroupTokens;
    const int seen = params_.window > 0 ? item.length - params_.query_len - params_.window + 1 : 0;
    if (mine >= item.end() || mine + kGroupTokens <= seen) return 0;
    const int page = arch::load_global(params_.block_table + item.sequence * params_.block_table_stride + (mine >> params_.page_shift));
    if (page >= 0 && page < params_.pages) return page;
    if (params_.fault != nullptr) arch::store_relaxed(params_.fault, 2);
    return params_.pages;
  }

  // The stage's tokens in [from, to). A box may leave a tensor but not a sequence: what ends inside a box comes in boxes of eight and of one,
  // and boxes from outside the tensor are zeros.
  SLUICE_DEVICE void fetch(const AttentionTensor& tensor, const AttentionItem& item, int page, int token, int from, int to) {
    arch::sync_warp();
    const arch::SharedAddress stage = ring_.stage(at_);
    const int tokens = token >= to ? 0 : fetched_tokens(token, to);
    const bool pages = params_.block_table != nullptr;
    const int many = params_.many_rows, page_mask = pages ? (1 << params_.page_shift) - 1 : -1;
    SLUICE_UNROLL
    for (int work = arch::lane(); work < kGroups * kBoxes; work += 32) {
      const int group = work % kGroups, box = work / kGroups, first = token + group * kGroupTokens;
      if (group * kGroupTokens >= tokens) continue;
      const int large = first / many * many;  // stages and pages begin at its multiples
      const arch::TensorCoordinates at = {.inner = item.head * params_.head_inner + box * (kRowBytes / (config.fp8 ? 1 : 2)),
                                          .outer = first & page_mask,
                                          .batch = page * params_.block_batch + item.head * params_.head_batch};
      const arch::SharedAddress destination = stage + box * (kStageTokens * kRowBytes) + group * (kGroupTokens * kRowBytes);
      if (large >= from && large + many <= to) {
        if (first == large) load(destination, tensor.many, at);
      } else if (first >= from && first + kGroupTokens <= to) {
        load(destination, tensor.eight, at);
      } else if (first >= to || first + kGroupTokens <= from) {
        load(destination, tensor.eight, outside(at));
      } else {
        fetch_one_by_one(tensor, at, destination, from - first, to - first);
      }
    }
    arch::sync_warp();
  }

  SLUICE_DEVICE void fetch_one_by_one(const AttentionTensor& tensor, arch::TensorCoordinates at, arch::SharedAddress destination, int from,
                                      int to) {
    for (int i = 0; i < kGroupTokens; ++i) {
      arch::TensorCoordinates row = at;
      row.outer += i;
      load(destination + i * kRowBytes, tensor.one, i >= from && i < to ? row : outside(at));
    }
  }

  SLUICE_DEVICE arch::TensorCoordinates outside(arch::TensorCoordinates at) const {
    at.outer = params_.outside_row;
    return at;
  }

  SLUICE_DEVICE void load(arch::SharedAddress destination, const arch::TensorMap& map, arch::TensorCoordinates at) {
    arch::tma_load(ring_.pointer(destination), map, at, ring_.full(at_), arch::CachePolicy::evict_first);
  }

  const AttentionParams& params_;
  AttentionRing<config> ring_;
  AttentionPosition at_, q_at_;
};

}  // namespace sluice
