// Which run of which sequence a CTA takes. Runs are counted through the sequences, in each through its runs, and in each run through the
// heads, which lie beside each other in memory. The first that a CTA takes is that of its own number, for which it asks nobody and need not
// wait for the kernel before; the others are drawn.
//
// Whoever brings results together waits for runs, and one that belongs to a CTA which has not begun may never come: that CTA may be waiting
// for the SM. So CTAs say when they begin, in the word that they draw from. Who has drawn one too many and sees, after some looks, that not
// all have begun says so and leaves; the last to begin counts for those that have left before (kernel/attention/row_merge.cuh).
#pragma once

#include "arch/warp_mma.cuh"
#include "core/attention_config.hpp"
#include "kernel/attention/attention_params.hpp"
#include "kernel/attention/sequences.cuh"

namespace sluice {

inline constexpr std::uint32_t kNobodyCounts = 0xffffffff;  // in a counter: the next one makes it 0
// In the word of tickets, likewise: runs drawn, CTAs that have left without waiting for others, CTAs that have begun (kMostCtas at most).
inline constexpr std::uint64_t kNobodyDraws = ~std::uint64_t{0}, kDraws = 1, kLeaves = std::uint64_t{1} << 32,
                               kBegins = std::uint64_t{1} << 48;

struct AttentionItem {
  int sequence, head, length;
  int first_token;
  int chunk_tokens, chunks;
  int slot, merge_counts;  // as in AttentionStageHeader

  SLUICE_DEVICE int end() const {
    const int end = first_token + chunk_tokens * chunks;
    return end < length ? end : length;
  }
};

// For a whole warp.
class AttentionWorkList {
 public:
  explicit SLUICE_DEVICE AttentionWorkList(const AttentionParams& params)
      : params_(params), begun_(params.constant_cache ? 0 : add(kBegins)), sequences_(params) {}

  // False when it has none.
  SLUICE_DEVICE bool take_own(AttentionItem& item) { return find(arch::cta_in_grid(), item); }

  // When the kernel before has finished.
  SLUICE_DEVICE void begin() {
    if (params_.constant_cache) begun_ = add(kBegins);
  }

  // The next ticket: asked for when there is room for it, and not before.
  SLUICE_DEVICE void draw_next() { drawn_ = add(kDraws); }

  // What draw_next() has brought. False when no run is left; then the item says what to do instead.
  SLUICE_DEVICE bool take(AttentionItem& item) {
    const int ticket = arch::from_lane(runs_drawn(drawn_), 0);
    if (find(arch::ctas_in_grid() + ticket, item)) return true;
    item = {
        .sequence = -1, .head = 0, .length = 0, .first_token = 0, .chunk_tokens = 0, .chunks = 0, .slot = kNoSlot, .merge_counts = leave()};
    return false;
  }

 private:
  SLUICE_DEVICE bool find(int number, AttentionItem& item) {
    if (is_over_) return false;
    while (number >= sequences_.items_behind()) {
      is_over_ = !sequences_.advance();
      if (is_over_) return false;
    }
    const AttentionSequence s = sequences_.at(sequences_.lane_of_item(number));
    const int place = number - s.items_before, run = place / params_.heads_kv, begin = s.runs.begin(run);
    const int left = s.chunks.count - begin, most = 1 << s.runs.level(run);
    item = {.sequence = s.number,
            .head = place - run * params_.heads_kv,
            .length = s.length,
            .first_token = s.chunks.first + (begin << s.chunks.tokens_log2),
            .chunk_tokens = s.chunks.tokens(),
            .chunks = left < most ? left : most,
            .slot = s.runs.count == 1 ? kNoSlot : number,
            .merge_counts = 0};
    return true;
  }

  SLUICE_DEVICE std::uint64_t add(std::uint64_t what) const {
    return arch::lane() == 0 ? arch::atomic_add_relaxed(params_.ticket, what) + 1 : 0;
  }

  static SLUICE_DEVICE int runs_drawn(std::uint64_t word) { return static_cast<int>(word); }
  static SLUICE_DEVICE int ctas_left(std::uint64_t word) { return static_cast<int>(word >> 32) & 0xffff; }
  static SLUICE_DEVICE int ctas_begun(std::uint64_t word) { return static_cast<int>(word >> 48); }

  // Returns AttentionStageHeader::merge_counts.
  SLUICE_DEVICE int leave() const {
    int counts = 0;
    if (arch::lane() == 0 && all_have_begun()) counts = 1 + (ctas_begun(begun_) == arch::ctas_in_grid() - 1 ? ctas_left(begun_) : 0);
    return arch::from_lane(counts, 0);
  }
  SLUICE_DEVICE bool all_have_begun() const {
    const int ctas = arch::ctas_in_grid();
    std::uint64_t word = drawn_;
    for (int look = 0; look < kLooks && ctas_begun(word) < ctas; ++look) word = arch::load_relaxed(params_.ticket) + 1;
    if (ctas_begun(word) < ctas) word = add(kLeaves);
    return ctas_begun(word) == ctas;
  }

  static constexpr int kLooks = 8;  // of which each takes memory's time

  const AttentionParams& params_;
  std::uint64_t begun_, drawn_ = 0;  // the first lane's: the word before it added
  AttentionSequences sequences_;
  bool is_over_ = false;
};

}  // namespace sluice
