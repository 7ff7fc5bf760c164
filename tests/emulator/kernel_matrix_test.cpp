// Every kernel of the list on the emulated machine: edge shapes, epilogues and placements, several numbers of resident clusters, every
// asynchrony, a seed for each run.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>

#include "gpu/accumulator_probe.hpp"
#include "gpu/grouped_cases.hpp"
#include "gpu/packed_weights.hpp"
#include "gpu/scaled_cases.hpp"
#include "placed_operands.hpp"

namespace sluice::test {
namespace {

using gpu_tests::CPlace;
using gpu_tests::GemmCase;

constexpr auto kExact = bench::Exactness::exact;
constexpr std::array kAsynchronies = {Asynchrony::eager, Asynchrony::lazy, Asynchrony::mixed, Asynchrony::random};

// Around vectors, swizzled rows and tiles.
constexpr std::array<std::int64_t, 12> kEdges = {1, 2, 7, 8, 9, 63, 64, 65, 100, 127, 128, 129};

DataType turn(int i) { return std::array{DataType::bf16, DataType::fp32, DataType::fp16}[static_cast<std::size_t>(i % 3)]; }

GemmCase sized(std::string what, std::int64_t m, std::int64_t n, std::int64_t k) {
  GemmCase c{.what = std::move(what)};
  c.problem.m = m;
  c.problem.n = n;
  c.problem.k = k;
  return c;
}

// One walk through the edges for each kernel, differently paired, so that over the list every pair of sizes comes up.
void add_edges(std::vector<GemmCase>& cases, int index) {
  const int count = static_cast<int>(kEdges.size());
  const auto edge = [&](int i) { return kEdges[static_cast<std::size_t>(i % count)]; };
  for (int i = index % 2; i < count; i += 2) {
    const int walk = index / 2;
    GemmCase c = sized("edge", edge(i), edge(5 * i + walk), edge(7 * i + walk / count + 3 * walk + 1));
    c.problem.type_d = turn(i + index);
    c.exactness = (i + index) % 3 == 0 ? kExact : bench::Exactness::bounded;
    c.pad_d_elems = i % 4 == 1 ? 3 : 0;
    cases.push_back(std::move(c));
  }
}

// Around the kernel's own tile and cluster, and more tiles than the four SMs of the device have at once.
void add_tiles(std::vector<GemmCase>& cases, const KernelConfig& kernel, int index) {
  const std::int64_t tm = kernel.tile_m, tn = kernel.tile_n, cm = tm * kernel.cluster_m, cn = tn * kernel.cluster_n;
  GemmCase rounds = sized("several rounds", 2 * cm + 1, 3 * cn - 8, 72);
  rounds.exactness = kExact;
  rounds.options.raster = index % 2 == 0 ? Rasterization::along_m : Rasterization::along_n;
  cases.push_back(rounds);
  GemmCase around = std::array{sized("tile", tm, tn, 64), sized("less than a tile", tm - 1, tn - 1, 65),
                               sized("more than a cluster", cm + 1, cn + 8, 129)}[static_cast<std::size_t>(index % 3)];
  around.problem.type_d = turn(index / 3);
  cases.push_back(around);
}

void add_epilogues(std::vector<GemmCase>& cases, int index) {
  using enum Activation;
  struct Kind {
    const char* what;
    Epilogue epilogue;
    CPlace c;
    bench::Exactness exactness;
  };
  constexpr auto bounded = bench::Exactness::bounded;
  const std::array kinds = {
      Kind{"alpha and beta", {.alpha = 1.25f, .beta = 0.75f}, CPlace::own, bounded},
      Kind{"in place", {.alpha = 2, .beta = -1}, CPlace::is_d, kExact},
      Kind{"bias of each row", {.bias = Bias::per_row}, CPlace::null, kExact},
      Kind{"bias of each column, ReLU", {.alpha = -1, .bias = Bias::per_column, .activation = relu}, CPlace::null, kExact},
      Kind{"GELU", {.alpha = 0.0625f, .activation = gelu_tanh}, CPlace::null, bounded},
      Kind{"everything, in place", {.alpha = 0.5f, .beta = 1.5f, .bias = Bias::per_row, .activation = silu}, CPlace::is_d, bounded}};
  for (int i = 0; i < 2; ++i) {
    const Kind& kind = kinds[static_cast<std::size_t>((index + 3 * i) % static_cast<int>(kinds.size()))];
    GemmCase c = sized(kind.what, 67, 72 + 3 * (index / 6 % 2), 136);
    c.problem.type_d = turn(index / 12 + i);
    c.problem.epilogue = kind.epilogue;
    c.c = kind.c;
    c.exactness = kind.exactness;
    c.pad_d_elems = 5 * (index % 2);
    cases.push_back(std::move(c));
  }
}

// Tiles in pieces, and items drawn from a counter: two of the ways for each kernel, all of them over neighbouring kernels.
void add_pieces(std::vector<GemmCase>& cases, const KernelConfig& kernel, int index) {
  const std::int64_t cm = kernel.tile_m * kernel.cluster_m, cn = kernel.tile_n * kernel.cluster_n;
  struct Way {
    SchedulerKind kind;
    WorkClaim claim;
    std::int64_t m, n, k_tiles;
    int splits = 0;
  };
  using enum SchedulerKind;
  const std::array ways = {Way{split_k, WorkClaim::fixed, cm, cn + 8, 5, 3},      Way{stream_k, WorkClaim::fixed, cm + 1, 2 * cn, 5},
                           Way{hybrid, WorkClaim::ticket, 2 * cm - 1, 3 * cn, 3}, Way{split_k, WorkClaim::ticket, cm + 1, cn, 4, 4},
                           Way{stream_k, WorkClaim::ticket, cm, cn - 1, 7},       Way{data_parallel, WorkClaim::ticket, cm + 1, 3 * cn, 2}};
  for (int i = 0; i < 2; ++i) {
    const Way& way = ways[static_cast<std::size_t>((index + 3 * i) % static_cast<int>(ways.size()))];
    if (way.kind != data_parallel && !resources(kernel).joins_pieces) continue;
    GemmCase c = sized(to_string(way.kind), way.m, way.n, way.k_tiles * kernel.tile_k - 8);
    c.options.scheduler = way.kind;
    c.options.claim = way.claim;
    c.options.splits = way.splits;
    c.problem.type_d = turn(index / 6);
    c.exactness = i == 0 ? kExact : bench::Exactness::bounded;
    cases.push_back(std::move(c));
  }
}

// Pieces that meet in slices and in a cluster.
void add_meetings(std::vector<GemmCase>& cases, const KernelConfig& kernel, int index) {
  const auto add = [&](Reduction reduction, int splits, std::int64_t m, std::int64_t n) {
    GemmCase c = sized(std::string("pieces in ") + to_string(reduction), m, n, 5 * kernel.tile_k - 8);
    c.options = {.scheduler = SchedulerKind::split_k, .reduction = reduction, .splits = splits};
    c.problem.type_d = turn(index + splits);
    c.problem.epilogue.bias = index % 2 == 0 ? Bias::none : Bias::per_column;
    c.exactness = kExact;
    cases.push_back(std::move(c));
  };
  if (gpu_tests::meets_in_slices(kernel)) add(Reduction::separate, 2 + index % 3, kernel.tile_m + 1, kernel.tile_n);
  if (gpu_tests::meets_in_cluster(kernel)) add(Reduction::cluster, 2, kernel.tile_m - 1, kernel.tile_n + 8);
}

// Operands fetched before the kernel before has ended, shorter and longer than the ring of stages: the emulator refuses whatever else is.
void add_constants(std::vector<GemmCase>& cases, const KernelConfig& kernel, int index) {
  const std::int64_t cm = kernel.tile_m * kernel.cluster_m, cn = kernel.tile_n * kernel.cluster_n;
  for (int i = 0; i < 2; ++i) {
    const bool long_k = (index + i) % 2 == 0;
    GemmCase c = sized("constant operands", cm + 1, 2 * cn, long_k ? (resources(kernel).stages + 2) * kernel.tile_k : 72);
    c.problem.constant_a = (index + 2 * i) % 3 != 0;
    c.problem.constant_b = (index + 2 * i) % 3 != 1;
    if (i == 1) c.options.claim = index % 4 < 2 ? WorkClaim::fixed : WorkClaim::ticket;
    if (i == 1 && index % 4 == 0) c.problem.batch = 2, c.gap_b_elems = -1;
    c.exactness = kExact;
    cases.push_back(std::move(c));
  }
}

void add_placements(std::vector<GemmCase>& cases, const KernelConfig& kernel, int index) {
  GemmCase batch = sized("batch with gaps", 33, 40, 72);
  batch.problem.batch = 3;
  batch.problem.type_d = turn(index);
  batch.problem.epilogue.bias = index % 2 == 0 ? Bias::none : Bias::per_group_column;
  batch.gap_a_elems = index % 3 == 0 ? -1 : 64;
  batch.gap_b_elems = index % 3 == 1 ? -1 : 8;
  batch.gap_d_elems = 8 * (index % 4);
  batch.pad_a_elems = 8;
  batch.exactness = kExact;
  cases.push_back(batch);
  GemmCase padded = sized("D off a 16-byte boundary", 70, 67, 65);
  padded.pad_b_elems = 16;
  padded.pad_d_elems = 1 + index % 4;
  padded.offset_d_elems = 1 + index % 3;
  padded.problem.type_d = turn(index + 1);
  padded.problem.epilogue.bias = Bias::per_column;
  cases.push_back(padded);
  GemmCase nothing = sized(index % 2 == 0 ? "k 0" : "alpha 0", 67, 31, index % 2 == 0 ? 0 : 64);
  if (index % 2 == 1) nothing.problem.epilogue.alpha = 0;
  nothing.problem.epilogue.beta = index % 4 < 2 ? 0.0f : 2.0f;
  nothing.null_inputs = true;
  nothing.exactness = kExact;
  cases.push_back(nothing);
  if (kernel.load != LoadPath::threads) return;
  for (const int odd : {1, 2, 5}) {
    GemmCase c = sized("operands off a 16-byte boundary", 61 + odd, 70 - odd, 65 + odd);
    c.offset_a_elems = c.pad_b_elems = odd;
    c.offset_b_elems = c.pad_a_elems = 6 - odd;
    c.problem.batch = odd % 3;
    c.gap_a_elems = odd;
    c.problem.type_d = turn(odd);
    c.exactness = odd == 2 ? kExact : bench::Exactness::bounded;
    cases.push_back(c);
  }
}

// Scales that change along K: in edges, in several tiles, and in pieces that begin in the midst of K.
void add_block_scaled(std::vector<GemmCase>& cases, const KernelConfig& kernel, int index) {
  const std::int64_t cm = kernel.tile_m * kernel.cluster_m, cn = kernel.tile_n * kernel.cluster_n;
  const auto kinds = gpu_tests::block_scale_kinds();
  const auto add = [&](GemmCase c, int n) {
    c.problem.type_d = turn(index + n);
    c.exactness = (index + n) % 2 == 0 ? kExact : bench::Exactness::bounded;
    cases.push_back(gpu_tests::with_scales(std::move(c), kernel, n + 2 * index, kinds));
  };
  for (int n = 0; n < static_cast<int>(kinds.size()); ++n)
    add(sized("scaled edge", kEdges[static_cast<std::size_t>(n + index) % kEdges.size()],
              kEdges[static_cast<std::size_t>(11 * n + index) % kEdges.size()],
              std::array{16, 112, 144, 272}[static_cast<std::size_t>(n % 4)]),
        n);
  add(sized("scaled, several tiles", cm + 130, 2 * cn - 7, 400), 1);
  gpu_tests::add_runs(cases, kernel, index, /*small=*/true);
  if (!resources(kernel).joins_pieces) return;
  for (const SchedulerKind kind : {SchedulerKind::split_k, SchedulerKind::stream_k}) {
    GemmCase c = sized(std::string("scaled, ") + to_string(kind), cm + 1, 2 * cn - 8, 7 * kernel.tile_k - 16);
    c.options.scheduler = kind;
    c.options.splits = kind == SchedulerKind::split_k ? 3 : 0;
    add(std::move(c), static_cast<int>(kind));
  }
}

std::vector<GemmCase> cases_of(const KernelConfig& kernel, int index) {
  std::vector<GemmCase> cases;
  add_edges(cases, index);
  add_tiles(cases, kernel, index);
  add_epilogues(cases, index);
  add_pieces(cases, kernel, index);
  add_meetings(cases, kernel, index);
  add_constants(cases, kernel, index);
  add_placements(cases, kernel, index);
  for (std::size_t i = 0; i < cases.size(); ++i)
    cases[i] = gpu_tests::with_format(gpu_tests::with_scales(std::move(cases[i]), kernel, index + static_cast<int>(i)), kernel,
                                      index + static_cast<int>(i));
  if (is_fp8(kernel.type_b)) add_block_scaled(cases, kernel, index);
  gpu_tests::add_streaming(cases, kernel, 4);
  gpu_tests::add_grouped(cases, kernel, index, /*small=*/true);
  return cases;
}

Plan planned(const KernelConfig& kernel, const GemmCase& gemm_case, const char* device = "h10") {
  PlanOptions options = gemm_case.options;
  options.kernel_name = name(kernel);
  options.keep_candidates = false;
  return plan(gpu_tests::problem_for(kernel, gemm_case), find_device(device).value(), options).value();
}

// One cluster, two, or all of the grid.
int resident(int which) { return std::array{1, 2, 1 << 20}[static_cast<std::size_t>(which % 3)]; }

std::string describe(const GemmCase& gemm_case, const Plan& plan, const EmulatorOptions& options) {
  return gemm_case.what + ", " + sluice::describe(plan.problem) + ", seed " + std::to_string(options.seed) + ", " +
         to_string(options.asynchrony) + ", " + std::to_string(options.resident_clusters) + " resident: ";
}

// Runs the case and judges it: what is wrong, or nothing.
std::string try_case(const Plan& plan, const GemmCase& gemm_case, PlacedOperands& operands, const EmulatorOptions& options) {
  operands.poison();
  const Status status = run_on_emulator(plan, operands.arguments(), options);
  const std::string wrong = status ? operands.judge() : status.error().message;
  return wrong.empty() ? "" : describe(gemm_case, plan, options) + wrong;
}

class EveryKernel : public testing::TestWithParam<int> {
 protected:
  const KernelConfig& kernel() const { return kernel_list()[static_cast<std::size_t>(GetParam())]; }
};

TEST_P(EveryKernel, IsRightOnEdges) {
  int turn_of_run = GetParam();
  for (const GemmCase& gemm_case : cases_of(kernel(), GetParam())) {
    const Plan plan = planned(kernel(), gemm_case);
    ASSERT_EQ(plan.kernel, kernel());
    PlacedOperands operands(plan.problem, gemm_case, static_cast<std::uint64_t>(turn_of_run));
    const EmulatorOptions options{.seed = static_cast<std::uint64_t>(1000 + turn_of_run),
                                  .asynchrony = kAsynchronies[static_cast<std::size_t>(turn_of_run / 3 % 4)],
                                  .resident_clusters = resident(turn_of_run)};
    EXPECT_EQ(try_case(plan, gemm_case, operands, options), "");
    ++turn_of_run;
  }
}

// However it is interleaved, and however many clusters run at once, D has the same bits; the same seed leads to the same bits in all
// memory.
TEST_P(EveryKernel, GivesTheSameBitsUnderEverySeed) {
  const GemmCase seeds = sized("seeds", 40 + kernel().tile_m / 2, 24 + kernel().tile_n, 136);
  const GemmCase gemm_case =
      gpu_tests::with_format(gpu_tests::with_scales(seeds, kernel(), GetParam(), gpu_tests::block_scale_kinds()), kernel(), GetParam());
  const Plan plan = planned(kernel(), gemm_case);
  PlacedOperands operands(plan.problem, gemm_case, 5);
  std::vector<unsigned char> first;
  for (int i = 0; i < 12; ++i) {
    const EmulatorOptions options{.seed = static_cast<std::uint64_t>(GetParam() * 100 + i / 2 * 2),
                                  .asynchrony = kAsynchronies[static_cast<std::size_t>(i / 3)],
                                  .resident_clusters = resident(i),
                                  .diagnose = i < 9};
    operands.poison();
    const Status status = run_on_emulator(plan, operands.arguments(), options);
    ASSERT_TRUE(status.ok()) << describe(gemm_case, plan, options) << status.error().message;
    if (i == 0) {
      ASSERT_EQ(operands.judge(), "");
      first = operands.d_bytes();
    }
    ASSERT_EQ(operands.d_bytes(), first) << describe(gemm_case, plan, options) << "other bits than with the first seed";
  }
}

INSTANTIATE_TEST_SUITE_P(KernelList, EveryKernel, testing::Range(0, static_cast<int>(kernel_list().size())),
                         [](const testing::TestParamInfo<int>& info) { return name(kernel_list()[static_cast<std::size_t>(info.param)]); });

// Small tiles on a device with many SMs: a grid of dozens of CTAs, of which one, four or many run at once.
TEST(ManyCtas, OfOneGrid) {
  for (const char* kernel_name :
       {"bf16_rc_ping_64x64x64_c1x1", "fp16_rc_coop_32x64x128_c1x1_x2_swap", "bf16_rc_coop_64x64x128_c2x1_swap"}) {
    const auto& list = kernel_list();
    const auto kernel = std::find_if(list.begin(), list.end(), [&](const KernelConfig& k) { return name(k) == kernel_name; });
    ASSERT_NE(kernel, list.end()) << kernel_name << " has left the list: choose another small one";
    GemmCase gemm_case = sized("many CTAs", 7 * kernel->tile_m, 8 * kernel->tile_n - 8, 72);
    gemm_case.exactness = kExact;
    const Plan plan = planned(*kernel, gemm_case, "h200");
    EXPECT_GE(plan.grid_ctas, 56);
    PlacedOperands operands(plan.problem, gemm_case, 3);
    for (int i = 0; i < 3; ++i)
      EXPECT_EQ(try_case(plan, gemm_case, operands,
                         {.seed = static_cast<std::uint64_t>(i), .resident_clusters = std::array{1, 0, 40}[static_cast<std::size_t>(i)]}),
                "");
  }
}

// Whether a GPU's tensor cores do as well is for tests/gpu to find out, with the same probe.
TEST(Fp8Accumulation, KeepsFourteenBits) {
  const gpu_tests::AccumulatorProbe probe = gpu_tests::accumulator_probe();
  int kernels = 0;
  for (const KernelConfig& kernel : kernel_list()) {
    if (kernel.type_a != DataType::e4m3 || kernel.type_b != DataType::e4m3) continue;
    ++kernels;
    const Plan made = plan(probe.problem, find_device("h10").value(), {.kernel_name = name(kernel), .keep_candidates = false}).value();
    std::vector<float> d(static_cast<std::size_t>(probe.problem.m * probe.problem.n));
    const Status status = run_on_emulator(made, {.a = probe.a.data(), .b = probe.b.data(), .d = d.data()});
    ASSERT_TRUE(status.ok()) << status.error().message;
    EXPECT_EQ(accumulator_bits(probe, d), (gpu_tests::AccumulatorBits{{14, 14}, {14, 14}, {14, 14}})) << name(kernel);
  }
  EXPECT_GT(kernels, 0);
}

// What the matrix promises, whatever the list: these shapes, epilogues and types come up.
TEST(Matrix, HoldsWhatItPromises) {
  std::set<std::pair<std::int64_t, std::int64_t>> mn, mk, nk;
  std::set<DataType> types;
  std::set<Activation> activations;
  std::set<Bias> biases;
  std::set<Reduction> reductions;
  std::set<std::pair<bool, bool>> constants;
  bool in_place = false, gaps = false, batch_gaps = false, off_boundary = false, exact = false;
  for (int i = 0; i < static_cast<int>(kernel_list().size()); ++i) {
    const KernelConfig& kernel = kernel_list()[static_cast<std::size_t>(i)];
    for (const GemmCase& c : cases_of(kernel, i)) {
      const GemmProblem p = gpu_tests::problem_for(kernel, c);
      mn.insert({p.m, p.n});
      mk.insert({p.m, p.k});
      nk.insert({p.n, p.k});
      types.insert(p.type_d);
      activations.insert(p.epilogue.activation);
      biases.insert(p.epilogue.bias);
      if (c.options.reduction) reductions.insert(*c.options.reduction);
      constants.insert({p.constant_a, p.constant_b});
      in_place |= c.c == CPlace::is_d && p.epilogue.beta != 0;
      gaps |= p.ldd > p.n && p.m > 1;
      batch_gaps |= p.batch > 1 && p.batch_stride_d > p.m * p.ldd;
      off_boundary |= c.offset_a_elems % 8 != 0;
      exact |= c.exactness == kExact;
    }
  }
  int pairs = 0;
  for (const std::int64_t x : kEdges)
    for (const std::int64_t y : kEdges) {
      EXPECT_TRUE(mn.contains({x, y})) << "m " << x << ", n " << y;
      pairs += mk.contains({x, y}) + nk.contains({x, y});
    }
  EXPECT_GE(pairs, 250);
  EXPECT_EQ(types.size(), 3u);
  EXPECT_EQ(activations.size(), 4u);
  EXPECT_EQ(biases.size(), 4u);
  EXPECT_EQ(reductions.size(), 2u);
  EXPECT_EQ(constants.size(), 4u);
  EXPECT_TRUE(in_place && gaps && batch_gaps && off_boundary && exact);
}

}  // namespace
}  // namespace sluice::test
