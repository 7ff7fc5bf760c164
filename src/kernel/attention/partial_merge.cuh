// Bringing together the partial results of a sequence and head: done by the consumers whose chunk is the last to end, always in the order
// of the chunks.
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
  SLUICE_DEVICE PartialMerge(const AttentionParams& params, const AttentionRing<config>& ring, const AttentionPart& part, int warp)
      : params_(params), ring_(ring), part_(part), thread_(warp * 32 + arch::lane()) {}

  // That a chunk ends. A stage early: the answer takes a while, and whoever is the last may wait for the others' last stages.
  SLUICE_DEVICE void announce() {
    if (thread_ == 0 && part_.chunks > 1) ended_before_ = arch::atomic_add_relaxed(ended(), 1);
  }

  // By all consumers, when theirs is published.
  SLUICE_DEVICE void finish() {
    if (part_.chunks == 1) return;
    if (thread_ == 0) {
      const bool last = ended_before_ + 1 == static_cast<std::uint32_t>(part_.chunks - 1);
      if (last) arch::store_relaxed(ended(), kNobodyCounts);
      arch::store_shared(ring_.last(), last ? 1.0f : 0.0f);
    }
    sync();
    float last[1];
    arch::load_shared(ring_.last(), last);
    if (last[0] != 0) merge(part_);
  }

 private:
  static constexpr int kThreads = consumer_threads(config), kVectors = config.head_size / 4;  // of four columns
  // Chunks that a thread asks for at once, each for so many vectors: one answer's time is most of what all takes.
  static constexpr int kBatch = row_groups(config) == 1 ? 16 : 8, kVectorsAtOnce = 1;
  static constexpr int kConsumersMeet = 1;  // named barrier

  static SLUICE_DEVICE void sync() { arch::named_barrier_sync(kConsumersMeet, kThreads); }
  SLUICE_DEVICE std::uint32_t* ended() const { return params_.ended + part_.sequence * params_.heads_kv + part_.head; }

  using Batch = arch::Floats4[kVectorsAtOnce][kBatch];

  // The first sums are asked for before statistics are waited for.
  SLUICE_DEVICE void merge(const AttentionPart& part) const {
    Batch batch;
    load(part, thread_, 0, batch);
    collect_statistics(part);
    sync();
    for (int first_vector = thread_; first_vector < params_.rows * kVectors; first_vector += kVectorsAtOnce * kThreads) {
      RowPart x[kVectorsAtOnce];
      SLUICE_UNROLL
      for (int v = 0; v < kVectorsAtOnce; ++v) x[v] = begin(part, first_vector + v * kThreads);
      for (int first_chunk = 0; first_chunk < part.chunks; first_chunk += kBatch) {
        if (first_vector != thread_ || first_chunk != 0) load(part, first_vector, first_chunk, batch);
        take(part, first_vector, first_chunk, batch);
        SLUICE_UNROLL
        for (int v = 0; v < kVectorsAtOnce; ++v)
          if (first_vector + v * kThreads < params_.rows * kVectors) add(first_vector + v * kThreads, first_chunk, batch[v], x[v]);
      }
      SLUICE_UNROLL
      for (int v = 0; v < kVectorsAtOnce; ++v) {
        const int vector = first_vector + v * kThreads;
        if (vector < params_.rows * kVectors) write_result<config>(params_, part, vector / kVectors, vector % kVectors, x[v]);
      }
    }
    sync();  // the statistics have been read
  }

  // Each row's maxima, whole batches of them: those of chunks that are not there are minus infinity. Then its sums.
  SLUICE_DEVICE int padded_chunks() const { return padded_merge_chunks(params_.most_chunks); }
  SLUICE_DEVICE arch::SharedAddress maxima(int row) const { return ring_.merging() + row * padded_chunks() * 8; }
  SLUICE_DEVICE arch::SharedAddress sums(int row) const { return maxima(row) + padded_chunks() * 4; }

  SLUICE_DEVICE void collect_statistics(const AttentionPart& part) const {
    const int padded = (part.chunks + kBatch - 1) / kBatch * kBatch;
    for (int i = thread_; i < params_.rows * padded; i += kThreads) {
      const int chunk = i / params_.rows, row = i - chunk * params_.rows;
      float maximum = -__builtin_inff(), sum = 0;
      if (chunk < part.chunks) {
        arch::Floats4* const from = partial_statistics(params_, part, config.head_size, chunk, row);
        arch::Floats4 x = arch::load_published(from);
        while (!arch::is_published(x)) x = arch::load_published(from);
        arch::unpublish(from);
        maximum = x.values[0];
        sum = x.values[1];
      }
      arch::store_shared(maxima(row) + chunk * 4, maximum);
      arch::store_shared(sums(row) + chunk * 4, sum);
    }
  }

  SLUICE_DEVICE arch::Floats4* place(const AttentionPart& part, int vector, int chunk) const {
    return partial_sums(params_, part, config.head_size, chunk, 0) + vector;
  }

  // What is not there, the first of all is in its place: it counts for nothing.
  SLUICE_DEVICE bool is_there(const AttentionPart& part, int vector, int chunk) const {
    return vector < params_.rows * kVectors && chunk < part.chunks;
  }

  SLUICE_DEVICE void load(const AttentionPart& part, int first_vector, int first_chunk, Batch& batch) const {
    SLUICE_UNROLL
    for (int v = 0; v < kVectorsAtOnce; ++v) SLUICE_UNROLL
    for (int i = 0; i < kBatch; ++i) {
      const arch::Floats4 x = is_there(part, first_vector + v * kThreads, first_chunk + i)
                                  ? arch::load_published(place(part, first_vector + v * kThreads, first_chunk + i))
                                  : arch::Floats4{};
      SLUICE_UNROLL
      for (int e = 0; e < 4; ++e) batch[v][i].values[e] = x.values[e];
    }
  }

  // All of a batch is there when one look finds nothing missing; and its places are left as they were.
  SLUICE_DEVICE void take(const AttentionPart& part, int first_vector, int first_chunk, Batch& batch) const {
    for (;;) {
      bool complete = true;
      SLUICE_UNROLL
      for (int v = 0; v < kVectorsAtOnce; ++v) SLUICE_UNROLL
      for (int i = 0; i < kBatch; ++i) complete = arch::is_published(batch[v][i]) && complete;
      if (complete) break;
      load(part, first_vector, first_chunk, batch);
    }
    SLUICE_UNROLL
    for (int v = 0; v < kVectorsAtOnce; ++v) SLUICE_UNROLL
    for (int i = 0; i < kBatch; ++i)
      if (is_there(part, first_vector + v * kThreads, first_chunk + i))
        arch::unpublish(place(part, first_vector + v * kThreads, first_chunk + i));
  }

  SLUICE_DEVICE RowPart begin(const AttentionPart& part, int vector) const {
    RowPart x{};
    x.maximum = -__builtin_inff();
    if (vector >= params_.rows * kVectors) return x;
    for (int chunk = 0; chunk < part.chunks; chunk += 4) {
      float four[4];
      arch::load_shared(maxima(vector / kVectors) + chunk * 4, four);
      for (int i = 0; i < 4; ++i) x.maximum = arch::maximum(x.maximum, four[i]);
    }
    return x;
  }

  SLUICE_DEVICE void add(int vector, int first_chunk, const arch::Floats4 (&parts)[kBatch], RowPart& x) const {
    const int row = vector / kVectors;
    SLUICE_UNROLL
    for (int i = 0; i < kBatch; i += 4) {
      float maximum[4], sum[4];
      arch::load_shared(maxima(row) + (first_chunk + i) * 4, maximum);
      arch::load_shared(sums(row) + (first_chunk + i) * 4, sum);
      SLUICE_UNROLL
      for (int c = 0; c < 4; ++c) {
        const float factor = arch::power_of_two(maximum[c] - finite(x.maximum));
        x.sum += sum[c] * factor;
        SLUICE_UNROLL
        for (int e = 0; e < 4; ++e) x.o[e] += parts[i + c].values[e] * factor;
      }
    }
  }

  const AttentionParams& params_;
  const AttentionRing<config>& ring_;
  AttentionPart part_;
  int thread_;
  std::uint32_t ended_before_ = 0;  // the first thread's
};

}  // namespace sluice
