#include "bench/grouped.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>

#include <fmt/format.h>

#include "bench/report_json.hpp"
#include "bench/suites.hpp"
#include "sluice/w4.hpp"

namespace sluice::bench {
namespace {

using Json = nlohmann::ordered_json;
using Rows = std::vector<std::int32_t>;

constexpr std::int64_t kScaleBlock = 128;
std::int64_t scale_blocks(std::int64_t extent) { return (extent + kScaleBlock - 1) / kScaleBlock; }

Rows equal(int groups, std::int32_t rows) { return Rows(static_cast<std::size_t>(groups), rows); }

// `total` rows shared out by weights.
Rows by_weights(std::int32_t total, const std::vector<double>& weights) {
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  Rows rows;
  double before = 0;
  std::int32_t given = 0;
  for (const double weight : weights) {
    before += weight;
    const auto end = static_cast<std::int32_t>(std::lround(total * before / sum));
    rows.push_back(end - given);
    given = end;
  }
  return rows;
}

// Between 0.7 and 1.3 times as many as in the mean.
Rows about_equal(int groups, std::int32_t total) {
  std::vector<double> weights;
  std::uint32_t state = 12345;
  for (int g = 0; g < groups; ++g) {
    state = state * 1664525u + 1013904223u;
    weights.push_back(0.7 + 0.6 * (state >> 8) / 16777216.0);
  }
  return by_weights(total, weights);
}

// As many blocks of 128 rows: what is quantised has its groups filled up to whole ones.
Rows in_blocks(Rows rows) {
  for (std::int32_t& r : rows) r *= static_cast<std::int32_t>(kScaleBlock);
  return rows;
}

Rows zipf(int groups, std::int32_t total) {
  std::vector<double> weights;
  for (int g = 1; g <= groups; ++g) weights.push_back(1.0 / g);
  return by_weights(total, weights);
}

// `tokens` go to `each` of so many experts, drawn by hand as about_equal() draws.
Rows routed(int experts, int tokens, int each) {
  Rows rows(static_cast<std::size_t>(experts), 0);
  std::uint32_t state = 54321;
  for (int token = 0; token < tokens; ++token) {
    std::vector<bool> taken(rows.size());
    for (int left = each; left > 0;) {
      state = state * 1664525u + 1013904223u;
      const std::size_t expert = (state >> 8) % rows.size();
      if (taken[expert]) continue;
      taken[expert] = true;
      ++rows[expert];
      --left;
    }
  }
  return rows;
}

std::vector<GroupedShape> all_shapes() {
  struct Weights {
    std::int64_t n, k;
  };
  constexpr Weights kProjections[] = {{4096, 7168}, {7168, 2048}};
  constexpr Weights kMore[] = {{6144, 7168}, {7168, 3072}, {4096, 4096}, {4096, 2048}};
  using enum DataType;
  std::vector<GroupedShape> shapes;
  const auto ragged = [&](const char* set, DataType type, const Rows& rows, const Weights& w) {
    shapes.push_back({.set = set, .type = type, .grouping = Grouping::ragged, .rows = rows, .n = w.n, .k = w.k});
  };
  const auto masked = [&](DataType type, const Rows& rows, std::int64_t room, const Weights& w) {
    shapes.push_back({.set = "masked", .type = type, .grouping = Grouping::masked, .rows = rows, .room = room, .n = w.n, .k = w.k});
  };
  for (const DataType type : {e4m3, bf16})
    for (const Weights& w : kProjections) {
      ragged("contiguous", type, equal(4, 8192), w);
      ragged("contiguous", type, equal(8, 4096), w);
    }
  for (const Weights& w : kMore) ragged("contiguous", e4m3, about_equal(8, 33464), w);
  for (const Weights& w : kProjections)
    for (const auto& [groups, rows] : {std::pair{32, 2174}, {32, 4365}, {64, 6378}, {256, 8157}})
      ragged("unpadded", e4m3, about_equal(groups, rows), w);
  for (const bool known : {false, true}) {
    ragged("experts", e4m3, equal(256, 128), {512, 7168});
    shapes.back().knows_most = known;
  }
  ragged("experts", e4m3, about_equal(256, 256 * 128), {512, 7168});
  masked(e4m3, equal(256, 128), 128, {512, 7168});
  for (const int groups : {1, 2, 4})
    for (const Weights& w : kProjections) masked(e4m3, equal(groups, 1024 / groups), 4096, w);
  for (const auto& [groups, rows] : {std::pair{32, 6559}, {6, 6262}, {32, 670}, {6, 121}})
    for (const Weights& w : kMore)
      for (const DataType type : {e4m3, bf16}) masked(type, about_equal(groups, rows), 4096, w);
  for (const DataType type : {e4m3, bf16}) {
    ragged("skewed", type, equal(64, 512), {4096, 4096});
    ragged("skewed", type, zipf(64, 32768), {4096, 4096});
  }
  // Groups of rows again, as products of their own.
  for (const DataType type : {bf16, e4m3}) {
    const auto general = [&](const Rows& rows, const Weights& w) {
      shapes.push_back({.set = "general", .type = type, .grouping = Grouping::general, .rows = rows, .n = w.n, .k = w.k});
    };
    general(equal(8, 4096), kProjections[1]);
    general(equal(64, 512), {4096, 4096});
    general(zipf(64, 32768), {4096, 4096});
    general(about_equal(32, 670), {4096, 4096});
    general(equal(256, 128), {512, 7168});
  }
  for (const Weights& w : {Weights{4096, 2048}, Weights{7168, 2048}})
    for (const int tokens : {16, 128, 4096}) ragged("w4", int4, routed(64, tokens, 8), w);
  const auto gradients = [&](DataType type, const Rows& rows, const Weights& w) {
    shapes.push_back({.set = "gradients", .type = type, .grouping = Grouping::along_k, .rows = rows, .n = w.n, .k = w.k});
  };
  for (const DataType type : {e4m3, bf16}) {
    const bool fp8 = type == e4m3;
    for (const Weights& w : kProjections) gradients(type, equal(8, 4096), w);
    gradients(type, fp8 ? in_blocks(about_equal(8, 264)) : about_equal(8, 33464), kProjections[0]);
    gradients(type, equal(64, 512), {4096, 4096});
    gradients(type, fp8 ? in_blocks(zipf(64, 256)) : zipf(64, 32768), {4096, 4096});
  }
  return shapes;
}

bool same_rows(const GroupedShape& shape) {
  return std::all_of(shape.rows.begin(), shape.rows.end(), [&](std::int32_t r) { return r == shape.rows.front(); });
}

}  // namespace

std::vector<GroupedShape> grouped_shapes(const std::string& filter) {
  std::vector<GroupedShape> shapes = all_shapes();
  std::erase_if(shapes, [&](const GroupedShape& s) { return (s.set + " " + to_string(s)).find(filter) == std::string::npos; });
  return shapes;
}

std::int64_t all_rows(const GroupedShape& shape) { return std::accumulate(shape.rows.begin(), shape.rows.end(), std::int64_t{0}); }

std::string to_string(const GroupedShape& shape) {
  const char* const how_many = shape.knows_most ? "<=" : same_rows(shape) ? "" : "~";
  return fmt::format("{} {} {}x{}{}x{}x{}", to_string(shape.type), to_string(shape.grouping), shape.rows.size(), how_many,
                     all_rows(shape) / static_cast<std::int64_t>(shape.rows.size()), shape.n, shape.k);
}

GemmProblem grouped_problem(const GroupedShape& shape) {
  GemmProblem p = dense_problem(shape);
  if (shape.type == DataType::int4) {
    p.type_b = DataType::int4;
    p.w4 = kBenchW4;
  }
  if (shape.grouping == Grouping::along_k) p.k = all_rows(shape);
  p.batch = static_cast<std::int64_t>(shape.rows.size());
  p.grouping = shape.grouping;
  if (shape.grouping == Grouping::masked || shape.grouping == Grouping::general) {
    p.m = shape.grouping == Grouping::masked ? shape.room : *std::max_element(shape.rows.begin(), shape.rows.end());
    p.expected_rows = std::max<std::int64_t>(1, all_rows(shape) / p.batch);
  }
  if (shape.knows_most) p.most_rows = *std::max_element(shape.rows.begin(), shape.rows.end());
  return p;
}

GemmProblem problem_in_memory(const GroupedShape& shape) {
  GroupedShape rows = shape;
  if (shape.grouping == Grouping::general) rows.grouping = Grouping::ragged;
  return grouped_problem(rows);
}

GemmProblem dense_problem(const GroupedShape& shape) {
  if (shape.grouping == Grouping::along_k) {
    const auto groups = static_cast<std::int64_t>(shape.rows.size());
    GemmProblem p{.m = shape.k, .n = shape.n, .k = all_rows(shape) / groups, .batch = groups, .type_a = shape.type, .type_b = shape.type};
    if (is_fp8(shape.type)) {
      p.scaling_a = p.scaling_b = Scaling::per_vector_128;
      p.scale_layout_a = p.scale_layout_b = Layout::column_major;
    } else {
      p.layout_a = Layout::column_major, p.layout_b = Layout::row_major;
    }
    return p;
  }
  GemmProblem p{.m = all_rows(shape), .n = shape.n, .k = shape.k, .type_a = shape.type, .type_b = shape.type};
  if (shape.type == DataType::int4) {
    p.type_a = p.type_b = DataType::bf16;
    p.batch = static_cast<std::int64_t>(shape.rows.size());
    p.grouping = shape.grouping;
  }
  if (!is_fp8(shape.type)) return p;
  p.scaling_a = Scaling::per_vector_128;
  p.scaling_b = Scaling::per_block_128;
  p.scale_layout_a = Layout::column_major;
  return p;
}

std::vector<std::int32_t> group_numbers(const GroupedShape& shape) {
  if (shape.grouping == Grouping::masked) return shape.rows;
  std::vector<std::int32_t> offsets = {0};
  for (const std::int32_t rows : shape.rows) offsets.push_back(offsets.back() + rows);
  return offsets;
}

double flops(const GroupedShape& s) { return 2.0 * static_cast<double>(all_rows(s)) * static_cast<double>(s.n) * static_cast<double>(s.k); }

double bytes(const GroupedShape& s) {
  const auto rows = static_cast<double>(all_rows(s)), n = static_cast<double>(s.n), k = static_cast<double>(s.k);
  const auto groups = static_cast<double>(std::count_if(s.rows.begin(), s.rows.end(), [](std::int32_t r) { return r > 0; }));
  if (s.grouping == Grouping::along_k) {
    const double scales = is_fp8(s.type) ? sizeof(float) * (n + k) * static_cast<double>(scale_blocks(all_rows(s))) : 0.0;
    return rows * (n + k) * size_bytes(s.type) + scales + 2.0 * static_cast<double>(s.rows.size()) * n * k;
  }
  if (s.type == DataType::int4) return 2.0 * rows * (k + n) + groups * static_cast<double>(packed_w4_bytes(s.n, s.k, kBenchW4));
  double all = (rows * k + groups * n * k) * size_bytes(s.type) + 2.0 * rows * n;
  if (is_fp8(s.type))
    all += sizeof(float) * (rows + groups * static_cast<double>(scale_blocks(s.n))) * static_cast<double>(scale_blocks(s.k));
  return all;
}

bool any_wrong(const GroupedReport& report) {
  return std::any_of(report.results.begin(), report.results.end(), [](const GroupedResult& r) { return !r.wrong.empty(); });
}

std::string table_header(const GroupedReport&) {
  return fmt::format("{:<11} {:<34} {:>9} {:>8} {:>7} {:>9} {:>9} {:>8} {:>8}  {}\n", "set", "type, groups x rows x n x k", "us", "TFLOP/s",
                     "GB/s", "stream us", "dense us", "stream/", "dense/", "kernel");
}

std::string table_row(const GroupedResult& r) {
  const std::string what = to_string(r.shape);
  if (!r.wrong.empty()) return fmt::format("{:<11} {:<34} WRONG: {}\n", r.shape.set, what, r.wrong);
  const double us = r.grouped.us;
  const auto ratio = [](const Timing& other, const Timing& own) {
    return other.us > 0 ? fmt::format("{:.3f}", other.us / own.us) : std::string("-");
  };
  std::string line = fmt::format("{:<11} {:<34} {:>9.2f} {:>8.0f} {:>7.0f} {:>9.2f} {:>9} {:>8} {:>8}  {} {}\n", r.shape.set, what, us,
                                 flops(r.shape) / us * 1e-6, bytes(r.shape) / us * 1e-3, r.stream.us,
                                 r.dense.us > 0 ? fmt::format("{:.2f}", r.dense.us) : "-", ratio(r.stream, r.grouped),
                                 ratio(r.dense, r.beside_dense), r.kernel, r.scheduler);
  if (r.best_us > 0) line += fmt::format("{:<46} {:>9.2f}  {:.3f}  best: {}\n", "", r.best_us, us / r.best_us, r.best);
  return line;
}

std::string table_footer(const GroupedReport& report) {
  const Environment& e = report.environment;
  std::string text = any_wrong(report) ? "\n*** WRONG RESULTS: see the lines marked WRONG ***\n" : "";
  text +=
      "\nstream: reading as many bytes as must be moved; dense: one product of as many rows by Sluice, of w4 the same groups in bf16; each "
      "over the grouped time in turn with it (us: in turn with the stream)\n";
  return text + fmt::format("{}, driver {}, CUDA {}, Sluice {} ({}), {}\n", e.gpu, e.driver, e.cuda, e.sluice, e.commit, e.date);
}

std::string to_json(const GroupedReport& report) {
  Json json = {{"environment", to_json(report.environment)}, {"results", Json::array()}};
  for (const GroupedResult& r : report.results) {
    Json one = {{"set", r.shape.set},
                {"type", to_string(r.shape.type)},
                {"grouping", to_string(r.shape.grouping)},
                {"rows", r.shape.rows},
                {"room", r.shape.room},
                {"n", r.shape.n},
                {"k", r.shape.k},
                {"kernel", r.kernel},
                {"scheduler", r.scheduler},
                {"us", r.grouped.us},
                {"relative_spread", r.grouped.spread},
                {"stream_us", r.stream.us},
                {"correct", r.wrong.empty()}};
    if (r.dense.us > 0) one["dense_us"] = r.dense.us, one["beside_dense_us"] = r.beside_dense.us;
    if (r.best_us > 0) one["best"] = {{"kernel", r.best}, {"us", r.best_us}};
    if (!r.wrong.empty()) one["wrong"] = r.wrong;
    json["results"].push_back(one);
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace sluice::bench
