#include "general_case.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <utility>

#include "sluice/verify.hpp"

namespace sluice::gpu_tests {
namespace {

using Sizes = GeneralCase::Sizes;

std::int64_t round_up(std::int64_t value, std::int64_t step) { return (value + step - 1) / step * step; }

void put(std::byte* base, DataType type, std::int64_t index, float value) {
  if (type == DataType::fp32) {
    std::memcpy(base + index * 4, &value, 4);
    return;
  }
  if (is_fp8(type)) {
    base[index] = static_cast<std::byte>(to_e4m3_bits(value));
    return;
  }
  const std::uint16_t bits = type == DataType::bf16 ? to_bf16_bits(value) : to_fp16_bits(value);
  std::memcpy(base + index * 2, &bits, 2);
}

// rows x columns random numbers, each row `leading` from the last; NaN between them.
void fill(std::byte* base, DataType type, std::int64_t rows, std::int64_t columns, std::int64_t leading, std::mt19937_64& random) {
  std::uniform_int_distribution<int> number(-3, 3);  // sums of integers are exact in any order
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t column = 0; column < (row + 1 == rows ? columns : leading); ++column)
      put(base, type, row * leading + column,
          column < columns ? static_cast<float>(number(random)) : std::numeric_limits<float>::quiet_NaN());
}

// Powers of two, so that sums stay exact; NaN between them.
void fill_scales(std::byte* base, std::int64_t runs, std::int64_t length, std::int64_t pitch, std::mt19937_64& random) {
  std::uniform_int_distribution<int> exponent(-2, 2);
  for (std::int64_t run = 0; run < runs; ++run)
    for (std::int64_t i = 0; i < (run + 1 == runs ? length : pitch); ++i)
      put(base, DataType::fp32, run * pitch + i, i < length ? std::ldexp(1.0f, exponent(random)) : std::numeric_limits<float>::quiet_NaN());
}

std::vector<Sizes> random_sizes(std::uint64_t seed, int count, Sizes most) {
  std::mt19937_64 random(seed);
  const auto draw = [&](std::int32_t limit) {
    // As many small as large, and now and then nothing.
    const std::int32_t within = std::uniform_int_distribution<std::int32_t>(1, limit)(random);
    return std::uniform_int_distribution<std::int32_t>(random() % 8 == 0 ? 0 : 1, within)(random);
  };
  std::vector<Sizes> sizes;
  for (int i = 0; i < count; ++i) sizes.push_back({draw(most.m), draw(most.n), draw(most.k)});
  return sizes;
}

GeneralCase sized(std::string name, std::vector<Sizes> sizes) {
  GeneralCase c{.name = std::move(name), .sizes = std::move(sizes)};
  c.problem.type_d = DataType::fp32;
  return c;
}

void add_epilogues(const Sizes& one, std::vector<GeneralCase>& cases) {
  const std::vector<Sizes> sizes = {{one.m + 1, one.n - 8, one.k + 9}, {7, one.n + 3, 0}, {one.m, 16, one.k}};
  const auto add = [&](const char* name, const Epilogue& epilogue, DataType type_d) -> GeneralCase& {
    cases.push_back(sized(name, sizes));
    cases.back().problem.epilogue = epilogue;
    cases.back().problem.type_d = type_d;
    return cases.back();
  };
  add("16 bits", {.alpha = 2}, DataType::bf16);
  add("rows that end in a packet", {}, DataType::bf16).pad_elems = 5;  // of 16 bytes, which the copy engine would fill up
  add("C", {.alpha = 0.5f, .beta = 2}, DataType::fp16).pad_elems = 8;
  add("C is D", {.beta = 1}, DataType::fp32).c_is_d = true;
  add("bias of rows, relu", {.bias = Bias::per_row, .activation = Activation::relu}, DataType::bf16);
  add("bias of columns, odd pitch", {.beta = -1, .bias = Bias::per_column}, DataType::fp32).pad_elems = 3;
  add("no alpha", {.alpha = 0, .beta = 1}, DataType::fp32);
  add("D at single elements", {}, DataType::bf16).offset_d_elems = 1;
}

// Every kind of scale with another. Column-major ones come as runs where a group's rows and addresses let them.
struct ScaleKind {
  Scaling a, b;
  Layout layout_a = Layout::row_major, layout_b = Layout::row_major;
};
using enum Scaling;
constexpr auto kColumns = Layout::column_major;
constexpr std::array kScaleKinds = {ScaleKind{per_vector_128, per_block_128},
                                    ScaleKind{per_vector_128, per_block_128, kColumns},
                                    ScaleKind{per_vector_128, per_vector_128, kColumns, kColumns},
                                    ScaleKind{per_block_128, per_vector_128, kColumns},
                                    ScaleKind{per_vector, per_vector},
                                    ScaleKind{per_tensor, per_tensor},
                                    ScaleKind{per_vector_128, per_tensor},
                                    ScaleKind{per_vector, per_block_128, kColumns, kColumns},
                                    ScaleKind{none, none}};

void give_scales(GeneralCase& to, std::size_t kind) {
  const ScaleKind& chosen = kScaleKinds[kind % kScaleKinds.size()];
  to.problem.scaling_a = chosen.a;
  to.problem.scaling_b = chosen.b;
  to.problem.scale_layout_a = chosen.layout_a;
  to.problem.scale_layout_b = chosen.layout_b;
}

// Sizes that come as runs beside others that do not, K that ends in a block of scales, and groups with fewer blocks than the ones before.
void add_scales(const Sizes& tile, std::vector<GeneralCase>& cases) {
  const std::int32_t m = tile.m, n = tile.n, k = tile.k;
  const std::vector<Sizes> sizes = {
      {2 * m, n + 1, 3 * k - 1}, {3, 130, 1}, {m + 4, n, 127},     {m + 1, 2 * n, k + 1}, {8, n + 4, 0},
      {1, 1, 2 * k + 16},        {0, n, k},   {4, 128, 2 * k + 5}, {m, 12, 129},          {m + 2, n - 3, 5 * k}};
  for (std::size_t kind = 0; kind < kScaleKinds.size(); ++kind) {
    cases.push_back(sized("scales, kind " + std::to_string(kind), sizes));
    cases.back().pad_scale_elems = std::array{0, 4, 3}[kind % 3];
    cases.back().offset_scale_elems = std::array{0, 4, 1, 0}[kind / 2 % 4];
    if (kind % 2 == 1) cases.back().problem.type_d = DataType::bf16;
    give_scales(cases.back(), kind);
  }
  constexpr std::size_t kRuns = 2;
  cases.push_back(sized("scales, runs of less than a tile", {{4, 8, 3 * k}, {8, 4, 2 * k}, {12, 16, k + 3}}));
  give_scales(cases.back(), kRuns);
}

}  // namespace

std::string describe(const GeneralCase& c) { return c.name + ", " + sluice::describe(problem_of(c)); }

GemmProblem problem_of(const GeneralCase& c) {
  GemmProblem p = c.problem;
  p.grouping = Grouping::general;
  p.batch = static_cast<std::int64_t>(c.sizes.size());
  p.m = p.n = p.k = 0;
  for (const Sizes& s : c.sizes) {
    p.m = std::max<std::int64_t>(p.m, s.m);
    p.n = std::max<std::int64_t>(p.n, s.n);
    p.k = std::max<std::int64_t>(p.k, s.k);
  }
  if (c.largest.m > 0) p.m = c.largest.m;
  if (c.largest.n > 0) p.n = c.largest.n;
  if (c.largest.k > 0) p.k = c.largest.k;
  p.alignment_d_bytes = c.offset_d_elems == 0 ? 16 : size_bytes(p.type_d);
  return p;
}

PlanOptions options_of(const GeneralCase& c, const KernelConfig& kernel) {
  return {.claim = c.claim, .kernel_name = name(kernel), .keep_candidates = false};
}

std::vector<GeneralCase> general_cases(const KernelConfig& kernel, bool few) {
  const Sizes tile{kernel.tile_m, kernel.tile_n, kernel.tile_k};
  const std::int32_t m = tile.m, n = tile.n, k = tile.k;
  std::vector<GeneralCase> cases;
  cases.push_back(sized("one group", {{m + 3, n + 8, 2 * k + 1}}));
  cases.push_back(sized("two, whole tiles", {{m, n, k}, {2 * m, n, 3 * k}}));
  cases.push_back(sized("three, one of them nothing", {{1, 1, 1}, {m, 0, k}, {0, n, k}}));
  cases.push_back(sized("nothing at all", {{0, n, k}, {m, 0, k}}));
  cases.back().largest = {.m = m, .n = n, .k = k};
  cases.push_back(sized("17 of random sizes", random_sizes(17, 17, {2 * m, 2 * n, 3 * k})));
  cases.push_back(sized("a giant among small", {{5, 8, 16}, {0, 0, 0}, {3 * m + 1, 2 * n + 16, 4 * k + 8}, {1, 24, k}, {m, 8, 0}}));
  cases.push_back(sized("256 groups", random_sizes(256, 256, {few ? 12 : 2 * m, few ? 24 : 2 * n, few ? 20 : 4 * k})));
  std::vector<Sizes> every_second;
  for (std::int32_t i = 0; i < 40; ++i) every_second.push_back({3 + i, 40, i % 2 == 0 ? k + 6 : 0});
  cases.push_back(sized("every second without K", every_second));
  cases.push_back(sized("dealt out", random_sizes(5, 5, {2 * m, 2 * n, 2 * k})));
  cases.back().claim = WorkClaim::fixed;
  cases.push_back(sized("sizes out of range", {{m + 9, n, -5}, {-1, n, k}, {m, 2 * n, 9 * k}}));
  cases.back().largest = {.m = m, .n = n, .k = k};
  add_epilogues(tile, cases);
  if (is_fp8(kernel.type_a)) {
    constexpr std::size_t kFirst = 6;  // so that random sizes, which other tests take, have blocks in runs and in words
    for (std::size_t i = 0; i < cases.size(); ++i) give_scales(cases[i], kFirst + i);
    add_scales(tile, cases);
  }
  for (GeneralCase& each : cases) {
    each.problem.type_a = kernel.type_a;
    each.problem.type_b = kernel.type_b;
  }
  return cases;
}

GeneralMemory::ScaleRuns GeneralMemory::scale_runs(Scaling scaling, Layout layout, std::int64_t vectors, std::int64_t k, int pad_elems) {
  const auto blocks = [](std::int64_t extent) { return (extent + 127) / 128; };
  if (scaling == none || vectors <= 0 || k <= 0) return {};
  if (scaling == per_tensor) return {1, 1, 1};
  if (scaling == per_vector) return {1, vectors, vectors};
  const std::int64_t rows = scaling == per_block_128 ? blocks(vectors) : vectors, columns = blocks(k);
  if (layout == Layout::row_major) return {rows, columns, columns + pad_elems};
  return {columns, rows, rows + pad_elems};
}

GeneralMemory::GeneralMemory(const GeneralCase& c, std::uint64_t seed) : problem_(problem_of(c)) {
  const GemmProblem& p = problem_;
  const auto ab = static_cast<std::size_t>(size_bytes(p.type_a)), d = static_cast<std::size_t>(size_bytes(p.type_d));
  std::size_t end = kAlignment;  // a guard in front
  const auto place = [&](std::int64_t rows, std::int64_t columns, std::int64_t leading, std::size_t element, std::size_t offset) {
    const std::size_t first = end + offset * element;
    const std::int64_t elems = rows <= 0 || columns <= 0 ? 0 : (rows - 1) * leading + columns;
    end = (first + static_cast<std::size_t>(elems) * element) / kAlignment * kAlignment + 2 * kAlignment;
    return first;
  };
  std::vector<Sizes> clamped;
  for (const Sizes& s : c.sizes) {
    const auto within = [](std::int32_t value, std::int64_t most) {
      return static_cast<std::int32_t>(std::clamp<std::int64_t>(value, 0, most));
    };
    const Sizes real{within(s.m, p.m), within(s.n, p.n), within(s.k, p.k)};
    clamped.push_back(real);
    GroupArguments g{.m = s.m, .n = s.n, .k = s.k};
    const auto packet_elems = static_cast<std::int64_t>(16 / ab);
    g.lda = round_up(std::max(real.k, 1) + c.pad_elems, packet_elems);
    g.ldb = round_up(std::max(real.k, 1), packet_elems);
    g.ldc = real.n + c.pad_elems, g.ldd = c.pad_elems == 0 ? kPacked : real.n + c.pad_elems;
    if (c.pad_elems == 0) g.ldc = kPacked;
    const std::int64_t ldd = real.n + c.pad_elems;
    const auto offset = static_cast<std::size_t>(c.offset_d_elems);
    Offsets o{};
    o.a = place(real.m, real.k, g.lda, ab, 0);
    o.b = place(real.n, real.k, g.ldb, ab, 0);
    o.d = place(real.m, real.n, ldd, d, offset);
    o.c = c.c_is_d ? o.d : place(real.m, real.n, ldd, d, offset);
    o.bias = place(1, std::max(real.m, real.n), 0, d, 0);
    const auto offset_scales = static_cast<std::size_t>(c.offset_scale_elems);
    const ScaleRuns scales_a = scale_runs(p.scaling_a, p.scale_layout_a, real.m, real.n > 0 ? real.k : 0, c.pad_scale_elems);
    const ScaleRuns scales_b = scale_runs(p.scaling_b, p.scale_layout_b, real.n, real.m > 0 ? real.k : 0, c.pad_scale_elems);
    o.scale_a = place(scales_a.count, scales_a.length, scales_a.pitch, sizeof(float), offset_scales);
    o.scale_b = place(scales_b.count, scales_b.length, scales_b.pitch, sizeof(float), offset_scales);
    if (c.pad_scale_elems > 0) g.ld_scale_a = scales_a.pitch, g.ld_scale_b = scales_b.pitch;
    scales_.push_back({scales_a, scales_b});
    for (std::int64_t row = 0; row < real.m && real.n > 0; ++row) {
      const std::size_t first = o.d + static_cast<std::size_t>(row * ldd) * d;
      rows_of_d_.emplace_back(first, first + static_cast<std::size_t>(real.n) * d);
    }
    shapes_.push_back(g);
    offsets_.push_back(o);
  }
  blocks_.resize(end / kAlignment + 1);
  std::memset(data(), 0xa5, bytes());
  std::mt19937_64 random(seed);
  for (std::size_t i = 0; i < shapes_.size(); ++i) {
    const auto [m, n, k] = clamped[i];
    const GroupArguments& g = shapes_[i];
    const Offsets& o = offsets_[i];
    fill(data() + o.a, p.type_a, m, k, g.lda, random);
    fill(data() + o.b, p.type_b, n, k, g.ldb, random);
    for (std::int64_t row = 0; row < m; ++row)
      for (std::int64_t column = 0; column < n; ++column)
        put(data() + o.d, p.type_d, row * (n + c.pad_elems) + column, std::numeric_limits<float>::quiet_NaN());
    std::uniform_int_distribution<int> number(-3, 3);
    for (std::int64_t row = 0; row < m; ++row)
      for (std::int64_t column = 0; column < n && p.epilogue.beta != 0; ++column)
        put(data() + o.c, p.type_d, row * (n + c.pad_elems) + column, static_cast<float>(number(random)));
    fill(data() + o.bias, p.type_d, 1, std::max(m, n), 0, random);
    fill_scales(data() + o.scale_a, scales_[i][0].count, scales_[i][0].length, scales_[i][0].pitch, random);
    fill_scales(data() + o.scale_b, scales_[i][1].count, scales_[i][1].length, scales_[i][1].pitch, random);
  }
}

std::vector<GroupArguments> GeneralMemory::groups(const std::byte* base, const std::byte* base_c) const {
  std::vector<GroupArguments> all = shapes_;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Offsets& o = offsets_[i];
    GroupArguments& g = all[i];
    const bool nothing = g.m <= 0 || g.n <= 0;
    if (nothing) continue;  // no pointer is looked at
    const bool multiplied = g.k > 0 && problem_.epilogue.alpha != 0;
    if (multiplied) g.a = base + o.a, g.b = base + o.b;
    if (multiplied && problem_.scaling_a != none) g.scale_a = reinterpret_cast<const float*>(base + o.scale_a);
    if (multiplied && problem_.scaling_b != none) g.scale_b = reinterpret_cast<const float*>(base + o.scale_b);
    if (problem_.epilogue.beta != 0) g.c = base_c + o.c;
    if (problem_.epilogue.bias != Bias::none) g.bias = base + o.bias;
    g.d = const_cast<std::byte*>(base) + o.d;
  }
  return all;
}

bool GeneralMemory::in_some_d(std::size_t byte) const {
  const auto behind =
      std::upper_bound(rows_of_d_.begin(), rows_of_d_.end(), byte, [](std::size_t value, const auto& row) { return value < row.first; });
  return behind != rows_of_d_.begin() && byte < (behind - 1)->second;
}

std::string GeneralMemory::wrong_in(const GeneralMemory& after, std::int64_t samples) const {
  for (std::size_t byte = 0; byte < bytes(); ++byte)
    if (data()[byte] != after.data()[byte] && !in_some_d(byte))
      return "byte " + std::to_string(byte) + ", which is no group's D, is written";
  const std::vector<GroupArguments> host = after.groups(after.data(), data());
  const Result<VerifyReport> report = verify(problem_, {.group_arguments = host.data()}, nullptr, samples);
  if (!report) return report.error().message;
  return report->ok() ? "" : to_string(*report);
}

}  // namespace sluice::gpu_tests
