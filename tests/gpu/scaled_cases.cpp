#include "scaled_cases.hpp"

#include <array>

namespace sluice::gpu_tests {
namespace {

using enum Scaling;
constexpr auto kRows = Layout::row_major, kColumns = Layout::column_major;

// As many as a prime, both: whatever else goes in turn meets all of them.
constexpr std::array kKinds = {ScaleKind{per_vector_128, per_block_128, kColumns, kRows},
                               ScaleKind{per_vector_128, per_vector_128, kRows, kColumns},
                               ScaleKind{per_block_128, per_block_128, kRows, kColumns, 3, 0},
                               ScaleKind{per_vector_128, per_block_128, kRows, kColumns, 1, 2},
                               ScaleKind{per_vector_128, per_vector_128, kColumns, kRows, 5, 3},
                               ScaleKind{per_block_128, per_vector_128, kColumns, kColumns, 0, 1},
                               ScaleKind{per_block_128, per_block_128, kColumns, kRows, 0, 4},
                               ScaleKind{},
                               ScaleKind{per_tensor, per_tensor},
                               ScaleKind{per_vector, per_vector},
                               ScaleKind{per_vector, per_block_128},
                               ScaleKind{per_vector_128, per_tensor, kColumns},
                               ScaleKind{none, per_vector_128, kRows, kColumns}};
constexpr std::size_t kBlockKinds = 7;
// Beside weights of 4 bits.
constexpr std::array kKindsOfA = {ScaleKind{per_vector, none}, ScaleKind{per_tensor, none}, ScaleKind{none, none}};

constexpr std::array<std::int64_t, 9> kEdges = {1, 7, 63, 64, 65, 127, 128, 129, 260};
constexpr std::array<std::int64_t, 7> kDepths = {16, 112, 128, 144, 1000, 1, 256};

}  // namespace

std::span<const ScaleKind> scale_kinds() { return kKinds; }
std::span<const ScaleKind> grouped_scale_kinds() {
  static constexpr std::array kGrouped = {kKinds[0], kKinds[1], kKinds[3], kKinds[4], kKinds[8], kKinds[9], kKinds[10], kKinds[11]};
  return kGrouped;
}
std::span<const ScaleKind> block_scale_kinds() { return std::span(kKinds).first(kBlockKinds); }

GemmCase with_scales(GemmCase c, const KernelConfig& kernel, int n, std::span<const ScaleKind> kinds) {
  if (!is_fp8(kernel.type_a)) return c;
  if (kernel.type_b == DataType::int4) kinds = kKindsOfA;
  const ScaleKind& kind = kinds[static_cast<std::size_t>(n) % kinds.size()];
  GemmProblem& p = c.problem;
  p.scaling_a = kind.a;
  p.scaling_b = kind.b;
  p.scale_layout_a = kind.layout_a;
  p.scale_layout_b = kind.layout_b;
  c.pad_scale_a_elems = kind.pad_a_elems;
  c.pad_scale_b_elems = kind.pad_b_elems;
  c.offset_scale_elems = n % 2;
  c.gap_scale_a_elems = std::array{0, -1, 5}[static_cast<std::size_t>(n / 2 % 3)];
  c.gap_scale_b_elems = std::array{-1, 3, 0}[static_cast<std::size_t>(n % 3)];
  for (int* elems : {&c.pad_a_elems, &c.pad_b_elems, &c.gap_a_elems, &c.gap_b_elems, &c.offset_a_elems, &c.offset_b_elems})
    if (*elems > 0) *elems *= 2;
  // Terms are up to 4 * 4 * 4 * 4, and multiples of 1/16: their sum may take 12 bits more than k does.
  constexpr std::int64_t kDeepestExact = 4096;
  if (p.k > kDeepestExact) c.exactness = bench::Exactness::bounded;
  return c;
}

void add_scaled(std::vector<GemmCase>& cases, const KernelConfig& kernel, int kernel_index) {
  const std::int64_t cm = kernel.tile_m * kernel.cluster_m, cn = kernel.tile_n * kernel.cluster_n;
  int count = 3 * kernel_index;
  const auto turn = [&count](const auto& values) { return values[static_cast<std::size_t>(count) % values.size()]; };
  const auto add = [&](int kind, const char* what, std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batch) {
    GemmCase c{.what = what};
    c.problem.m = m;
    c.problem.n = n;
    c.problem.k = k;
    c.problem.batch = batch;
    c.problem.type_d = turn(std::array{DataType::bf16, DataType::fp32, DataType::fp16});
    c.exactness = turn(std::array{bench::Exactness::exact, bench::Exactness::bounded});
    c.pad_a_elems = turn(std::array{0, 8, 0, 0, 24});
    c.gap_b_elems = turn(std::array{0, -1, 8, 0});
    cases.push_back(with_scales(std::move(c), kernel, kind));
    ++count;
  };
  for (int kind = 0; kind < static_cast<int>(kKinds.size()); ++kind) {
    for (int i = 0; i < 4; ++i) {
      const std::int64_t m = turn(kEdges), k = turn(kDepths);
      const auto n = static_cast<std::size_t>(count + i + 1 + kind) % kEdges.size();
      add(kind, "scaled edge", m, kEdges[n], k, 1);
    }
    add(kind, "scaled, several tiles", 2 * cm + 129, 3 * cn - 7, 1000, 1);
    add(kind, "scaled, many tiles", 11 * cm - 5, 13 * cn + 8, 528, 1);
    for (int i = 0; i < 3; ++i) add(kind + i * static_cast<int>(kKinds.size()), "scaled batch", cm + 1, 136 + 5 * i, 272 - 16 * i, 3);
  }
}

void add_runs(std::vector<GemmCase>& cases, const KernelConfig& kernel, int kernel_index, bool small) {
  struct Placement {
    int offset, pad, rest;
  };
  constexpr std::array kRunKinds = {ScaleKind{per_vector_128, per_block_128, kColumns, kRows},
                                    ScaleKind{per_vector_128, per_vector_128, kColumns, kColumns},
                                    ScaleKind{per_block_128, per_vector_128, kRows, kColumns}};
  constexpr std::array<Placement, 6> kPlacements = {{{0, 0, 4}, {4, 4, 12}, {0, 8, 0}, {1, 0, 4}, {0, 3, 4}, {0, 0, 3}}};
  const std::int64_t tiles = small ? 1 : 2, tm = kernel.tile_m * kernel.cluster_m, tn = kernel.tile_n * kernel.cluster_n;
  int count = kernel_index;
  for (const ScaleKind& kind : kRunKinds)
    for (const Placement& at : kPlacements) {
      ++count;
      if (small && count % 9 != 0) continue;
      GemmCase c{.what = "scales in runs"};
      c.problem.m = tiles * tm + 64 + at.rest;
      c.problem.n = tiles * tn + 8 - at.rest % 4;
      c.problem.k = std::array{1000, 384, 528}[static_cast<std::size_t>(count % 3)];
      c.problem.batch = count % 4 == 0 ? 3 : 1;
      c = with_scales(std::move(c), kernel, 0, std::span(&kind, 1));
      c.exactness = count % 2 == 0 ? bench::Exactness::exact : bench::Exactness::bounded;
      c.offset_scale_elems = at.offset;
      c.pad_scale_a_elems = c.pad_scale_b_elems = at.pad;
      c.gap_scale_a_elems = c.gap_scale_b_elems = count % 3 == 0 ? 4 : 0;
      cases.push_back(std::move(c));
    }
  // Many tiles for each CTA, whose K ends inside a stage of 256: runs come where zeros were.
  if (kernel.tile_k <= 128) return;
  GemmCase c{.what = "runs over zeros"};
  c.problem.m = 3 * tm;
  c.problem.n = 10 * tn + 8;
  c.problem.k = 640;
  cases.push_back(with_scales(std::move(c), kernel, 0, std::span(&kRunKinds[1], 1)));
}

}  // namespace sluice::gpu_tests
