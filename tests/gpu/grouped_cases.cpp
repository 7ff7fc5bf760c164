#include "grouped_cases.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "packed_weights.hpp"
#include "scaled_cases.hpp"

namespace sluice::gpu_tests {
namespace {

using Rows32 = std::vector<std::int32_t>;

// A generator that is the same everywhere.
class Draw {
 public:
  explicit Draw(std::uint32_t seed) : state_(seed * 2654435761u + 12345u) {}
  std::int32_t below(std::int32_t most) {
    state_ = state_ * 1664525u + 1013904223u;
    return static_cast<std::int32_t>(state_ >> 8) % most;
  }

 private:
  std::uint32_t state_;
};

Rows32 random_rows(int groups, std::int32_t most, std::uint32_t seed) {
  Draw draw(seed);
  Rows32 rows(static_cast<std::size_t>(groups));
  for (std::int32_t& r : rows) r = draw.below(4) == 0 ? draw.below(3) : draw.below(most);
  return rows;
}

GemmCase sized(std::string what, Grouping grouping, std::int64_t m, std::int64_t n, std::int64_t k) {
  GemmCase c{.what = std::move(what)};
  c.problem.m = m;
  c.problem.n = n;
  c.problem.k = k;
  c.problem.grouping = grouping;
  return c;
}

// Groups of FP8 longer than the ring of stages, as many as tests of other kinds have, and sums that are added to.
template <class AddAlongK>
void add_fp8_along_k(std::vector<GemmCase>& cases, const KernelConfig& kernel, int kernel_index, const AddAlongK& add_along_k) {
  if (!resources(kernel).computes_groups_along_k) return;
  constexpr std::int32_t kDeep = 17 * 128;
  const auto turn = static_cast<std::size_t>(kernel_index);
  add_along_k({0, kDeep, 128}, kernel.tile_m + 1, kernel.tile_n - 3, 0, turn % 2 == 0 ? WorkClaim::fixed : WorkClaim::ticket);
  Rows32 depths(std::array<std::size_t, 4>{1, 2, 3, 17}[turn % 4], 0);
  for (std::size_t g = 0; g < depths.size(); ++g) depths[g] = g % 3 == 1 ? 0 : static_cast<std::int32_t>(1 + g % 4) * 128;
  add_along_k(std::move(depths), 72, 136, 0, turn % 2 == 0 ? WorkClaim::ticket : WorkClaim::fixed);
  GemmCase& added_to = cases.back();
  added_to.problem.type_d = DataType::fp32;
  added_to.problem.epilogue = {.beta = 1};
  added_to.c = CPlace::is_d;
}

DataType turn(int i) { return std::array{DataType::bf16, DataType::fp32, DataType::fp16}[static_cast<std::size_t>(i % 3)]; }

}  // namespace

GemmCase ragged_case(const Rows32& rows, std::int64_t n, std::int64_t k, std::int32_t first) {
  GemmCase c = sized(std::to_string(rows.size()) + " ragged groups", Grouping::ragged, 0, n, k);
  c.groups = {first};
  for (const std::int32_t r : rows) c.groups.push_back(c.groups.back() + r);
  c.problem.m = c.groups.back() + first;  // as many rows of no group behind the last as before the first
  return c;
}

GemmCase along_k_case(const Rows32& depths, std::int64_t m, std::int64_t n, std::int32_t first) {
  GemmCase c = sized(std::to_string(depths.size()) + " groups along k", Grouping::along_k, m, n, 0);
  c.groups = {first};
  for (const std::int32_t depth : depths) c.groups.push_back(c.groups.back() + depth);
  c.problem.k = c.groups.back() + first;
  return c;
}

GemmCase masked_case(const Rows32& rows, std::int64_t room, std::int64_t n, std::int64_t k) {
  GemmCase c = sized(std::to_string(rows.size()) + " masked groups", Grouping::masked, room, n, k);
  c.groups = rows;
  return c;
}

// FP8: scales of tiles that begin at a multiple of four rows come as runs, others' as words, one after the other in the same ring.
void add_ragged_runs(std::vector<GemmCase>& cases, const KernelConfig& kernel, int kernel_index, bool small) {
  using enum Scaling;
  constexpr auto kColumns = Layout::column_major;
  constexpr std::array kKinds = {ScaleKind{per_vector_128, per_block_128, kColumns},
                                 ScaleKind{per_vector_128, per_vector_128, kColumns, kColumns}};
  const auto tm = static_cast<std::int32_t>(kernel.tile_m * kernel.cluster_m);
  for (int n = 0; n < 4; ++n) {
    if (small && n != kernel_index % 4) continue;
    GemmCase c = ragged_case({2 * tm, 5, 3, tm + 4, 1, tm + 1, 2, 8}, 2 * kernel.tile_n * kernel.cluster_n + 8, 400, n % 2 * 4);
    c.what += ", scales in runs and words";
    c.options.scheduler = SchedulerKind::data_parallel;
    c.options.claim = n < 2 ? WorkClaim::fixed : WorkClaim::ticket;
    c = with_scales(std::move(c), kernel, 0, std::span(&kKinds[static_cast<std::size_t>(n % 2)], 1));
    c.gap_scale_a_elems = c.gap_scale_b_elems = 0;
    cases.push_back(std::move(c));
  }
}

void add_grouped(std::vector<GemmCase>& cases, const KernelConfig& kernel, int kernel_index, bool small) {
  if (!resources(kernel).computes_groups) return;
  if (is_fp8(kernel.type_b)) add_ragged_runs(cases, kernel, kernel_index, small);
  const bool rows_of_a = kernel.layout_a == Layout::row_major;
  const auto tm = static_cast<std::int32_t>(kernel.tile_m * kernel.cluster_m);
  const std::int64_t cn = kernel.tile_n * kernel.cluster_n;
  const std::int32_t tk = kernel.tile_k;
  int count = kernel_index;
  const auto add = [&](GemmCase c, SchedulerKind kind, WorkClaim claim) {
    if (!rows_of_a && c.problem.grouping == Grouping::ragged) return;
    if (c.problem.grouping == Grouping::along_k && !resources(kernel).computes_groups_along_k) return;
    const bool whole = kind == SchedulerKind::data_parallel;
    if (!whole && !resources(kernel).joins_pieces) return;
    c.what += std::string(", ") + to_string(kind) + ", " + to_string(claim);
    c.options.scheduler = kind;
    c.options.claim = claim;
    if (kind == SchedulerKind::split_k) c.options.splits = 3;
    c.problem.type_d = turn(count);
    c.exactness = count % 2 == 0 ? bench::Exactness::exact : bench::Exactness::bounded;
    switch (count % 5) {
      case 1:
        c.pad_d_elems = 3;  // stored element by element
        break;
      case 2:
        c.problem.epilogue.bias = std::array{Bias::per_column, Bias::per_group_column, Bias::per_row}[static_cast<std::size_t>(count % 3)];
        break;
      case 3:
        c.problem.epilogue.beta = 0.5f;
        c.c = CPlace::own;
        break;
      default:
        c.pad_d_elems = c.problem.grouping == Grouping::masked ? 8 : 0;
        c.gap_d_elems = c.problem.grouping == Grouping::masked && count % 3 == 0 ? 5 : 0;  // no whole number of rows apart
    }
    const bool along_k = c.problem.grouping == Grouping::along_k;
    const auto kinds = along_k ? scale_kinds() : grouped_scale_kinds();
    cases.push_back(with_format(with_scales(std::move(c), kernel, count, kinds), kernel, count));
    ++count;
  };
  // FP8: in whole blocks of 128, at least one where there is anything.
  const auto add_along_k = [&](Rows32 depths, std::int64_t m, std::int64_t n, std::int32_t first, WorkClaim claim) {
    constexpr std::int32_t kBlock = 128;
    const auto whole = [&](std::int32_t depth) { return is_fp8(kernel.type_a) ? (depth + kBlock - 1) / kBlock * kBlock : depth; };
    std::transform(depths.begin(), depths.end(), depths.begin(), whole);
    add(along_k_case(depths, m, n, whole(first)), SchedulerKind::data_parallel, claim);
  };
  using enum SchedulerKind;
  constexpr auto fixed = WorkClaim::fixed, ticket = WorkClaim::ticket;
  const Rows32 edges = {0, 1, tm, 0, tm - 1, tm + 1, 7, 0, 0, 2 * tm + 3, 5};
  if (small) {
    const auto seed = static_cast<std::uint32_t>(kernel_index);
    const std::array all = {std::pair{data_parallel, fixed}, std::pair{hybrid, ticket}, std::pair{stream_k, fixed},
                            std::pair{split_k, ticket}, std::pair{hybrid, fixed}};
    const auto& [kind, claim] = all[static_cast<std::size_t>(kernel_index) % all.size()];
    add(ragged_case({0, 3, tm + 1, 0, 20}, cn + 8, 3 * tk - 8, 2), data_parallel, kernel_index % 2 == 0 ? fixed : ticket);
    add(ragged_case(random_rows(40, 24, seed), 72, 72, 0), data_parallel, fixed);
    add(masked_case({5, 0, tm - 1, tm + 2}, tm + 4, cn, 5 * tk - 16), kind, claim);
    add(ragged_case({tm + 9, 0, 1, 13}, 2 * cn, 4 * tk, 0), kind, claim);
    add_along_k({0, 1, tk + 3, 0, 2 * tk, 20, tk - 1}, tm + 8, cn + 8, 5, fixed);
    add_along_k(random_rows(9, 3 * tk, seed), tm - 8, 72, 0, ticket);
    if (is_fp8(kernel.type_a)) add_fp8_along_k(cases, kernel, kernel_index, add_along_k);
    return;
  }
  if (is_fp8(kernel.type_b))  // more tiles than SMs, some dealt by place
    for (std::uint32_t i = 0; i < 3; ++i) add(masked_case(random_rows(40, tm + 1, i), tm, 4 * cn, 3 * tk), data_parallel, fixed);
  for (const WorkClaim claim : {fixed, ticket}) {
    add(ragged_case(edges, cn + 8, 200, claim == fixed ? 0 : 3), data_parallel, claim);
    add(masked_case(edges, 2 * tm + 3, cn - 8, 136), data_parallel, claim);
    add(ragged_case(edges, 2 * cn, 7 * tk + 16, 1), hybrid, claim);
    add(masked_case(random_rows(17, 2 * tm, 5), 2 * tm, 3 * cn, 5 * tk), hybrid, claim);
    add(ragged_case(random_rows(5, 3 * tm, 6), 2 * cn + 16, 9 * tk - 8, 0), stream_k, claim);
    const Rows32 depths = {0, 1, tk, 0, tk - 1, tk + 1, 7, 0, 0, 2 * tk + 3, 5, 9 * tk - 1};
    add_along_k(depths, tm + 8, 2 * cn - 8, claim == fixed ? 0 : 3, claim);
    add_along_k(random_rows(33, 9 * tk, 7), 2 * tm, cn, 1, claim);
  }
  add(ragged_case(edges, cn, 6 * tk + 8, 2), split_k, ticket);
  for (const int groups : {1, 2, 3, 17, 256}) {
    add(ragged_case(random_rows(groups, groups > 100 ? 40 : 300, static_cast<std::uint32_t>(groups)), 136, 264, 0), data_parallel, fixed);
    add(masked_case(random_rows(groups, 70, static_cast<std::uint32_t>(groups + 1)), 70, 200, 136), data_parallel, ticket);
  }
  for (const int groups : {1, 2, 3, 17, 256})
    add_along_k(random_rows(groups, groups > 100 ? 90 : 700, static_cast<std::uint32_t>(groups + 2)), 136, 72, 0, ticket);
  Rows32 giant(33, 0);
  giant[17] = 11 * tm + 5;
  giant[32] = 1;
  add(ragged_case(giant, 5 * cn, 328, 0), data_parallel, fixed);
  add(ragged_case(giant, 5 * cn, 6 * tk, 0), hybrid, fixed);
  add(ragged_case(Rows32(9, 0), 136, 200, 4), data_parallel, fixed);
  add_along_k(giant, 136, 200, 0, ticket);
  add_along_k(Rows32(9, 0), 136, 200, 4, ticket);
  if (is_fp8(kernel.type_a)) add_fp8_along_k(cases, kernel, kernel_index, add_along_k);
  add(masked_case(Rows32(300, 0), 5, 136, 200), hybrid, ticket);
  // Sizes that say more than there is.
  GemmCase wild = ragged_case({10, 20, 30}, 136, 200, 0);
  wild.groups = {-5, 12, 12, 1000};
  add(wild, data_parallel, fixed);
  wild = along_k_case({10, 20, 70}, 136, 200, 0);
  if (is_fp8(kernel.type_a)) wild.problem.k = 384;
  for (const Rows32& numbers : {Rows32{-5, 62, 12, 1000}, Rows32{1, 130, 255, 383}}) {
    wild.groups = numbers;
    add(wild, data_parallel, fixed);
  }
  wild = masked_case({50, -3, 1000}, 33, 136, 200);
  add(wild, data_parallel, fixed);
}

}  // namespace sluice::gpu_tests
