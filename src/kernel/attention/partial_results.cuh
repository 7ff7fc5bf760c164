// What becomes of a chunk's sums: the warps' meet in shared memory; those of several chunks go to the workspace, where the CTA whose chunk is the
// last to end brings them together, in order. Numbers announce themselves: a word of the workspace is there when it has another pattern than
// kNothingThere. So neither fences nor flags lie between a sum and its use, and a chunk may say that it ends shortly before it does.
#pragma once

#include "arch/warp_mma.cuh"
#include "core/attention_config.hpp"
#include "kernel/attention/attention_fragments.cuh"
#include "kernel/attention/attention_params.hpp"
#include "kernel/attention/attention_ring.cuh"

namespace sluice {

struct AttentionPart {
  int sequence, head, chunk, chunks;
};

template <AttentionConfig config>
class PartialResults {
 public:
  using Sums = typename AttentionFragments<config>::Sums;
  static constexpr int kTiles = tiles_of_warp(config);

  SLUICE_DEVICE PartialResults(const AttentionParams& params, const AttentionRing<config>& ring, const AttentionPart& part, int warp)
      : params_(params), ring_(ring), part_(part), warp_(warp), thread_(warp * 32 + arch::lane()) {}

  // Some time before deliver(): the answer takes a while, and the others may wait for what is to be delivered.
  SLUICE_DEVICE void announce() {
    if (thread_ == 0 && part_.chunks > 1) ended_before_ = arch::atomic_add_relaxed(ended(), 1);
  }

  // Of this lane's rows: the greatest score, the sum of powers, and products, relative to it.
  SLUICE_DEVICE void deliver(const float (&maximum)[kTiles][2], const float (&sum)[kTiles][2], Sums& o) {
    SLUICE_UNROLL
    for (int t = 0; t < kTiles; ++t)
      for (int e = 0; e < 2; ++e)
        if (arch::lane() < 4 && row(t, e) < params_.rows) arch::store_shared(statistics(slice(), row(t, e)), maximum[t][e], sum[t][e]);
    sync();
    scale_to_common_maximum(maximum, o);
    SLUICE_UNROLL
    for (int first = 0; first < config.head_size; first += kColumns) {
      write_sums(first, o);
      sync();
      for (int i = thread_; i < params_.rows * (kColumns / 4); i += kThreads) add_slices(i / (kColumns / 4), first, i % (kColumns / 4) * 4);
      if (first + kColumns == config.head_size && part_.chunks > 1 && thread_ == 0) tell_whether_last();
      sync();
    }
    if (part_.chunks > 1 && was_last()) bring_together();
  }

 private:
  SLUICE_DEVICE void tell_whether_last() const {
    const bool last = ended_before_ + 1 == static_cast<std::uint32_t>(part_.chunks - 1);
    if (last) arch::store_relaxed(ended(), kNobodyCounts);
    arch::store_shared(ring_.last(), last ? 1.0f : 0.0f);
  }
  SLUICE_DEVICE bool was_last() const {
    float last[1];
    arch::load_shared(ring_.last(), last);
    return last[0] != 0;
  }
  SLUICE_DEVICE std::uint32_t* ended() const { return params_.ended + part_.sequence * params_.heads_kv + part_.head; }

  // What all chunks have published, in order.
  SLUICE_DEVICE void bring_together() {
    collect_statistics();
    sync();
    for (int i = thread_; i < params_.rows * kVectors; i += kThreads) add_chunks(i / kVectors, i % kVectors);
    sync();
  }

  static constexpr int kThreads = consumer_threads(config), kSlices = token_slices(config);
  static constexpr int kVectors = config.head_size / 4;  // of four columns
  static constexpr int kColumns = meeting_columns(config), kPitch = meeting_pitch_bytes(config);
  static constexpr int kBatch = 8;  // partial sums that a thread asks for at once
  static constexpr int kConsumersMeet = 1;                        // named barrier

  // Relative to a maximum: the sum of exponentials, and four columns' sums.
  struct RowPart {
    float maximum, sum;
    float o[4];
  };

  static SLUICE_DEVICE void sync() { arch::named_barrier_sync(kConsumersMeet, kThreads); }
  SLUICE_DEVICE int row(int t, int e) const {
    return warp_ % row_groups(config) * (kTiles * kTileRows) + t * kTileRows + arch::lane() % 4 * 2 + e;
  }
  SLUICE_DEVICE int slice() const { return warp_ / row_groups(config); }
  SLUICE_DEVICE arch::SharedAddress statistics(int slice, int row) const {
    return ring_.statistics() + (slice * ((params_.rows + 1) / 2 * 2) + row) * 8;
  }
  SLUICE_DEVICE arch::SharedAddress meeting(int slice, int row) const { return ring_.meeting() + (slice * params_.rows + row) * kPitch; }
  static SLUICE_DEVICE float finite(float maximum) { return maximum == -__builtin_inff() ? 0.0f : maximum; }

  SLUICE_DEVICE void common_statistics(int row, float& maximum, float& sum) const {
    float each[kSlices][2];
    maximum = -__builtin_inff();
    SLUICE_UNROLL
    for (int s = 0; s < kSlices; ++s) {
      arch::load_shared(statistics(s, row), each[s]);
      maximum = arch::maximum(maximum, each[s][0]);
    }
    sum = 0;
    SLUICE_UNROLL
    for (int s = 0; s < kSlices; ++s) sum += each[s][1] * arch::power_of_two(each[s][0] - finite(maximum));
  }

  SLUICE_DEVICE void scale_to_common_maximum(const float (&maximum)[kTiles][2], Sums& o) const {
    if constexpr (kSlices == 1) return;
    SLUICE_UNROLL
    for (int t = 0; t < kTiles; ++t)
      for (int e = 0; e < 2; ++e) {
        float common = 0, sum;
        if (row(t, e) < params_.rows) common_statistics(row(t, e), common, sum);
        const float factor = arch::power_of_two(maximum[t][e] - finite(common));
        for (int n = 0; n < config.head_size / 16; ++n)
          for (int i = e; i < 4; i += 2) o[n][t][i] *= factor;
      }
  }

  SLUICE_DEVICE void write_sums(int first, const Sums& o) const {
    SLUICE_UNROLL
    for (int t = 0; t < kTiles; ++t)
      for (int e = 0; e < 2; ++e) {
        if (row(t, e) >= params_.rows) continue;
        const arch::SharedAddress to = meeting(slice(), row(t, e));
        SLUICE_UNROLL
        for (int n = 0; n < config.head_size / 16; ++n) {
          if (n < first / 16 || n >= (first + kColumns) / 16) continue;
          for (int i = e; i < 4; i += 2) arch::store_shared(to + (AttentionFragments<config>::column(n, i) - first) * 4, o[n][t][i]);
        }
      }
  }

  // Four columns of a row: added up over the slices, and on to where they belong.
  SLUICE_DEVICE void add_slices(int row, int first, int column) const {
    RowPart x{};
    common_statistics(row, x.maximum, x.sum);
    SLUICE_UNROLL
    for (int s = 0; s < kSlices; ++s) {
      float part[4];
      arch::load_shared(meeting(s, row) + column * 4, part);
      for (int i = 0; i < 4; ++i) x.o[i] += part[i];
    }
    const int vector = (first + column) / 4;
    if (part_.chunks > 1)
      publish(row, vector, x);
    else
      write_result(row, vector, x);
  }

  // Of a chunk: a row's sums, then its maximum and sum of exponentials.
  SLUICE_DEVICE arch::Floats4* partial(int chunk) const {
    const std::int64_t part = (std::int64_t{part_.sequence} * params_.heads_kv + part_.head) * params_.most_chunks + chunk;
    return params_.partials + part * partial_vectors(params_.rows, config.head_size);
  }
  SLUICE_DEVICE arch::Floats4* partial_statistics(int chunk, int row) const {
    return partial(chunk) + params_.rows * kVectors + row;
  }

  SLUICE_DEVICE void publish(int row, int vector, const RowPart& x) const {
    arch::store_published(partial(part_.chunk) + row * kVectors + vector, {x.o[0], x.o[1], x.o[2], x.o[3]});
    if (vector == 0) arch::store_published(partial_statistics(part_.chunk, row), {x.maximum, x.sum, 0, 0});
  }

  // Each chunk's maximum and sum of exponentials of each row, to shared memory where the warps' sums met.
  SLUICE_DEVICE arch::SharedAddress collected(int row, int chunk) const { return ring_.meeting() + (row * part_.chunks + chunk) * 8; }
  SLUICE_DEVICE void collect_statistics() const {
    for (int i = thread_; i < params_.rows * part_.chunks; i += kThreads) {
      const int chunk = i / params_.rows, row = i % params_.rows;
      const arch::Floats4 x = take(partial_statistics(chunk, row));
      arch::store_shared(collected(row, chunk), x.values[0], x.values[1]);
    }
  }

  // Waits for a vector, and leaves its place as it was.
  static SLUICE_DEVICE arch::Floats4 take(arch::Floats4* from) { return take(from, arch::load_published(from)); }
  static SLUICE_DEVICE arch::Floats4 take(arch::Floats4* from, arch::Floats4 x) {
    while (!arch::is_published(x)) x = arch::load_published(from);
    arch::unpublish(from);
    return x;
  }

  SLUICE_DEVICE void add_chunks(int row, int vector) const {
    RowPart x{};
    x.maximum = -__builtin_inff();
    for (int chunk = 0; chunk < part_.chunks; ++chunk) {
      float statistics[2];
      arch::load_shared(collected(row, chunk), statistics);
      x.maximum = arch::maximum(x.maximum, statistics[0]);
    }
    for (int first = 0; first < part_.chunks; first += kBatch) {
      arch::Floats4 sums[kBatch];
      SLUICE_UNROLL
      for (int i = 0; i < kBatch; ++i)
        if (first + i < part_.chunks) sums[i] = arch::load_published(partial(first + i) + row * kVectors + vector);
      SLUICE_UNROLL
      for (int i = 0; i < kBatch; ++i)
        if (first + i < part_.chunks) add(x, row, first + i, take(partial(first + i) + row * kVectors + vector, sums[i]));
    }
    write_result(row, vector, x);
  }

  SLUICE_DEVICE void add(RowPart& x, int row, int chunk, const arch::Floats4& sums) const {
    float statistics[2];
    arch::load_shared(collected(row, chunk), statistics);
    const float factor = arch::power_of_two(statistics[0] - finite(x.maximum));
    x.sum += statistics[1] * factor;
    SLUICE_UNROLL
    for (int i = 0; i < 4; ++i) x.o[i] += sums.values[i] * factor;
  }

  SLUICE_DEVICE void write_result(int row, int vector, const RowPart& x) const {
    const int token = row / params_.group, head = part_.head * params_.group + row % params_.group;
    const std::int64_t at =
        (std::int64_t{part_.sequence} * params_.query_len + token) * (params_.heads_kv * params_.group) + head;
    float factor = x.sum == 0 ? 0.0f : arch::reciprocal(x.sum);
    if constexpr (config.fp8) factor *= arch::load_global(params_.v_scales + part_.head);
    struct alignas(8) Pairs {
      std::uint32_t words[2];
    };
    Pairs result;
    SLUICE_UNROLL
    for (int i = 0; i < 2; ++i) {
      const float low = x.o[2 * i] * factor, high = x.o[2 * i + 1] * factor;
      result.words[i] = config.type == DataType::bf16 ? arch::pack_bf16(low, high) : arch::pack_fp16(low, high);
    }
    arch::store_global(static_cast<Pairs*>(params_.o) + at * kVectors + vector, result);
    constexpr float kLn2 = 0.693147181f;
    if (params_.lse != nullptr && vector == 0)
      arch::store_global(params_.lse + at, x.sum == 0 ? -__builtin_inff() : kLn2 * (x.maximum + arch::log_of_two(x.sum)));
  }

  const AttentionParams& params_;
  const AttentionRing<config>& ring_;
  AttentionPart part_;
  int warp_, thread_;
  std::uint32_t ended_before_ = 0;  // the first thread's
};

}  // namespace sluice
