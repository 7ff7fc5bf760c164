// Which run of which sequence a ticket stands for. Tickets count through the sequences, in each through its runs, and in each run through
// the heads, which lie beside each other in memory. Nobody waits for a ticket that is not drawn.
#pragma once

#include "arch/warp_mma.cuh"
#include "core/attention_config.hpp"
#include "kernel/attention/attention_params.hpp"
#include "kernel/attention/sequences.cuh"

namespace sluice {

inline constexpr std::uint32_t kNobodyCounts = 0xffffffff;  // in a counter: the next one makes it 0

struct AttentionItem {
  int sequence, head, length;
  int first_token;
  int chunk_tokens, chunks;
  int slot;  // as in AttentionStageHeader

  SLUICE_DEVICE int end() const {
    const int end = first_token + chunk_tokens * chunks;
    return end < length ? end : length;
  }
};

// For a whole warp.
class AttentionWorkList {
 public:
  // The first ticket and the lengths are on their way at the same time.
  explicit SLUICE_DEVICE AttentionWorkList(const AttentionParams& params) : params_(params), next_(draw()), sequences_(params) {}

  // The next ticket: asked for when there is room for it, and not before.
  SLUICE_DEVICE void draw_next() { next_ = draw(); }

  // False when no ticket is left.
  SLUICE_DEVICE bool take(AttentionItem& item) {
    const int ticket = arch::from_lane(next_, 0);
    while (ticket >= sequences_.items_behind()) {
      const int behind = sequences_.items_behind();
      if (!sequences_.advance()) return leave(ticket, behind);
    }
    const AttentionSequence s = sequences_.at(sequences_.lane_of_item(ticket));
    const int place = ticket - s.items_before, run = place / params_.heads_kv, begin = s.runs.begin(run);
    const int left = s.chunks.count - begin, most = 1 << s.runs.level(run);
    item = {.sequence = s.number,
            .head = place - run * params_.heads_kv,
            .length = s.length,
            .first_token = s.chunks.first + (begin << s.chunks.tokens_log2),
            .chunk_tokens = s.chunks.tokens(),
            .chunks = left < most ? left : most,
            .slot = s.runs.count == 1 ? kNoSlot : ticket};
    return true;
  }

 private:
  SLUICE_DEVICE int draw() const { return arch::lane() == 0 ? static_cast<int>(arch::atomic_add_relaxed(params_.ticket, 1) + 1) : 0; }

  // Each CTA draws one too many. The last sets the counter back.
  SLUICE_DEVICE bool leave(int ticket, int items) const {
    if (arch::lane() == 0 && ticket == items + arch::ctas_in_grid() - 1) arch::store_relaxed(params_.ticket, kNobodyCounts);
    return false;
  }

  const AttentionParams& params_;
  int next_;  // the first lane's
  AttentionSequences sequences_;
};

}  // namespace sluice
