// Where a CTA keeps its counts. Each of the three has the same calls, made by all threads of the CTA:
//   clear()            before anything is counted; a barrier follows
//   add(bins, there)   one more in each of these bins of the CTA, unless it is too large or the thread has no samples (`there`)
//   after_batch(...)   a moment to think, every few samples
//   finish()           all that is held in registers goes where the others can see it; a barrier follows
//   add_to_result()
// kTouchesResult: add() may add to the result itself.
#pragma once

#include <cstdint>
#include <type_traits>

#include "arch/counting.cuh"
#include "core/histogram_config.hpp"
#include "kernel/histogram/histogram_params.hpp"

namespace sluice {

// The result, which all CTAs add to.
class HistogramResult {
 public:
  explicit SLUICE_DEVICE HistogramResult(const HistogramParams& params) : counts_(params.counts), wide_(params.wide_counts) {}

  // Modulo 2^32 or 2^64: what is taken away, and added again elsewhere, may go below zero meanwhile.
  SLUICE_DEVICE void add(std::uint32_t bin, std::int64_t count) const {
    if (wide_)
      arch::add_global(static_cast<std::uint64_t*>(counts_) + bin, static_cast<std::uint64_t>(count));
    else
      arch::add_global(static_cast<std::uint32_t*>(counts_) + bin, static_cast<std::uint32_t>(count));
  }

 private:
  void* counts_;
  bool wide_;
};

SLUICE_DEVICE void clear_shared(arch::SharedAddress begin, std::uint32_t words) {
  const std::uint32_t zeros[4] = {0, 0, 0, 0};
  const auto thread = static_cast<std::uint32_t>(arch::warp_in_cta() * 32 + arch::lane());
  for (std::uint32_t i = 4 * thread; i < words; i += 4 * kHistogramThreads) arch::store_shared(begin + 4 * i, zeros);
}

// A word for each bin, or several, of which each lane takes the one of its number.
class WordCounters {
 public:
  static constexpr bool kTouchesResult = false;

  SLUICE_DEVICE WordCounters(const HistogramParams& params, std::uint32_t range)
      : result_(params),
        range_(range),
        range_shift_(params.range_shift),
        bins_((params.bins - range + (1u << params.range_shift) - 1) >> params.range_shift),
        copies_shift_(params.copies_shift),
        begin_(arch::opaque(arch::shared_address(arch::dynamic_shared_memory()))),
        own_(arch::opaque(begin_ + 4 * copy(0))),
        bin_bytes_(4u << params.copies_shift) {}

  SLUICE_DEVICE void clear() const { clear_shared(begin_, bins_ << copies_shift_); }

  // What does not count has the counter behind the last, which nobody reads: cheaper than a branch.
  template <int samples>
  SLUICE_DEVICE void add(const std::uint32_t (&bins)[samples], bool there) const {
    if (!there) return;
    SLUICE_UNROLL
    for (int s = 0; s < samples; ++s) arch::increment_shared(own_ + (bins[s] < bins_ ? bins[s] : bins_) * bin_bytes_);
  }
  // Of bins that all count.
  template <int samples>
  SLUICE_DEVICE void add_inside(const std::uint32_t (&bins)[samples], bool there) const {
    if (!there) return;
    SLUICE_UNROLL
    for (int s = 0; s < samples; ++s) arch::increment_shared(own_ + bins[s] * bin_bytes_);
  }

  SLUICE_DEVICE void after_batch(std::uint32_t, bool) const {}
  SLUICE_DEVICE void finish() const {}

  SLUICE_DEVICE void add_to_result() const {
    const auto thread = static_cast<std::uint32_t>(arch::warp_in_cta() * 32 + arch::lane());
    for (std::uint32_t bin = thread; bin < bins_; bin += kHistogramThreads) {
      std::uint32_t sum = 0;
      // Each lane begins with another copy, so that no two read the same bank.
      for (std::uint32_t i = 0; i >> copies_shift_ == 0; ++i) sum += arch::load_shared_word(begin_ + bin * bin_bytes_ + 4 * copy(i));
      if (sum != 0) result_.add(bin << range_shift_ | range_, sum);
    }
  }

 private:
  SLUICE_DEVICE std::uint32_t copy(std::uint32_t i) const {
    return (static_cast<std::uint32_t>(arch::lane()) + i) & ((1u << copies_shift_) - 1);
  }

  HistogramResult result_;
  std::uint32_t range_, range_shift_, bins_, copies_shift_;
  arch::SharedAddress begin_, own_;
  std::uint32_t bin_bytes_;
};

// The bin that a warp meets most often, counted in registers: lanes that add to one word take turns, and would do so all the time where
// samples are alike.
class CommonBin {
 public:
  static constexpr std::uint32_t kNone = ~0u;

  // Whether this sample, if it counts at all, has been counted here.
  SLUICE_DEVICE bool take(std::uint32_t bin, bool counts) {
    const bool same = counts & (bin == bin_);
    count_ += same ? 1 : 0;
    return same;
  }

  // Whether another bin, that of some lane's sample, is met more often among `bin` of all lanes. It must lead by two: one lane has it
  // anyway.
  SLUICE_DEVICE bool should_become(std::uint32_t bin, std::uint32_t& candidate) {
    const int same = arch::count_lanes(bin == bin_);
    turn_ = (turn_ + 1) & 31;
    candidate = static_cast<std::uint32_t>(arch::from_lane(static_cast<int>(bin), turn_));
    return candidate != bin_ && arch::count_lanes(bin == candidate) > same + 1;
  }
  // Starts anew with that bin; returns what the whole warp had counted of the one before.
  SLUICE_DEVICE std::uint32_t become(std::uint32_t bin) {
    const auto counted = static_cast<std::uint32_t>(arch::warp_sum(static_cast<int>(count_)));
    bin_ = bin;
    count_ = 0;
    return counted;
  }
  SLUICE_DEVICE std::uint32_t bin() const { return bin_; }

 private:
  std::uint32_t bin_ = kNone;  // the same in all lanes
  std::uint32_t count_ = 0;    // of this lane
  int turn_ = 0;
};

// Several bins share a word: 32 / bits of them.
//
// Why the counts are exact. The state of a word is its fields; every addition to it returns the word before, so that whoever adds knows
// what the addition did to each field: one more in the field that was meant, unless it was full; then that field is 0, and the next one has
// one more than it should have, unless it was full, and so on, the last carry leaving the word. Where a field went another way than was
// meant, the difference goes to the result at once. So, after each addition with its corrections, the fields and the result together have
// counted each sample once; corrections only ever add, in any order; and in the end the fields are added to the result.
template <int bits, bool common>
class FieldCounters {
 public:
  static constexpr bool kTouchesResult = true;

  SLUICE_DEVICE FieldCounters(const HistogramParams& params, std::uint32_t range)
      : result_(params),
        range_(range),
        range_shift_(params.range_shift),
        bins_((params.bins - range + (1u << params.range_shift) - 1) >> params.range_shift),
        begin_(arch::opaque(arch::shared_address(arch::dynamic_shared_memory()))),
        nowhere_(arch::opaque(begin_ + 4 * (field_words(bins_, bits) + static_cast<std::uint32_t>(arch::lane())))) {}

  SLUICE_DEVICE void clear() const { clear_shared(begin_, field_words(bins_, bits) + 32); }

  template <int samples>
  SLUICE_DEVICE void add(const std::uint32_t (&bins)[samples], bool there) {
    const std::uint32_t limit = there ? bins_ : 0;
    std::uint32_t before[samples], wrapped = 0;
    // What does not count adds nothing, to a word of its lane's own: cheaper than a branch.
    SLUICE_UNROLL
    for (int s = 0; s < samples; ++s) {
      const bool inside = bins[s] < limit, taken = common && common_.take(bins[s], inside);
      const arch::SharedAddress word = address(bins[s]);
      const std::uint32_t more = one(bins[s]);
      const bool active = inside & !taken;
      before[s] = arch::atomic_add_shared(active ? word : nowhere_, active ? more : 0);
    }
    SLUICE_UNROLL
    for (int s = 0; s < samples; ++s) wrapped |= before[s] & ~(before[s] + one(bins[s]));
    if ((wrapped & kTopBits) != 0) correct_all(bins, before);
  }

  SLUICE_DEVICE void after_batch(std::uint32_t bin, bool there) {
    if (!common) return;
    if (!there || bin >= bins_) bin = CommonBin::kNone - 1;  // equal to no bin
    std::uint32_t candidate;
    if (common_.should_become(bin, candidate) && candidate < bins_) make_common(candidate);
  }
  SLUICE_DEVICE void finish() { make_common(CommonBin::kNone); }

  SLUICE_DEVICE void add_to_result() const {
    const auto thread = static_cast<std::uint32_t>(arch::warp_in_cta() * 32 + arch::lane());
    for (std::uint32_t bin = thread; bin < bins_; bin += kHistogramThreads) {
      const std::uint32_t count = arch::load_shared_word(address(bin)) >> field_shift(bin, bits) & kField;
      if (count != 0) result_.add(in_result(bin), count);
    }
  }

 private:
  static constexpr std::uint32_t kField = (1u << bits) - 1;
  static constexpr std::uint32_t kTopBits = (~0u / kField) << (bits - 1);  // of all fields: one that falls says that its field was full

  SLUICE_DEVICE arch::SharedAddress address(std::uint32_t bin) const { return begin_ + 4 * field_word(bin, bits); }
  static SLUICE_DEVICE std::uint32_t one(std::uint32_t bin) { return 1u << field_shift(bin, bits); }
  SLUICE_DEVICE std::uint32_t in_result(std::uint32_t bin) const { return bin << range_shift_ | range_; }

  // Rare, so that short code matters more than few steps: one copy of it, that has each sample in turn in first place.
  template <int samples>
  SLUICE_DEVICE void correct_all(const std::uint32_t (&bins)[samples], const std::uint32_t (&before)[samples]) const {
    std::uint32_t bin[samples], word[samples];
    SLUICE_UNROLL
    for (int s = 0; s < samples; ++s) {
      bin[s] = bins[s];
      word[s] = before[s];
    }
    SLUICE_NO_UNROLL
    for (int turn = 0; turn < samples; ++turn) {
      correct(bin[0], word[0]);
      SLUICE_UNROLL
      for (int s = 0; s + 1 < samples; ++s) {
        bin[s] = bin[s + 1];
        word[s] = word[s + 1];
      }
    }
  }

  // What one more in `bin`'s field did, apart from that. A sample that was counted nowhere saw a word of 0.
  SLUICE_DEVICE void correct(std::uint32_t bin, std::uint32_t before) const {
    std::uint32_t shift = field_shift(bin, bits);
    if ((before >> shift & kField) != kField) return;
    result_.add(in_result(bin), std::int64_t{1} << bits);
    SLUICE_NO_UNROLL
    for (;;) {
      shift += bits;
      bin += bits;  // whose field is the next one of the word
      if (shift == 32 || bin >= bins_) return;
      const bool full = (before >> shift & kField) == kField;
      result_.add(in_result(bin), full ? std::int64_t{kField} : std::int64_t{-1});
      if (!full) return;
    }
  }

  SLUICE_DEVICE void make_common(std::uint32_t bin) {
    const std::uint32_t last = common_.bin(), counted = common_.become(bin);
    if (counted != 0 && arch::lane() == 0) result_.add(in_result(last), counted);
  }

  HistogramResult result_;
  std::uint32_t range_, range_shift_, bins_;
  arch::SharedAddress begin_, nowhere_;
  CommonBin common_;
};

// No counters but the result's.
class GlobalCounters {
 public:
  static constexpr bool kTouchesResult = true;

  SLUICE_DEVICE GlobalCounters(const HistogramParams& params, std::uint32_t) : result_(params), bins_(params.bins) {}

  SLUICE_DEVICE void clear() const {}

  template <int samples>
  SLUICE_DEVICE void add(const std::uint32_t (&bins)[samples], bool there) {
    const std::uint32_t limit = there ? bins_ : 0;
    SLUICE_UNROLL
    for (int s = 0; s < samples; ++s)
      if (bins[s] < limit && !common_.take(bins[s], true)) result_.add(bins[s], 1);
  }

  SLUICE_DEVICE void after_batch(std::uint32_t bin, bool there) {
    if (!there || bin >= bins_) bin = CommonBin::kNone - 1;
    std::uint32_t candidate;
    if (common_.should_become(bin, candidate) && candidate < bins_) make_common(candidate);
  }
  SLUICE_DEVICE void finish() { make_common(CommonBin::kNone); }
  SLUICE_DEVICE void add_to_result() const {}

 private:
  SLUICE_DEVICE void make_common(std::uint32_t bin) {
    const std::uint32_t last = common_.bin(), counted = common_.become(bin);
    if (counted != 0 && arch::lane() == 0) result_.add(last, counted);
  }

  HistogramResult result_;
  std::uint32_t bins_;
  CommonBin common_;
};

template <HistogramConfig config>
using HistogramCountersOf = std::conditional_t<
    config.counters == HistogramCounters::words, WordCounters,
    std::conditional_t<config.counters == HistogramCounters::global, GlobalCounters, FieldCounters<config.field_bits, config.common_bin>>>;

}  // namespace sluice
