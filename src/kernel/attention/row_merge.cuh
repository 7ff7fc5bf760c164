// Bringing the results of a sequence's runs together, when a CTA finds no run left to take: a warp takes a row of the queries, or part of a
// row, whoever made its parts. Every run that a row waits for has been drawn, by a CTA that waits for nothing before it has ended its runs.
//
// What a row takes is the time of a few hundred instructions in a row, by a warp that has its quarter of the SM to itself, and of fetching
// them: the code is short on purpose, and run through once when there is nothing else to do.
#pragma once

#include "arch/warp_mma.cuh"
#include "core/attention_config.hpp"
#include "kernel/attention/attention_params.hpp"
#include "kernel/attention/attention_ring.cuh"
#include "kernel/attention/part_tree.cuh"
#include "kernel/attention/sequences.cuh"
#include "kernel/attention/work_list.cuh"
#include "kernel/attention/workspace.cuh"

namespace sluice {

template <AttentionConfig config>
class RowMerge {
 public:
  // Asks for lengths: best done while nothing else has come.
  SLUICE_DEVICE RowMerge(const AttentionParams& params, const AttentionRing<config>& ring, int warp)
      : params_(params), sequences_(params), tree_(tree(ring, warp)) {
    count();
  }

  // Tasks are drawn, so that who is late with a run has none. A rehearsal goes through a task that has no runs. `counts`: 1, and of CTAs
  // that have left without bringing anything together.
  SLUICE_DEVICE void run(bool is_rehearsal, int counts) {
    if (!is_rehearsal) draw();
    for (;;) {
      const int task = is_rehearsal ? 0 : arch::from_lane(task_, 0);
      while (task >= tasks_before_ + tasks_of_these_ && !is_rehearsal) {
        tasks_before_ += tasks_of_these_;
        if (!sequences_.advance()) return leave(task, counts);
        count();
      }
      const int lane = is_rehearsal ? 0 : arch::count_lanes(tasks_before_ + tasks_upto_ <= task);
      const AttentionSequence s = sequences_.at(lane);
      merge(is_rehearsal, s, task - tasks_before_ - arch::from_lane(tasks_upto_, lane) + tasks_of(s.runs));
      if (is_rehearsal) return;
    }
  }

 private:
  // Lanes are groups of eight, which have eight neighbouring vectors of four columns, a part of a row. A lane asks for eight runs at once,
  // and for the statistics of one of them.
  static constexpr int kGroupLanes = kVectorsOfStatistics, kGroups = 32 / kGroupLanes, kRunsOfLane = kGroupLanes;
  static constexpr int kMostRunsLog2 = 5;  // of all groups
  static constexpr int kParts = statistics_copies(config.head_size);

  // In the ring, which nothing comes to any more.
  static SLUICE_DEVICE PartTree tree(const AttentionRing<config>& ring, int warp) {
    const arch::SharedAddress base = ring.base() + warp * merging_bytes();
    return {base + arch::lane() * 16, kMergedSumsPitch, base + kMostRunLevels * kMergedSumsPitch + arch::lane() * 8,
            kMergedStatisticsPitch};
  }

  static SLUICE_DEVICE int group() { return arch::lane() / kGroupLanes; }
  static SLUICE_DEVICE int in_group() { return arch::lane() % kGroupLanes; }

  // Groups that share a part, each with runs of its own: 1, 2 or 4.
  static SLUICE_DEVICE int groups_of_part(const AttentionRuns& runs) {
    return runs.count <= kRunsOfLane ? 1 : runs.count <= 2 * kRunsOfLane ? 2 : kGroups;
  }
  static SLUICE_DEVICE int tasks_of_row(const AttentionRuns& runs) { return (kParts * groups_of_part(runs) + kGroups - 1) / kGroups; }
  SLUICE_DEVICE int tasks_of(const AttentionRuns& runs) const {
    return runs.count == 1 ? 0 : params_.heads_kv * params_.rows * tasks_of_row(runs);
  }
  SLUICE_DEVICE void count() {
    const AttentionSequence mine = sequences_.at(arch::lane());
    tasks_upto_ = arch::prefix_sum(mine.number < params_.batch ? tasks_of(mine.runs) : 0);
    tasks_of_these_ = arch::from_lane(tasks_upto_, 31);
  }

  SLUICE_DEVICE void draw() {
    if (arch::lane() == 0) task_ = static_cast<int>(arch::atomic_add_relaxed(params_.merge_ticket, 1) + 1);
  }
  // Each warp draws one too many, and counts for one of each CTA that has left. The last sets the counters back.
  SLUICE_DEVICE void leave(int task, int counts) const {
    if (arch::lane() != 0) return;
    int counted = task + 1;
    if (counts > 1)
      counted = static_cast<int>(arch::atomic_add_relaxed(params_.merge_ticket, static_cast<std::uint32_t>(counts - 1))) + counts;
    if (counted != tasks_before_ + consumer_warps(config) * arch::ctas_in_grid()) return;
    arch::store_relaxed(params_.merge_ticket, kNobodyCounts);
    arch::store_relaxed(params_.ticket, kNobodyDraws);
  }

  // Runs whose results meet at once, and what this lane has of them.
  struct Round {
    int first, runs;
    int level;  // of what they become
    int here;   // runs from this group's first on
    int mine;   // of those, this lane's
    arch::Floats4* sums;
    arch::Floats4* statistics;
  };

  // A row, or a part of it for each group of lanes; or groups share a part, each with runs of its own.
  struct Task {
    AttentionRuns runs;
    int first_slot;  // of the head's runs
    int row, first_part, shared_by;

    SLUICE_DEVICE int part() const { return first_part + group() / shared_by; }
    SLUICE_DEVICE int place() const { return group() & (shared_by - 1); }  // of the group among those that share its part
  };

  SLUICE_DEVICE void merge(bool is_rehearsal, const AttentionSequence& s, int task) {
    const int shared_by = groups_of_part(s.runs), tasks = tasks_of_row(s.runs), row_of_sequence = task / tasks;
    const int head = row_of_sequence / params_.rows, row = row_of_sequence - head * params_.rows;
    const Task t{.runs = s.runs,
                 .first_slot = s.items_before + head,
                 .row = row,
                 .first_part = (task - row_of_sequence * tasks) * (kGroups / shared_by),
                 .shared_by = shared_by};
    RowPart x{};
    int first = 0;
    for (bool is_last = false; !is_last;) {
      const Round r = round(t, first, is_rehearsal);
      first += r.runs;
      is_last = is_rehearsal || first == s.runs.count;
      x = together_in_groups(fetch(r), r.here, shared_by);
      x = tree_.add(x, s.runs.begin(r.first), r.level, is_last, true);
    }
    if (is_rehearsal) return;
    draw();
    if (t.part() < kParts && t.place() == 0) write_result<config>(params_, s.number, head, row, t.part() * kGroupLanes + in_group(), x);
  }

  // From run `first` on a power of two of one length, at a multiple of it, or what is left of them when the sequence ends before.
  SLUICE_DEVICE Round round(const Task& t, int first, bool is_empty) const {
    const bool is_long = first < t.runs.long_count, are_last = !is_long || t.runs.long_count == t.runs.count;
    const int left = (is_long ? t.runs.long_count : t.runs.count) - first, place = t.runs.begin(first) >> t.runs.level(first);
    int log2 = kMostRunsLog2;
    while ((place & ((1 << log2) - 1)) != 0 || (1 << log2 > left && !are_last)) --log2;
    const int runs = is_empty ? 0 : 1 << log2 < left ? 1 << log2 : left, here = runs - t.place() * kRunsOfLane;
    const int mine = t.part() >= kParts || here < 0 ? 0 : here < kRunsOfLane ? here : kRunsOfLane;
    // A lane that has none looks at what another one has, and at nothing that is not this warp's.
    const int slot = t.first_slot + (first + (mine > 0 ? runs - here : 0)) * params_.heads_kv, part = mine > 0 ? t.part() : t.first_part;
    return {.first = first,
            .runs = runs,
            .level = t.runs.level(first) + log2,
            .here = here,
            .mine = mine,
            .sums = partial_sums(params_, config.head_size, slot, t.row) + part * kGroupLanes + in_group(),
            .statistics = partial_statistics(params_, config.head_size, slot, t.row) + part};
  }

  // A lane's runs, brought together when all are there. All are asked for at once, what a lane has too few of in place of others, for
  // nothing is asked for while an answer is looked at. Who has to wait asks for statistics alone: polling is traffic.
  SLUICE_DEVICE RowPart fetch(const Round& r) const {
    arch::Floats4 o[kRunsOfLane] = {}, of_run{};
    const std::int64_t pitch = std::int64_t{params_.heads_kv} * partial_vectors(params_.rows, config.head_size);
    while (r.runs > 0) {
      const arch::Floats4* from = r.sums;
      SLUICE_UNROLL
      for (int i = 0; i < kRunsOfLane; ++i) {
        copy(o[i].values, arch::load_published(from));
        if (i + 1 < r.mine) from += pitch;
      }
      bool complete = fetch_statistics(r, pitch, of_run);
      SLUICE_UNROLL
      for (int i = 0; i < kRunsOfLane; ++i) complete = arch::is_published(o[i]) && complete;
      if (arch::count_lanes(!complete) == 0) break;
    }
    RowPart parts[kRunsOfLane];
    SLUICE_UNROLL
    for (int i = 0; i < kRunsOfLane; ++i) {
      const int lane = group() * kGroupLanes + i;
      parts[i] = {.maximum = arch::from_lane(of_run.values[0], lane),
                  .sum = arch::from_lane(of_run.values[1], lane),
                  .o = {o[i].values[0], o[i].values[1], o[i].values[2], o[i].values[3]}};
    }
    SLUICE_UNROLL
    for (int distance = 1; distance < kRunsOfLane; distance *= 2)
      for (int i = 0; i + distance < kRunsOfLane; i += 2 * distance)
        if (i + distance < r.mine) parts[i] = together(parts[i], parts[i + distance]);
    for (int i = 0; i < r.mine; ++i) arch::unpublish(r.sums + i * pitch);
    if (in_group() < r.mine) arch::unpublish(r.statistics + in_group() * pitch);
    return parts[0];
  }
  SLUICE_DEVICE bool fetch_statistics(const Round& r, std::int64_t pitch, arch::Floats4& of_run) const {
    copy(of_run.values, arch::load_published(r.statistics + (in_group() < r.mine ? in_group() : 0) * pitch));
    return arch::is_published(of_run);
  }

  // With what the groups behind this one have; the first group's result is that of all. `runs` are this group's and those behind it.
  static SLUICE_DEVICE RowPart together_in_groups(RowPart x, int runs, int shared_by) {
    for (int distance = 1; distance < shared_by; distance *= 2) {
      const int other = (arch::lane() + distance * kGroupLanes) % 32;
      const RowPart behind{.maximum = arch::from_lane(x.maximum, other),
                           .sum = arch::from_lane(x.sum, other),
                           .o = {arch::from_lane(x.o[0], other), arch::from_lane(x.o[1], other), arch::from_lane(x.o[2], other),
                                 arch::from_lane(x.o[3], other)}};
      if (runs > distance * kRunsOfLane) x = together(x, behind);
    }
    return x;
  }

  static SLUICE_DEVICE void copy(float (&to)[4], const arch::Floats4& from) {
    SLUICE_UNROLL
    for (int e = 0; e < 4; ++e) to[e] = from.values[e];
  }

  const AttentionParams& params_;
  AttentionSequences sequences_;
  PartTree tree_;
  int task_ = 0;          // the first lane's
  int tasks_before_ = 0;  // of the first lane's sequence
  int tasks_upto_ = 0, tasks_of_these_ = 0;
};

}  // namespace sluice
