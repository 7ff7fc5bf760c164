// Bringing together the partial results of a sequence and head: done in the CTA whose chunk is the last to end, always in the order of the
// chunks, by warps that do nothing else. A load waits behind all that the copy engine has asked for, several microseconds when memory is busy
// (4 merges of 16 chunks took consumers 15 us each, and everything a quarter longer; H200, 22 November 2026).
#pragma once

#include "arch/warp_mma.cuh"
#include "core/attention_config.hpp"
#include "kernel/attention/attention_params.hpp"
#include "kernel/attention/attention_ring.cuh"
#include "kernel/attention/workspace.cuh"

namespace sluice {

template <AttentionConfig config>
class PartialMerge {
 public:
  SLUICE_DEVICE PartialMerge(const AttentionParams& params, std::byte* shared, int warp)
      : params_(params), ring_(params, shared), thread_(warp * 32 + arch::lane()) {}

  SLUICE_DEVICE void run() {
    AttentionPart part;
    while (next(part))
      if (is_last(part)) {
        for (int i = thread_; i < params_.rows * kVectors; i += kThreads) add_chunks(part, i / kVectors, i % kVectors);
        sync();
        for (int i = thread_; i < params_.rows * part.chunks; i += kThreads)
          arch::unpublish(partial_statistics(params_, part, config.head_size, i / params_.rows, i % params_.rows));
      }
  }

 private:
  static constexpr int kThreads = 32 * kMergingWarps, kVectors = config.head_size / 4;  // of four columns
  static constexpr int kBatch = row_groups(config) == 1 ? 16 : 4;  // chunks that a thread asks for at once
  static constexpr int kMergersMeet = 2;                           // named barrier

  static SLUICE_DEVICE void sync() { arch::named_barrier_sync(kMergersMeet, kThreads); }

  // The next chunk of several that ends here. False: there is none.
  SLUICE_DEVICE bool next(AttentionPart& part) {
    arch::barrier_wait(ring_.ended_full(at_), at_.parity);
    std::uint32_t words[4];
    arch::load_shared(ring_.ended(at_), words);
    part = {.sequence = static_cast<int>(words[0]), .head = static_cast<int>(words[1]), .chunk = 0, .chunks = static_cast<int>(words[2])};
    return part.sequence >= 0;
  }

  // Whether all others of its sequence and head have ended, or will without waiting for anything but memory.
  SLUICE_DEVICE bool is_last(const AttentionPart& part) {
    if (thread_ == 0) {
      std::uint32_t* const ended = params_.ended + part.sequence * params_.heads_kv + part.head;
      const bool last = arch::atomic_add_relaxed(ended, 1) + 1 == static_cast<std::uint32_t>(part.chunks - 1);
      if (last) arch::store_relaxed(ended, kNobodyCounts);
      arch::store_shared(ring_.ended(at_) + 16, last ? 1.0f : 0.0f);
    }
    sync();
    float last[1];
    arch::load_shared(ring_.ended(at_) + 16, last);
    arch::sync_warp();
    if (arch::lane() == 0) arch::barrier_arrive(ring_.ended_empty(at_));
    at_.advance(kEndedSlots);
    return last[0] != 0;
  }

  // Four columns of a row. Statistics are read by several threads, and forgotten when all have them.
  SLUICE_DEVICE void add_chunks(const AttentionPart& part, int row, int vector) const {
    RowPart x{};
    x.maximum = -__builtin_inff();
    for (int first = 0; first < part.chunks; first += kBatch) {
      arch::Floats4 sums[kBatch], statistics[kBatch];
      SLUICE_UNROLL
      for (int i = 0; i < kBatch; ++i) {
        if (first + i >= part.chunks) continue;
        sums[i] = arch::load_published(partial_sums(params_, part, config.head_size, first + i, row) + vector);
        statistics[i] = arch::load_published(partial_statistics(params_, part, config.head_size, first + i, row));
      }
      SLUICE_UNROLL
      for (int i = 0; i < kBatch; ++i) {
        if (first + i >= part.chunks) continue;
        arch::Floats4* const at = partial_sums(params_, part, config.head_size, first + i, row) + vector;
        while (!arch::is_published(sums[i])) sums[i] = arch::load_published(at);
        arch::unpublish(at);
        while (!arch::is_published(statistics[i]))
          statistics[i] = arch::load_published(partial_statistics(params_, part, config.head_size, first + i, row));
        add(x, statistics[i], sums[i]);
      }
    }
    write_result<config>(params_, part, row, vector, x);
  }

  static SLUICE_DEVICE void add(RowPart& x, const arch::Floats4& statistics, const arch::Floats4& sums) {
    const float maximum = arch::maximum(x.maximum, statistics.values[0]);
    const float before = arch::power_of_two(x.maximum - finite(maximum)), now = arch::power_of_two(statistics.values[0] - finite(maximum));
    x.maximum = maximum;
    x.sum = x.sum * before + statistics.values[1] * now;
    SLUICE_UNROLL
    for (int i = 0; i < 4; ++i) x.o[i] = x.o[i] * before + sums.values[i] * now;
  }

  const AttentionParams& params_;
  AttentionRing<config> ring_;
  int thread_;  // of those that merge
  AttentionPosition at_;
};

}  // namespace sluice
