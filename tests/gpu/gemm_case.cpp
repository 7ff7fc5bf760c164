#include "gemm_case.hpp"

#include <algorithm>
#include <array>

#include "grouped_cases.hpp"
#include "packed_weights.hpp"
#include "scaled_cases.hpp"
#include "sluice/w4.hpp"

namespace sluice::gpu_tests {
namespace {

constexpr int kTmaBytes = 16;
constexpr int kPackedGapBytes = 512;  // between matrices of weights of 4 bits

std::int64_t round_up(std::int64_t value, std::int64_t unit) { return (value + unit - 1) / unit * unit; }

int alignment_of(int offset_elems, int element_bytes) {
  int bytes = 16;
  while (offset_elems * element_bytes % bytes != 0) bytes /= 2;
  return bytes;
}

std::int64_t span(std::int64_t vectors, std::int64_t length, std::int64_t leading, std::int64_t batch, std::int64_t stride) {
  if (vectors == 0 || length == 0 || batch == 0) return 0;
  return (batch - 1) * stride + (vectors - 1) * leading + length;
}

// Around the sizes of tiles, swizzles and vectors, and primes that fit none of them.
constexpr std::array<std::int64_t, 17> kEdges = {1, 2, 7, 8, 9, 31, 63, 64, 65, 127, 128, 129, 255, 256, 257, 521, 4097};

GemmCase sized(std::string what, std::int64_t m, std::int64_t n, std::int64_t k) {
  GemmCase c{.what = std::move(what)};
  c.problem.m = m;
  c.problem.n = n;
  c.problem.k = k;
  return c;
}

DataType turn(int i) { return std::array{DataType::bf16, DataType::fp32, DataType::fp16}[static_cast<std::size_t>(i % 3)]; }

// Four times through the edges, differently paired for each kernel. Over the whole kernel list every pair of sizes comes up.
void add_edges(std::vector<GemmCase>& cases, int kernel_index) {
  const int count = static_cast<int>(kEdges.size());
  const auto edge = [&](int i) { return kEdges[static_cast<std::size_t>(i % count)]; };
  for (int pass = 0; pass < 4; ++pass)
    for (int i = 0; i < count; ++i) {
      const std::int64_t m = edge(i), n = edge(i + 5 * pass + kernel_index);
      std::int64_t k = edge(2 * i + 3 * pass + 7 * kernel_index + 1);
      if (m * n * k > 1'200'000'000) k = 129;
      GemmCase c = sized("edge", m, n, k);
      c.problem.type_d = turn(i + pass);
      c.exactness = (i + pass) % 2 == 0 ? bench::Exactness::exact : bench::Exactness::bounded;
      c.pad_d_elems = i % 3 == 0 ? 3 : 0;
      cases.push_back(std::move(c));
    }
}

// Around the kernel's own tile and cluster, and enough tiles for several rounds of every worker.
void add_tiles(std::vector<GemmCase>& cases, const KernelConfig& kernel) {
  const std::int64_t tm = kernel.tile_m, tn = kernel.tile_n, cm = tm * kernel.cluster_m, cn = tn * kernel.cluster_n;
  for (const auto& [m, n, k] : {std::array<std::int64_t, 3>{tm, tn, 64},
                                {tm - 1, tn + 1, 65},
                                {tm + 1, tn - 1, 63},
                                {cm + 1, cn + 1, 640},
                                {2 * cm - 1, 3 * cn - 7, 1031},
                                {1, cn * 2 + 1, 4097},
                                {cm * 2 + 1, 1, 200}})
    cases.push_back(sized("tile", m, n, k));
  GemmCase rounds = sized("several rounds", cm * 17 + 5, cn * 29 / kernel.cluster_m + 3, 136);
  rounds.exactness = bench::Exactness::exact;
  for (const Rasterization raster : {Rasterization::along_m, Rasterization::along_n}) {
    rounds.options.raster = raster;
    cases.push_back(rounds);
  }
  GemmCase each = sized("one tile per CTA", cm * 5 + 3, cn * 7 + 9, 264);
  each.options.scheduler = SchedulerKind::one_tile_per_cta;
  if (kernel.schedule == KernelSchedule::cooperative) cases.push_back(each);
  each.what = "persistent";
  each.options.scheduler = SchedulerKind::data_parallel;
  cases.push_back(each);
}

// Tiles in pieces, and items drawn from a counter.
void add_pieces(std::vector<GemmCase>& cases, const KernelConfig& kernel) {
  const std::int64_t cm = kernel.tile_m * kernel.cluster_m, cn = kernel.tile_n * kernel.cluster_n;
  const auto add = [&](GemmCase c, SchedulerKind kind, WorkClaim claim, int splits) {
    c.options.scheduler = kind;
    c.options.claim = claim;
    c.options.splits = splits;
    c.what = std::string(to_string(kind)) + ", " + to_string(claim);
    c.problem.type_d = turn(static_cast<int>(cases.size()));
    c.exactness = cases.size() % 2 == 0 ? bench::Exactness::exact : bench::Exactness::bounded;
    cases.push_back(std::move(c));
  };
  for (const WorkClaim claim : {WorkClaim::fixed, WorkClaim::ticket}) {
    add(sized("", cm * 9 + 1, cn * 5 / kernel.cluster_m + 8, 648), SchedulerKind::data_parallel, claim, 0);
    if (!resources(kernel).joins_pieces) continue;
    for (const int splits : {2, 3, 7}) add(sized("", cm + 1, cn + 9, 2056), SchedulerKind::split_k, claim, splits);
    add(sized("", cm * 3 - 1, cn * 2 + 1, 1544), SchedulerKind::stream_k, claim, 0);
    add(sized("", cm * 13 - 1, cn * 11 + 1, 776), SchedulerKind::stream_k, claim, 0);
    add(sized("", cm * 13 + 3, cn * 17 - 5, 520), SchedulerKind::hybrid, claim, 0);
  }
}

// Pieces that meet in slices and in a cluster: fewer and more of them than the tile has parts.
void add_meetings(std::vector<GemmCase>& cases, const KernelConfig& kernel) {
  const auto add = [&](Reduction reduction, int splits, std::int64_t m, std::int64_t n, std::int64_t k) {
    GemmCase c = sized(std::to_string(splits) + " pieces by " + to_string(reduction), m, n, k);
    c.options = {.scheduler = SchedulerKind::split_k, .reduction = reduction, .splits = splits};
    const int turns = static_cast<int>(cases.size());
    c.problem.type_d = turn(turns);
    c.exactness = turns % 2 == 0 ? bench::Exactness::exact : bench::Exactness::bounded;
    if (turns % 4 == 3) c.problem.epilogue.bias = Bias::per_column;
    if (turns % 4 == 2) {
      c.problem.epilogue.beta = 1;
      c.c = CPlace::is_d;
    }
    cases.push_back(std::move(c));
  };
  const std::int64_t tm = kernel.tile_m, tn = kernel.tile_n;
  if (meets_in_slices(kernel)) {
    for (const int splits : {2, 3, 8}) add(Reduction::separate, splits, tm + 1, 2 * tn + 8, 2056);
    add(Reduction::separate, 20, tm / 2 + 1, 3 * tn - 3, 20 * kernel.tile_k - 8);
    add(Reduction::separate, 100, 1, 2 * tn, 100 * kernel.tile_k);  // more CTAs than SMs
    for (const Reduction reduction : {Reduction::separate, Reduction::workspace})
      add(reduction, 5, 2 * tm - 3, 4 * tn - 8, 2056);  // neighbours
  }
  if (meets_in_cluster(kernel))
    for (const int splits : {2, 4, 8}) {
      add(Reduction::cluster, splits, 2 * tm - 1, 3 * tn + 8, 2056);
      add(Reduction::cluster, splits, 3, 9 * tn - 5, 8 * kernel.tile_k);
    }
}

// Whole tiles that are launched as neighbours, the last of which have no item: 63 as clusters of 8, 121 as pairs.
void add_neighbours(std::vector<GemmCase>& cases, const KernelConfig& kernel) {
  const std::int64_t tm = kernel.tile_m, tn = kernel.tile_n;
  for (const auto& [tiles_m, tiles_n] : {std::pair{7, 9}, {11, 11}}) {
    GemmCase c = sized("neighbours", tiles_m * tm - 3, tiles_n * tn - 8, tiles_m == 7 ? 1544 : 1608);
    c.problem.constant_b = tiles_m == 7;
    c.exactness = tiles_m == 7 ? bench::Exactness::exact : bench::Exactness::bounded;
    cases.push_back(std::move(c));
  }
}

// Operands fetched before the kernel before this one has ended.
void add_constants(std::vector<GemmCase>& cases, const KernelConfig& kernel) {
  const std::int64_t cm = kernel.tile_m * kernel.cluster_m, cn = kernel.tile_n * kernel.cluster_n;
  for (const auto& [constant_a, constant_b] : {std::pair{true, false}, {false, true}, {true, true}})
    for (const std::int64_t k : {72, 2056}) {
      GemmCase c = sized("constant operands", cm + 1, cn * 13 / kernel.cluster_m + 8, k);
      c.problem.constant_a = constant_a;
      c.problem.constant_b = constant_b;
      c.problem.batch = constant_a && constant_b ? 3 : 1;
      c.gap_b_elems = constant_a && k == 72 ? -1 : 0;
      c.exactness = bench::Exactness::exact;
      cases.push_back(c);
    }
}

void add_epilogues(std::vector<GemmCase>& cases) {
  int count = 0;
  const auto add = [&](const char* what, const Epilogue& epilogue, CPlace c, bench::Exactness exactness) {
    GemmCase gemm_case = sized(what, 137, 203 + 5 * (count % 2), 328);
    gemm_case.problem.type_d = turn(count++);
    gemm_case.problem.epilogue = epilogue;
    gemm_case.c = c;
    gemm_case.exactness = exactness;
    gemm_case.pad_c_elems = c == CPlace::own ? 5 : 0;
    cases.push_back(std::move(gemm_case));
  };
  using enum Activation;
  constexpr auto bounded = bench::Exactness::bounded, exact = bench::Exactness::exact;
  for (int type = 0; type < 3; ++type) {
    count = type;
    add("alpha", {.alpha = -0.625f}, CPlace::null, bounded);
    count = type;
    add("alpha and beta", {.alpha = 1.25f, .beta = 0.75f}, CPlace::own, bounded);
    count = type;
    add("in place", {.alpha = 2, .beta = -1}, CPlace::is_d, exact);
    count = type;
    add("beta 0, C of NaN", {}, CPlace::poison, bounded);
    count = type;
    add("bias of each row", {.bias = Bias::per_row}, CPlace::null, exact);
    count = type;
    add("bias of each column", {.bias = Bias::per_column}, CPlace::null, exact);
    count = type;
    add("ReLU", {.alpha = -1, .activation = relu}, CPlace::null, exact);
    count = type;
    add("GELU", {.alpha = 0.0625f, .activation = gelu_tanh}, CPlace::null, bounded);
    count = type;
    add("SiLU", {.alpha = 0.0625f, .activation = silu}, CPlace::null, bounded);
    count = type;
    add("everything, rows", {.alpha = 0.5f, .beta = 1.5f, .bias = Bias::per_row, .activation = silu}, CPlace::own, bounded);
    count = type;
    add("everything, columns, in place", {.alpha = 0.05f, .beta = 0.5f, .bias = Bias::per_column, .activation = gelu_tanh}, CPlace::is_d,
        bounded);
    count = type;
    add("everything, exact", {.alpha = -2, .beta = 3, .bias = Bias::per_column, .activation = relu}, CPlace::own, exact);
  }
}

void add_nothing_to_multiply(std::vector<GemmCase>& cases) {
  for (const auto& [m, n, batch] : {std::array<std::int64_t, 3>{0, 65, 1}, {65, 0, 1}, {64, 72, 0}}) {
    GemmCase c = sized("an extent of 0", m, n, 72);
    c.problem.batch = batch;
    c.null_inputs = true;
    cases.push_back(c);
  }
  for (const bool by_alpha : {false, true}) {
    GemmCase c = sized(by_alpha ? "alpha 0" : "k 0", 131, 77, by_alpha ? 200 : 0);
    if (by_alpha) c.problem.epilogue.alpha = 0;
    c.null_inputs = true;
    c.exactness = bench::Exactness::exact;
    c.c = CPlace::null;
    cases.push_back(c);
    c.problem.type_d = DataType::fp32;
    c.problem.epilogue.bias = Bias::per_row;
    c.problem.epilogue.beta = 2;
    c.c = CPlace::own;
    cases.push_back(c);
    c.problem.epilogue.activation = Activation::relu;
    c.c = CPlace::is_d;
    cases.push_back(c);
  }
}

void add_batches(std::vector<GemmCase>& cases) {
  GemmCase packed = sized("batch", 129, 136, 200);
  packed.problem.batch = 3;
  cases.push_back(packed);
  GemmCase many = sized("batch of small ones", 17, 33, 72);
  many.problem.batch = 61;
  many.problem.epilogue.bias = Bias::per_group_column;
  many.exactness = bench::Exactness::exact;
  cases.push_back(many);
  GemmCase gaps = packed;
  gaps.what = "batch with gaps, in place";
  gaps.gap_a_elems = 64;
  gaps.gap_b_elems = 8;
  gaps.gap_d_elems = gaps.gap_c_elems = 19;
  gaps.pad_d_elems = gaps.pad_c_elems = 1;
  gaps.problem.epilogue.beta = 1;
  gaps.c = CPlace::is_d;
  cases.push_back(gaps);
  GemmCase repeated = packed;
  repeated.what = "batch over one A";
  repeated.gap_a_elems = -1;
  cases.push_back(repeated);
  repeated.what = "batch over one B and one C";
  repeated.gap_a_elems = 0;
  repeated.gap_b_elems = repeated.gap_c_elems = -1;
  repeated.problem.epilogue.beta = -0.5f;
  repeated.problem.type_d = DataType::fp32;
  cases.push_back(repeated);
}

void add_placements(std::vector<GemmCase>& cases, const KernelConfig& kernel) {
  GemmCase padded = sized("leading dimensions with gaps", 143, 150, 189);
  padded.pad_a_elems = 24;
  padded.pad_b_elems = 8;
  padded.offset_a_elems = 8;
  padded.offset_b_elems = 24;
  for (const int pad : {1, 2, 4, 8}) {
    padded.pad_d_elems = pad;
    padded.problem.type_d = turn(pad);
    cases.push_back(padded);
  }
  padded.what = "D off a 16-byte boundary";
  for (const int offset : {1, 2, 3, 4}) {
    padded.offset_d_elems = offset;
    padded.problem.type_d = turn(offset + 1);
    padded.problem.epilogue.bias = offset % 2 == 0 ? Bias::per_column : Bias::none;
    cases.push_back(padded);
  }
  if (kernel.load != LoadPath::threads) return;
  for (const int odd : {1, 2, 3, 4, 5}) {
    GemmCase c = sized("operands off a 16-byte boundary", 141 + odd, 150 - odd, 185 + odd);
    c.offset_a_elems = odd;
    c.offset_b_elems = 6 - odd;
    c.pad_a_elems = 6 - odd;
    c.pad_b_elems = odd;
    c.problem.batch = odd;
    c.gap_a_elems = odd;
    c.gap_b_elems = odd == 3 ? -1 : 7;
    c.problem.type_d = turn(odd);
    c.exactness = odd % 2 == 0 ? bench::Exactness::exact : bench::Exactness::bounded;
    cases.push_back(c);
  }
}

std::vector<GemmCase> small_cases(const KernelConfig& kernel) {
  const std::int64_t tm = kernel.tile_m, tn = kernel.tile_n;
  std::vector<GemmCase> cases = {sized("one", 1, 1, 1), sized("past a tile", tm + 1, tn + 7, 129), sized("long k", 9, 15, 1031)};
  GemmCase epilogue = sized("everything, batch", 67, 71, 72);
  epilogue.problem.batch = 2;
  epilogue.problem.epilogue = {.alpha = 0.5f, .beta = 2, .bias = Bias::per_group_column, .activation = Activation::silu};
  epilogue.problem.type_d = DataType::fp32;
  cases.push_back(epilogue);
  GemmCase aligned = sized("stored by the copy engine", 2 * tm, 2 * tn, 192);
  cases.push_back(aligned);
  GemmCase meeting = sized("pieces that meet", tm / 2 + 1, tn + 8, 4 * kernel.tile_k);
  meeting.options = {.scheduler = SchedulerKind::split_k, .reduction = Reduction::separate, .splits = 4};
  meeting.problem.constant_b = true;
  if (meets_in_slices(kernel)) cases.push_back(meeting);
  meeting.options.reduction = Reduction::cluster;
  if (meets_in_cluster(kernel)) cases.push_back(meeting);
  if (kernel.load == LoadPath::threads) {
    GemmCase odd = sized("unaligned", 65, 67, 69);
    odd.offset_a_elems = odd.offset_b_elems = odd.offset_d_elems = 1;
    cases.push_back(odd);
  }
  return cases;
}

}  // namespace

GemmProblem problem_for(const KernelConfig& kernel, const GemmCase& c) {
  GemmProblem p = c.problem;
  p.type_a = kernel.type_a;
  p.type_b = kernel.type_b;
  p.layout_a = kernel.layout_a;
  p.layout_b = kernel.layout_b;
  const bool packed = p.type_b == DataType::int4;
  if (packed) {
    constexpr std::int64_t kWeightUnit = 16;  // a multiple of 8 would do, where the last group of a column is whole
    p.n = round_up(p.n, kWeightUnit / 2);
    p.k = round_up(p.k, kWeightUnit);
  }
  if (p.grouping != Grouping::none) p.batch = static_cast<std::int64_t>(c.groups.size()) - (p.grouping == Grouping::masked ? 0 : 1);
  const bool a_rows = p.layout_a == Layout::row_major, b_rows = p.layout_b == Layout::row_major;
  const std::int64_t unit = kernel.load == LoadPath::tma ? kTmaBytes / size_bytes(p.type_a) : 1;
  const auto leading = [](std::int64_t length, std::int64_t step, int pad) {
    return std::max<std::int64_t>(round_up(length, step), step) + pad;
  };
  p.lda = leading(a_rows ? p.k : p.m, unit, c.pad_a_elems);
  p.ldb = leading(b_rows ? p.n : p.k, unit, c.pad_b_elems);
  p.ldd = leading(p.n, 1, c.pad_d_elems);
  p.ldc = c.c == CPlace::is_d ? p.ldd : leading(p.n, 1, c.pad_c_elems);
  const auto stride = [](std::int64_t matrix, int gap) { return gap < 0 ? 0 : matrix + gap; };
  p.batch_stride_a = stride((a_rows ? p.m : p.k) * p.lda, c.gap_a_elems);
  p.batch_stride_b = stride((b_rows ? p.k : p.n) * p.ldb, c.gap_b_elems);
  if (packed) {
    p.ldb = kPacked;
    p.batch_stride_b = stride(packed_w4_bytes(p.n, p.k, p.w4), c.gap_b_elems <= 0 ? c.gap_b_elems : kPackedGapBytes);
  }
  if (p.grouping == Grouping::along_k) p.batch_stride_a = p.batch_stride_b = 0;
  p.batch_stride_d = stride(p.m * p.ldd, c.gap_d_elems);
  p.batch_stride_c = c.c == CPlace::is_d ? p.batch_stride_d : stride(p.m * p.ldc, c.gap_c_elems);
  const ScaleRuns scales_a = scale_runs_a(p), scales_b = scale_runs_b(p);
  p.ld_scale_a = std::max<std::int64_t>(scales_a.length, 1) + c.pad_scale_a_elems;
  p.ld_scale_b = std::max<std::int64_t>(scales_b.length, 1) + c.pad_scale_b_elems;
  p.batch_stride_scale_a = stride(scales_a.runs * p.ld_scale_a, c.gap_scale_a_elems);
  p.batch_stride_scale_b = stride(scales_b.runs * p.ld_scale_b, c.gap_scale_b_elems);
  p.alignment_a_bytes = alignment_of(c.offset_a_elems, size_bytes(p.type_a));
  p.alignment_b_bytes = packed ? kTmaBytes : alignment_of(c.offset_b_elems, size_bytes(p.type_b));
  p.alignment_d_bytes = alignment_of(c.offset_d_elems, size_bytes(p.type_d));
  return p;
}

namespace {

std::int64_t held_to(std::int64_t value, std::int64_t least, std::int64_t most) { return std::min(std::max(value, least), most); }

Rows between(const std::vector<std::int32_t>& offsets, std::int64_t group, std::int64_t extent) {
  const auto g = static_cast<std::size_t>(group);
  const std::int64_t first = held_to(offsets[g], 0, extent);
  return {first, held_to(offsets[g + 1], first, extent) - first};
}

constexpr int kWarpgroup = 128;
int consumers(const KernelConfig& kernel) { return resources(kernel).threads - kWarpgroup; }
int accumulators(const KernelConfig& kernel) { return kernel.tile_m * kernel.tile_n / consumers(kernel); }  // of each of these threads

bool meets(const KernelConfig& kernel) {
  return kernel.layout_a == Layout::row_major && kernel.layout_b == Layout::column_major &&
         kernel.schedule == KernelSchedule::cooperative && kernel.load == LoadPath::tma && resources(kernel).joins_pieces;
}

}  // namespace

Rows rows_of(const GemmProblem& p, const std::vector<std::int32_t>& groups, std::int64_t group) {
  if (p.grouping == Grouping::none || p.grouping == Grouping::along_k) return {0, p.m};
  if (p.grouping == Grouping::masked) return {0, held_to(groups[static_cast<std::size_t>(group)], 0, p.m)};
  return between(groups, group, p.m);
}
Rows depth_of(const GemmProblem& p, const std::vector<std::int32_t>& groups, std::int64_t group) {
  if (p.grouping != Grouping::along_k) return {0, p.k};
  const Rows depth = between(groups, group, p.k);
  if (!is_fp8(p.type_a)) return depth;
  constexpr std::int64_t kBlock = 128;  // numbers between two of them count as the lower one
  const std::int64_t first = depth.first / kBlock * kBlock;
  return {first, (depth.first + depth.count) / kBlock * kBlock - first};
}
std::int64_t row_matrices(const GemmProblem& p) { return p.grouping == Grouping::ragged ? 1 : p.batch; }

bool meets_in_cluster(const KernelConfig& kernel) {
  return meets(kernel) && cluster_size(kernel) == 1 && accumulators(kernel) <= (kernel.type_b == DataType::int4 ? 64 : 128);
}
bool meets_in_slices(const KernelConfig& kernel) {
  return meets(kernel) && consumers(kernel) <= 2 * kWarpgroup && accumulators(kernel) <= (kernel.ctas_per_sm == 1 ? 64 : 16);
}

namespace {

// Pieces of block-scaled products, too: where they begin is which scales they need.
void scale_all(std::vector<GemmCase>& cases, const KernelConfig& kernel, int kernel_index) {
  int n = kernel_index;
  for (GemmCase& c : cases) c = with_scales(std::move(c), kernel, n++);
  add_scaled(cases, kernel, kernel_index);
  add_runs(cases, kernel, kernel_index);
  std::vector<GemmCase> pieces;
  for (int i = 0; i < 2; ++i) {
    add_pieces(pieces, kernel);
    add_meetings(pieces, kernel);
  }
  for (GemmCase& c : pieces) cases.push_back(with_scales(std::move(c), kernel, n++, block_scale_kinds()));
}

}  // namespace

std::vector<GemmCase> cases_for(const KernelConfig& kernel, int kernel_index, bool small) {
  std::vector<GemmCase> cases;
  if (small) {
    cases = small_cases(kernel);
    for (std::size_t i = 0; i < cases.size(); ++i)
      cases[i] = with_format(with_scales(std::move(cases[i]), kernel, kernel_index + static_cast<int>(i), block_scale_kinds()), kernel,
                             kernel_index + static_cast<int>(i));
    add_grouped(cases, kernel, kernel_index, /*small=*/true);
    return cases;
  }
  add_edges(cases, kernel_index);
  add_tiles(cases, kernel);
  add_pieces(cases, kernel);
  add_meetings(cases, kernel);
  add_neighbours(cases, kernel);
  add_constants(cases, kernel);
  add_epilogues(cases);
  add_nothing_to_multiply(cases);
  add_batches(cases);
  add_placements(cases, kernel);
  if (is_fp8(kernel.type_b)) scale_all(cases, kernel, kernel_index);
  if (kernel.type_b == DataType::int4) add_pieces(cases, kernel);  // of other formats
  if (kernel.type_b == DataType::int4 || kernel.schedule == KernelSchedule::streaming) {
    for (std::size_t i = 0; i < cases.size(); ++i) {
      const int n = kernel_index + static_cast<int>(i);
      cases[i] = with_format(with_scales(std::move(cases[i]), kernel, n / 8), kernel, n);  // there are eight formats
    }
  }
  add_streaming(cases, kernel, 132);
  add_grouped(cases, kernel, kernel_index);
  return cases;
}

std::int64_t span_a(const GemmProblem& p) {
  const bool rows = p.layout_a == Layout::row_major;
  return span(rows ? p.m : p.k, rows ? p.k : p.m, p.lda, row_matrices(p), p.batch_stride_a);
}
std::int64_t span_b(const GemmProblem& p) {
  if (p.type_b == DataType::int4) return span(1, packed_w4_bytes(p.n, p.k, p.w4), 0, p.batch, p.batch_stride_b);
  const bool rows = p.layout_b == Layout::row_major;
  return span(rows ? p.k : p.n, rows ? p.n : p.k, p.ldb, p.batch, p.batch_stride_b);
}
std::int64_t span_c(const GemmProblem& p) { return span(p.m, p.n, p.ldc, row_matrices(p), p.batch_stride_c); }
std::int64_t span_d(const GemmProblem& p) { return span(p.m, p.n, p.ldd, row_matrices(p), p.batch_stride_d); }

namespace {

ScaleRuns scale_runs(Scaling scaling, Layout layout, std::int64_t vectors, std::int64_t k, std::int64_t leading) {
  constexpr std::int64_t kBlock = 128;
  if (scaling == Scaling::none) return {};
  const std::int64_t rows = scaling == Scaling::per_block_128 ? (vectors + kBlock - 1) / kBlock : vectors;
  const std::int64_t columns = (k + kBlock - 1) / kBlock;
  if (!scales_along_k(scaling)) return {.runs = 1, .length = scaling == Scaling::per_tensor ? 1 : vectors};
  return layout == Layout::row_major ? ScaleRuns{rows, columns, leading} : ScaleRuns{columns, rows, leading};
}

}  // namespace

ScaleRuns scale_runs_a(const GemmProblem& p) { return scale_runs(p.scaling_a, p.scale_layout_a, p.m, p.k, p.ld_scale_a); }
ScaleRuns scale_runs_b(const GemmProblem& p) { return scale_runs(p.scaling_b, p.scale_layout_b, p.n, p.k, p.ld_scale_b); }

}  // namespace sluice::gpu_tests
