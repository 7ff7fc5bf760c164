// How sequences are cut, for a whole warp that knows 32 of them at a time, and what stands before those.
#pragma once

#include "arch/warp_mma.cuh"
#include "core/attention_config.hpp"
#include "kernel/attention/attention_params.hpp"

namespace sluice {

SLUICE_DEVICE void report_fault(const AttentionParams& params, std::uint32_t fault) {
  if (params.fault == nullptr) return;
  arch::wait_for_predecessor();  // where nobody has waited: the cache is constant, the word is not
  arch::store_relaxed(params.fault, fault);
}

struct AttentionSequence {
  int number, length;
  int items_before;  // runs times heads
  AttentionChunks chunks;
  AttentionRuns runs;
};

class AttentionSequences {
 public:
  explicit SLUICE_DEVICE AttentionSequences(const AttentionParams& params) : params_(params) {
    read();
    int grains = grains_;
    for (int sequence = 32 + arch::lane(); sequence < params_.batch; sequence += kLoadsAtOnce * 32) {
      SLUICE_UNROLL
      for (int i = 0; i < kLoadsAtOnce; ++i) {
        const int length = sequence + i * 32 < params_.batch ? possible(stored_length(sequence + i * 32)) : 0;
        grains += grains_of(chunks_of(length), length);
      }
    }
    grains_of_all_ = arch::warp_sum(grains);
    run_grains_log2_ = arch::exponent(static_cast<float>(grains_of_all_) * params_.long_run);
    count();
  }

  SLUICE_DEVICE int first() const { return first_; }
  SLUICE_DEVICE int items_behind() const { return items_before_ + items_of_these_; }  // before the next 32

  // The next 32; false when there are none.
  SLUICE_DEVICE bool advance() {
    items_before_ += items_of_these_;
    grains_before_ += arch::from_lane(grains_upto_, 31);
    first_ += 32;
    if (first_ >= params_.batch) return false;
    read();
    count();
    return true;
  }

  // Which of these an item belongs to.
  SLUICE_DEVICE int lane_of_item(int item) const { return arch::count_lanes(items_before_ + items_upto_ <= item); }

  SLUICE_DEVICE AttentionSequence at(int lane) const {
    AttentionSequence s{.number = first_ + lane, .length = arch::from_lane(length_, lane), .items_before = 0, .chunks = {}, .runs = {}};
    s.chunks = chunks_of(s.length);
    s.runs = runs_of(s.chunks, arch::from_lane(grains_upto_ - grains_, lane));
    s.items_before = items_before_ + arch::from_lane(items_upto_, lane) - s.runs.count * params_.heads_kv;
    return s;
  }

 private:
  static constexpr int kLoadsAtOnce = 8;

  SLUICE_DEVICE AttentionChunks chunks_of(int length) const {
    return attention_chunks(length, params_.query_len, params_.window, params_.least_chunk_log2, params_.most_chunks);
  }
  SLUICE_DEVICE AttentionRuns runs_of(const AttentionChunks& chunks, int grains_before) const {
    return attention_runs(chunks, grains_before_ + grains_before, grains_of_all_, run_grains_log2_, params_.run_levels);
  }

  SLUICE_DEVICE int stored_length(int sequence) const {
    return params_.lengths == nullptr ? params_.max_kv_len : arch::load_global(params_.lengths + sequence);
  }
  SLUICE_DEVICE int possible(int length) const { return length < 0 ? 0 : length > params_.max_kv_len ? params_.max_kv_len : length; }

  SLUICE_DEVICE void read() {
    const int sequence = first_ + arch::lane();
    const int stored = sequence < params_.batch ? stored_length(sequence) : 0;
    length_ = possible(stored);
    if (length_ != stored) report_fault(params_, 1);
    grains_ = grains_of(chunks_of(length_), length_);
  }

  SLUICE_DEVICE void count() {
    grains_upto_ = arch::prefix_sum(grains_);
    const bool is_there = first_ + arch::lane() < params_.batch;
    items_upto_ = arch::prefix_sum(is_there ? runs_of(chunks_of(length_), grains_upto_ - grains_).count * params_.heads_kv : 0);
    items_of_these_ = arch::from_lane(items_upto_, 31);
  }

  const AttentionParams& params_;
  int grains_of_all_ = 0, run_grains_log2_ = 0;
  int first_ = 0, items_before_ = 0, grains_before_ = 0;  // of the first lane's sequence
  int length_ = 0, grains_ = 0, grains_upto_ = 0;         // this lane's
  int items_upto_ = 0, items_of_these_ = 0;
};

}  // namespace sluice
