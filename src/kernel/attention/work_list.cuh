// Which chunk of which sequence a ticket stands for. Tickets count through the sequences, in each through its chunks, and in each chunk
// through the heads, which lie beside each other in memory. Nobody waits for a ticket that is not drawn.
#pragma once

#include "arch/warp_mma.cuh"
#include "core/attention_config.hpp"
#include "kernel/attention/attention_params.hpp"

namespace sluice {

inline constexpr std::uint32_t kNobodyCounts = 0xffffffff;  // in a counter: the next one makes it 0

struct AttentionItem {
  int sequence, head, chunk;
  int length;
  AttentionChunks chunks;

  SLUICE_DEVICE int begin() const { return chunks.first + chunk * chunks.tokens; }
  SLUICE_DEVICE int end() const {
    const int end = begin() + chunks.tokens;
    return end < length ? end : length;
  }
};

// For a whole warp, which knows 32 sequences at a time.
class AttentionWorkList {
 public:
  explicit SLUICE_DEVICE AttentionWorkList(const AttentionParams& params) : params_(params), next_(arch::cta_in_grid()) { read_lengths(); }

  // False when no ticket is left.
  SLUICE_DEVICE bool take(AttentionItem& item) {
    const int ticket = arch::from_lane(next_, 0);
    while (ticket >= before_ + total_) {
      before_ += total_;
      first_ += 32;
      if (first_ >= params_.batch) return leave(ticket);
      read_lengths();
    }
    draw();
    const int lane = arch::count_lanes(before_ + upto_ <= ticket);
    item.sequence = first_ + lane;
    item.length = arch::from_lane(length_, lane);
    item.chunks = chunks_of(item.length);
    const int place = ticket - before_ - arch::from_lane(upto_ - items_, lane);
    item.chunk = place / params_.heads_kv;
    item.head = place - item.chunk * params_.heads_kv;
    return true;
  }

 private:
  SLUICE_DEVICE AttentionChunks chunks_of(int length) const {
    return attention_chunks(length, params_.query_len, params_.window, params_.least_chunk, params_.most_chunks);
  }

  SLUICE_DEVICE void read_lengths() {
    const int sequence = first_ + arch::lane();
    length_ = items_ = 0;
    if (sequence < params_.batch) {
      length_ = params_.lengths == nullptr ? params_.max_kv_len : arch::load_global(params_.lengths + sequence);
      const bool wrong = length_ < 0 || length_ > params_.max_kv_len;
      if (wrong && params_.fault != nullptr) arch::store_relaxed(params_.fault, 1);
      if (wrong) length_ = length_ < 0 ? 0 : params_.max_kv_len;
      items_ = chunks_of(length_).count * params_.heads_kv;
    }
    upto_ = arch::prefix_sum(items_);
    total_ = arch::from_lane(upto_, 31);
  }

  // The next one, long before it is needed: nothing waits for the answer here.
  SLUICE_DEVICE void draw() {
    if (arch::lane() == 0) next_ = static_cast<int>(arch::atomic_add_relaxed(params_.ticket, 1) + 1) + arch::ctas_in_grid();
  }

  // Each of the CTAs that had a ticket draws one too many, so that as many are drawn as there are items. The last sets the counter back.
  SLUICE_DEVICE bool leave(int ticket) {
    if (arch::lane() == 0 && ticket - arch::ctas_in_grid() == before_ - 1) arch::store_relaxed(params_.ticket, kNobodyCounts);
    return false;
  }

  const AttentionParams& params_;
  int next_;                    // the first lane's
  int first_ = 0, before_ = 0;  // sequence of the first lane, and items before it
  int length_ = 0, items_ = 0, upto_ = 0, total_ = 0;
};

}  // namespace sluice
