#include "bench/report_page.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <string_view>

#include <fmt/format.h>

#include "pages/page.hpp"
#include "pages/svg.hpp"

namespace sluice::bench {
namespace {

constexpr std::array kRivalColours = {pages::kGrey, pages::kOrange, pages::kPurple};

std::string_view colour_of_rival(const BenchReport& report, const std::string& rival) {
  const auto found = std::find(report.rivals.begin(), report.rivals.end(), rival);
  return kRivalColours[static_cast<std::size_t>(found - report.rivals.begin()) % kRivalColours.size()];
}

double tflops(const Shape& shape, double us) { return us > 0 ? flops(shape) / us * 1e-6 : 0; }

pages::Point at(double x, double y, const Shape& shape) { return {x, y, fmt::format("{}: {:.4g}", to_string(shape), y)}; }

// Of the results that differ in N alone the longest row; empty if it is no row.
std::vector<const ShapeResult*> row_over_n(const BenchReport& report) {
  constexpr std::size_t kFewest = 4;
  std::map<std::pair<std::int64_t, std::int64_t>, std::vector<const ShapeResult*>> rows;
  for (const ShapeResult& result : report.results)
    if (result.sluice.us > 0) rows[{result.shape.m, result.shape.k}].push_back(&result);
  std::vector<const ShapeResult*> longest;
  for (auto& [key, row] : rows)
    if (row.size() > longest.size()) longest = row;
  if (longest.size() < kFewest) return {};
  std::sort(longest.begin(), longest.end(), [](const ShapeResult* x, const ShapeResult* y) { return x->shape.n < y->shape.n; });
  return longest;
}

// Where tiles of 128 x 128 fill the SMs once, twice, ...: a mark of the shapes, whatever the kernels' tiles.
std::vector<pages::Point> wave_marks(const std::vector<const ShapeResult*>& row, const DeviceSpec& device) {
  constexpr int kMostMarks = 12, kTile = 128;
  std::vector<pages::Point> marks;
  const double tiles_m = std::ceil(static_cast<double>(row.front()->shape.m) / kTile);
  for (int wave = 1; wave <= kMostMarks; ++wave) {
    const double n = wave * device.sm_count / tiles_m * kTile;
    if (n > static_cast<double>(row.back()->shape.n)) break;
    if (n >= static_cast<double>(row.front()->shape.n)) marks.push_back({n, 0, fmt::format("{}", wave)});
  }
  return marks;
}

std::string throughput(const BenchReport& report, const DeviceSpec& device) {
  const std::vector<const ShapeResult*> row = row_over_n(report);
  if (row.empty()) return "";
  pages::Plot plot{.title = fmt::format("Throughput over N, M = {}, K = {}; dashed: full waves of 128 x 128 tiles", row.front()->shape.m,
                                        row.front()->shape.k),
                   .x = {.title = "N", .begin = static_cast<double>(row.front()->shape.n), .end = static_cast<double>(row.back()->shape.n)},
                   .y = {.title = "TFLOP/s", .begin = 0},
                   .series = {},
                   .marks = wave_marks(row, device)};
  for (const std::string& rival : report.rivals)
    plot.series.push_back({.name = rival, .colour = colour_of_rival(report, rival), .points = {}, .line = true});
  plot.series.push_back({.name = "Sluice", .colour = pages::kBlue, .points = {}, .line = true});
  double most = 0;
  const auto add = [&](const std::string& name, const Shape& shape, double us) {
    if (us <= 0) return;
    most = std::max(most, tflops(shape, us));
    for (pages::Series& series : plot.series)
      if (series.name == name) series.points.push_back(at(static_cast<double>(shape.n), tflops(shape, us), shape));
  };
  for (const ShapeResult* result : row) {
    add("Sluice", result->shape, result->sluice.us);
    for (const RivalTiming& rival : result->rivals) add(rival.name, result->shape, rival.timing.us);
  }
  plot.y.end = 1.05 * most;
  return pages::to_svg(plot);
}

// Against the last rival, which is the hardest: each case's ratio, the worst first.
std::string ratios(const BenchReport& report) {
  if (report.rivals.empty()) return "";
  const std::string& rival = report.rivals.back();
  std::vector<pages::Bar> bars;
  for (const ShapeResult& result : report.results)
    for (const RivalTiming& timed : result.rivals)
      if (timed.name == rival && ratio(result, timed) > 0) bars.push_back({to_string(result.shape), ratio(result, timed)});
  if (bars.empty()) return "";
  std::sort(bars.begin(), bars.end(), [](const pages::Bar& x, const pages::Bar& y) { return x.value < y.value; });
  return pages::bars_to_svg(fmt::format("{} over Sluice, time: right of 1 Sluice is faster", rival), bars, 1);
}

double intensity(const Shape& shape) { return flops(shape) / bytes(shape); }

std::string roofline(const BenchReport& report, const DeviceSpec& device) {
  pages::Series own{.name = "Sluice", .colour = pages::kBlue, .points = {}};
  double least_x = std::numeric_limits<double>::max(), most_x = 0, least_y = least_x;
  bool fp8 = false;
  for (const ShapeResult& result : report.results) {
    if (result.sluice.us <= 0) continue;
    own.points.push_back(at(intensity(result.shape), tflops(result.shape, result.sluice.us), result.shape));
    least_x = std::min(least_x, own.points.back().x);
    most_x = std::max(most_x, own.points.back().x);
    least_y = std::min(least_y, own.points.back().y);
    fp8 = fp8 || is_fp8(result.shape.type);
  }
  if (own.points.empty()) return "";
  const double peak = device.sm_count * device.flops_per_clk_per_sm * (fp8 ? 2 : 1) * device.clock_ghz * 1e-3,
               slope = device.hbm_gb_per_s * 1e-3;
  least_x *= 0.8;
  most_x = std::max(most_x, peak / slope) * 1.3;
  const auto roof = [&](double x) { return pages::Point{x, std::min(peak, slope * x), "roof"}; };
  pages::Series roofs{.name = fmt::format("{:.0f} GB/s and {:.0f} TFLOP/s", device.hbm_gb_per_s, peak),
                      .colour = pages::kGrey,
                      .points = {roof(least_x), roof(peak / slope), roof(most_x)},
                      .line = true};
  return pages::to_svg({.title = "Roofline",
                        .x = {.title = "FLOP per byte, each operand moved once", .logarithmic = true, .begin = least_x, .end = most_x},
                        .y = {.title = "TFLOP/s", .logarithmic = true, .begin = 0.8 * least_y, .end = 1.3 * peak},
                        .series = {roofs, own},
                        .marks = {}});
}

std::string planner_error(const BenchReport& report) {
  pages::Series own{.name = "predicted over measured time", .colour = pages::kBlue, .points = {}};
  double least = std::numeric_limits<double>::max(), most = 0, reach = 1.2;
  for (const ShapeResult& result : report.results) {
    if (result.sluice.us <= 0 || result.predicted.total_us <= 0) continue;
    own.points.push_back(at(result.sluice.us, result.predicted.total_us / result.sluice.us, result.shape));
    least = std::min(least, result.sluice.us);
    most = std::max(most, result.sluice.us);
    reach = std::max({reach, own.points.back().y * 1.05, 1.05 / own.points.back().y});
  }
  if (own.points.empty()) return "";
  const pages::Series exact{.name = "exact", .colour = pages::kGrey, .points = {{0.8 * least, 1, ""}, {1.3 * most, 1, ""}}, .line = true};
  return pages::to_svg({.title = "How well the planner predicts its own choice",
                        .x = {.title = "measured, us", .logarithmic = true, .begin = 0.8 * least, .end = 1.3 * most},
                        .y = {.title = "predicted / measured", .begin = 1 / reach, .end = reach},
                        .series = {exact, own},
                        .marks = {}});
}

}  // namespace

std::vector<std::pair<std::string, std::string>> report_plots(const BenchReport& report, const DeviceSpec& device) {
  std::vector<std::pair<std::string, std::string>> plots = {{"throughput", throughput(report, device)},
                                                            {"ratio", ratios(report)},
                                                            {"roofline", roofline(report, device)},
                                                            {"planner", planner_error(report)}};
  std::erase_if(plots, [](const auto& plot) { return plot.second.empty(); });
  return plots;
}

std::string report_page(const BenchReport& report, const DeviceSpec& device) {
  const Environment& e = report.environment;
  std::string body =
      fmt::format("<h1>Sluice {} on {}</h1>\n<p class=\"faint\">{} shapes, commit {}, {}, driver {}</p>\n", pages::escape(e.sluice),
                  pages::escape(e.gpu), report.results.size(), pages::escape(e.commit), pages::escape(e.date), pages::escape(e.driver));
  for (const auto& [name, svg] : report_plots(report, device)) body += fmt::format("<div id=\"{}\">\n{}</div>\n", name, svg);
  body += "<h2>All numbers</h2>\n<pre>" + pages::escape(table_header(report));
  for (const ShapeResult& result : report.results) body += pages::escape(table_row(result, report.planner));
  body += pages::escape(table_footer(report)) + "</pre>\n";
  return pages::to_html({.title = "sluice bench", .body = body, .data = {}, .script = {}});
}

}  // namespace sluice::bench
