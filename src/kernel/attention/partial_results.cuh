// What becomes of a chunk's sums: the warps' meet in shared memory, and those of a run's chunks; those of several runs go to the workspace,
// from where row_merge.cuh fetches them.
#pragma once

#include "arch/warp_mma.cuh"
#include "core/attention_config.hpp"
#include "kernel/attention/attention_fragments.cuh"
#include "kernel/attention/attention_params.hpp"
#include "kernel/attention/attention_ring.cuh"
#include "kernel/attention/part_tree.cuh"
#include "kernel/attention/workspace.cuh"

namespace sluice {

template <AttentionConfig config>
class PartialResults {
 public:
  using Sums = typename AttentionFragments<config>::Sums;
  static constexpr int kTiles = tiles_of_warp(config);

  // The header is that of the chunk's last stage.
  SLUICE_DEVICE PartialResults(const AttentionParams& params, const AttentionRing<config>& ring, const AttentionStageHeader& header,
                               int warp)
      : params_(params), ring_(ring), header_(header), warp_(warp), thread_(warp * 32 + arch::lane()) {}

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
      sync();
    }
  }

 private:
  static constexpr int kThreads = consumer_threads(config), kSlices = token_slices(config);
  static constexpr int kVectors = config.head_size / 4;  // of four columns
  static constexpr int kColumns = meeting_columns(config), kPitch = meeting_pitch_bytes(config);
  static constexpr int kConsumersMeet = 1;  // named barrier

  static SLUICE_DEVICE void sync() { arch::named_barrier_sync(kConsumersMeet, kThreads); }
  SLUICE_DEVICE int row(int t, int e) const {
    return warp_ % row_groups(config) * (kTiles * kTileRows) + t * kTileRows + arch::lane() % 4 * 2 + e;
  }
  SLUICE_DEVICE int slice() const { return warp_ / row_groups(config); }
  SLUICE_DEVICE arch::SharedAddress statistics(int slice, int row) const {
    return ring_.statistics() + (slice * even_rows(params_.rows) + row) * 8;
  }
  SLUICE_DEVICE arch::SharedAddress meeting(int slice, int row) const { return ring_.meeting() + (slice * params_.rows + row) * kPitch; }

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
    const bool ends = (header_.flags & kRunEnds) != 0;
    if (header_.chunk > 0 || !ends) x = tree(row, vector).add(x, header_.chunk, 0, ends, vector == 0);
    if (!ends) return;
    if (header_.slot == kNoSlot)
      write_result<config>(params_, header_.sequence, header_.head, row, vector, x);
    else
      publish(row, vector, x);
  }

  SLUICE_DEVICE PartTree tree(int row, int vector) const {
    const int sums_pitch = params_.rows * (config.head_size * 4);
    return {ring_.tree() + row * (config.head_size * 4) + vector * 16, sums_pitch, ring_.tree() + params_.run_levels * sums_pitch + row * 8,
            even_rows(params_.rows) * 8};
  }

  SLUICE_DEVICE void publish(int row, int vector, const RowPart& x) const {
    arch::store_published(partial_sums(params_, config.head_size, header_.slot, row) + vector, {x.o[0], x.o[1], x.o[2], x.o[3]});
    if (vector % kVectorsOfStatistics == 0)
      arch::store_published(partial_statistics(params_, config.head_size, header_.slot, row) + vector / kVectorsOfStatistics,
                            {x.maximum, x.sum, 0, 0});
  }

  const AttentionParams& params_;
  const AttentionRing<config>& ring_;
  const AttentionStageHeader& header_;
  int warp_, thread_;
};

}  // namespace sluice
