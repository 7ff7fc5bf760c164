// The histogram kernel: a CTA counts its samples where `Counters` keeps them, mostly in shared memory, and adds them to the result in the
// end. core/histogram_config.hpp says who counts what.
#pragma once

#include <cstdint>
#include <type_traits>

#include "arch/counting.cuh"
#include "core/histogram_config.hpp"
#include "kernel/histogram/counters.cuh"
#include "kernel/histogram/histogram_params.hpp"
#include "kernel/histogram/sample_bins.cuh"

namespace sluice {

template <HistogramConfig config>
class HistogramKernel {
 public:
  explicit SLUICE_DEVICE HistogramKernel(const HistogramParams& params)
      : params_(params),
        counters_(params, range_of_cta(params)),
        bins_(params, range_of_cta(params)),
        thread_(arch::warp_in_cta() * 32 + arch::lane()) {}

  SLUICE_DEVICE void run() {
    counters_.clear();
    arch::allow_successor();
    // Samples may be read as soon as the kernel that clears the counts runs; the counts themselves may not be touched.
    if (Counters::kTouchesResult || !params_.after_clearing) arch::wait_for_predecessor();
    arch::sync_cta();
    count_vectors();
    count_loose_ends();
    counters_.finish();
    arch::sync_cta();
    if (!Counters::kTouchesResult && params_.after_clearing) arch::wait_for_predecessor();
    counters_.add_to_result();
  }

 private:
  using Counters = HistogramCountersOf<config>;
  using Vector = std::uint32_t[4];
  static constexpr int kSamples = samples_per_vector(config.sample);
  static constexpr int kBatch = histogram_batch(config.counters);

  static SLUICE_DEVICE std::uint32_t range_of_cta(const HistogramParams& p) {
    return static_cast<std::uint32_t>(arch::cta_in_grid()) & ((1u << p.range_shift) - 1);
  }

  // Two batches take turns: one is on its way while the other is counted.
  SLUICE_DEVICE void count_vectors() {
    const std::uint64_t group = static_cast<std::uint64_t>(arch::cta_in_grid()) >> params_.range_shift;
    const std::uint64_t step_bytes = std::uint64_t{params_.groups} * (kHistogramThreads * 16);  // from one vector of a thread to its next
    const auto* cta_at = static_cast<const std::uint8_t*>(params_.vectors) + group * (kHistogramThreads * 16);
    const std::uint8_t* const end = static_cast<const std::uint8_t*>(params_.vectors) + params_.vector_count * 16;
    Vector even[kBatch], odd[kBatch];
    fetch(cta_at, end, step_bytes, even);
    while (cta_at < end) {
      fetch(cta_at + kBatch * step_bytes, end, step_bytes, odd);
      count(cta_at, end, step_bytes, even);
      cta_at += kBatch * step_bytes;
      if (cta_at >= end) break;
      fetch(cta_at + kBatch * step_bytes, end, step_bytes, even);
      count(cta_at, end, step_bytes, odd);
      cta_at += kBatch * step_bytes;
    }
  }

  SLUICE_DEVICE void fetch(const std::uint8_t* cta_at, const std::uint8_t* end, std::uint64_t step_bytes, Vector (&batch)[kBatch]) const {
    // What several CTAs look at stays in L2 until the last has come.
    const arch::CachePolicy policy = params_.range_shift == 0 ? arch::CachePolicy::evict_first : arch::CachePolicy::evict_normal;
    SLUICE_UNROLL
    for (int i = 0; i < kBatch; ++i) {
      const std::uint8_t* const at = cta_at + i * step_bytes + 16 * thread_;
      arch::load_vector(at, at < end, policy, batch[i]);
    }
  }

  SLUICE_DEVICE void count(const std::uint8_t* cta_at, const std::uint8_t* end, std::uint64_t step_bytes, const Vector (&batch)[kBatch]) {
    const std::uint8_t* const at = cta_at + 16 * thread_;
    SLUICE_UNROLL
    for (int i = 0; i < kBatch; ++i) count_vector(batch[i], at + i * step_bytes < end);
    counters_.after_batch(bins_.of_word(batch[0], 0), at < end);
  }

  SLUICE_DEVICE void count_vector(const Vector& words, bool there) {
    std::uint32_t bins[kSamples];
    if constexpr (config.sample == HistogramSample::uint8) {
      // Of 256 bins a byte is one, as it is.
      if (params_.bins_are_bytes) {
        SLUICE_UNROLL
        for (int s = 0; s < kSamples; ++s) bins[s] = words[s / 4] >> (8 * (s % 4)) & 0xff;
        counters_.add_inside(bins, there);
        return;
      }
    }
    SLUICE_UNROLL
    for (int s = 0; s < kSamples; ++s) bins[s] = bins_.of_word(words, s);
    counters_.add(bins, there);
  }

  // What does not fill a vector: the first CTAs, one of each range, count it, a sample a thread.
  SLUICE_DEVICE void count_loose_ends() {
    if (params_.head_elems + params_.tail_elems == 0 || arch::cta_in_grid() >> params_.range_shift != 0) return;
    const int i = thread_;
    const bool there = i < params_.head_elems + params_.tail_elems;
    const bool in_head = i < params_.head_elems;
    std::uint32_t bin[1] = {0};
    if (there) bin[0] = bins_.of_sample(in_head ? params_.head : params_.tail, in_head ? i : i - params_.head_elems);
    counters_.add(bin, there);
  }

  const HistogramParams& params_;
  Counters counters_;
  SampleBins<config> bins_;
  int thread_;  // in the CTA
};

template <HistogramConfig config>
SLUICE_DEVICE void run_histogram_kernel(const HistogramParams& params) {
  HistogramKernel<config>(params).run();
}

// Before a kernel that adds to them: the counts are 0.
SLUICE_DEVICE void run_clear_counts(const HistogramParams& params) {
  arch::wait_for_predecessor();
  arch::allow_successor();
  const int thread = arch::cta_in_grid() * kClearThreads + arch::warp_in_cta() * 32 + arch::lane();
  if (static_cast<std::uint32_t>(thread) >= params.result_bins) return;
  if (params.wide_counts)
    arch::store_global(static_cast<std::uint64_t*>(params.counts) + thread, std::uint64_t{0});
  else
    arch::store_global(static_cast<std::uint32_t*>(params.counts) + thread, 0u);
}

}  // namespace sluice
