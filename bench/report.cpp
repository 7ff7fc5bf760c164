#include "bench/report.hpp"

#include <algorithm>
#include <functional>
#include <iterator>

#include <fmt/format.h>
#include "bench/report_json.hpp"
#include "bench/statistics.hpp"

namespace sluice::bench {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kKernelWidth = 34;

std::string rate(const Shape& shape, double us) {
  if (us <= 0) return "-";
  if (memory_bound(shape)) return fmt::format("{:.0f} GB/s", bytes(shape) / us * 1e-3);
  return fmt::format("{:.0f} TF/s", flops(shape) / us * 1e-6);
}

Json to_json(const Timing& timing, const Shape& shape) {
  return {{"us", timing.us},
          {"tflops", timing.us > 0 ? flops(shape) / timing.us * 1e-6 : 0},
          {"gb_per_s", timing.us > 0 ? bytes(shape) / timing.us * 1e-3 : 0},
          {"relative_spread", timing.spread},
          {"rounds", timing.rounds},
          {"launches_per_graph", timing.launches_per_graph}};
}

Json to_json(const PredictedTime& t) {
  return {{"total_us", t.total_us},
          {"launch_us", t.launch_us},
          {"matrix_us", t.matrix_us},
          {"hbm_us", t.hbm_us},
          {"l2_us", t.l2_us},
          {"ramp_us", t.ramp_us},
          {"exposed_epilogue_us", t.exposed_epilogue_us},
          {"reduction_us", t.reduction_us},
          {"learnt_us", t.learnt_us},
          {"power_us", t.power_us},
          {"waves", t.waves},
          {"useful_share", t.useful_share},
          {"busy_share", t.busy_share}};
}

Json to_json(const SchedulerParams& s) {
  return {{"kind", to_string(s.kind)},
          {"raster", to_string(s.raster)},
          {"cohort", s.cohort},
          {"tiles_m", s.tiles_m},
          {"tiles_n", s.tiles_n},
          {"k_tiles", s.k_tiles},
          {"splits", s.splits},
          {"reduction", to_string(s.reduction)},
          {"stream_k_tiles", s.stream_k_tiles},
          {"stream_k_ranges", s.stream_k_ranges}};
}

Json to_json(const KernelTiming& kernel, const Shape& shape) {
  Json json = to_json(kernel.timing, shape);
  json["kernel"] = kernel.kernel;
  json["scheduler"] = to_json(kernel.candidate.scheduler);
  json["predicted"] = to_json(kernel.candidate.predicted);
  json["correct"] = kernel.wrong.empty();
  if (!kernel.wrong.empty()) json["wrong"] = kernel.wrong;
  return json;
}

Json to_json(const GpuState& state) {
  const auto value = [](const std::optional<double>& number) { return number ? Json(*number) : Json(nullptr); };
  return {{"sm_clock_mhz", value(state.sm_clock_mhz)},
          {"memory_clock_mhz", value(state.memory_clock_mhz)},
          {"power_w", value(state.power_w)},
          {"temperature_c", value(state.temperature_c)}};
}

// What is summed up: a name, and the results that belong to it.
struct Group {
  std::string name;
  std::vector<const ShapeResult*> results;
};

// With weights of 4 bits each M is a class of its own: what bounds them changes from one to the next.
std::string row_class(const Shape& shape) { return has_w4(shape) ? fmt::format("m={}", shape.m) : std::string(m_class(shape.m)); }

// Each suite, and within it each class of M if there is more than one.
std::vector<Group> groups(const BenchReport& report) {
  std::vector<Group> all;
  const auto add = [&](const std::string& name, const std::function<bool(const ShapeResult&)>& belongs) {
    Group group{.name = name};
    for (const ShapeResult& result : report.results)
      if (belongs(result)) group.results.push_back(&result);
    if (!group.results.empty()) all.push_back(std::move(group));
  };
  std::vector<std::string> suites, classes = m_classes();
  const auto add_new = [](std::vector<std::string>& names, const std::string& name) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  };
  for (const ShapeResult& result : report.results) {
    add_new(suites, result.shape.suite);
    add_new(classes, row_class(result.shape));
  }
  for (const std::string& suite : suites) {
    add(suite, [&](const ShapeResult& r) { return r.shape.suite == suite; });
    const std::size_t whole = all.back().results.size();
    for (const std::string& rows : classes) {
      add(suite + " " + rows, [&](const ShapeResult& r) { return r.shape.suite == suite && row_class(r.shape) == rows; });
      if (all.back().results.size() == whole && all.back().name != suite) all.pop_back();
    }
  }
  if (suites.size() > 1) add("all", [](const ShapeResult&) { return true; });
  return all;
}

struct Summary {
  double geometric_mean = 0;
  double minimum = 0;
  std::string worst_shape;
  std::size_t count = 0;
};

// Of `value` over the group; results without one (nothing measured) are left out.
Summary summarise(const Group& group, const std::function<double(const ShapeResult&)>& value) {
  std::vector<double> values;
  Summary summary;
  for (const ShapeResult* result : group.results) {
    const double one = value(*result);
    if (one <= 0) continue;
    if (values.empty() || one < summary.minimum) {
      summary.minimum = one;
      summary.worst_shape = to_string(result->shape);
    }
    values.push_back(one);
  }
  summary.geometric_mean = geometric_mean(values);
  summary.count = values.size();
  return summary;
}

double floor_ratio(const ShapeResult& result) { return result.sluice.us > 0 ? floor_us(result) / result.sluice.us : 0; }

// What each group is judged by: the ratio to each rival and to the floor, or how near the planner's choice comes to the best kernel.
struct Measure {
  std::string name;
  std::function<double(const ShapeResult&)> value;
};

std::vector<Measure> measures(const BenchReport& report) {
  if (report.planner)
    return {{"best kernel / planner's choice", [](const ShapeResult& r) {
               const double loss = planner_loss(r);
               return loss < 0 ? 0.0 : 1 / (1 + loss);
             }}};
  std::vector<Measure> all;
  for (const std::string& rival : report.rivals)
    all.push_back({rival + " / Sluice", [rival](const ShapeResult& r) {
                     for (const RivalTiming& timed : r.rivals)
                       if (timed.name == rival) return ratio(r, timed);
                     return 0.0;
                   }});
  if (report.floor) all.push_back({"floor / Sluice", floor_ratio});
  return all;
}

Json summary_json(const BenchReport& report) {
  Json json = Json::array();
  for (const Group& group : groups(report))
    for (const Measure& measure : measures(report)) {
      const Summary s = summarise(group, measure.value);
      json.push_back({{"group", group.name},
                      {"measure", measure.name},
                      {"shapes", s.count},
                      {"geometric_mean", s.geometric_mean},
                      {"minimum", s.minimum},
                      {"minimum_at", s.worst_shape}});
    }
  return json;
}

const KernelTiming* chosen_of(const ShapeResult& result) {
  for (const KernelTiming& kernel : result.kernels)
    if (kernel.candidate.verdict == CandidateVerdict::chosen) return &kernel;
  return nullptr;
}

// Of `results` as a whole: what a planner that always knew best would gain, and where.
Json worst_json(const std::vector<ShapeResult>& results) {
  const auto one = [](const KernelTiming& kernel) {
    const SchedulerParams& s = kernel.candidate.scheduler;
    return Json{{"kernel", kernel.kernel}, {"scheduler", to_string(s.kind)}, {"splits", s.splits}, {"us", kernel.timing.us}};
  };
  Json json = Json::array();
  for (const ShapeResult* result : worst_choices(results))
    json.push_back({{"suite", result->shape.suite},
                    {"m", result->shape.m},
                    {"n", result->shape.n},
                    {"k", result->shape.k},
                    {"loss", planner_loss(*result)},
                    {"chosen", one(*chosen_of(*result))},
                    {"best", one(result->kernels.front())}});
  return json;
}

std::string worst_table(const std::vector<ShapeResult>& results, const std::string& title) {
  const std::vector<const ShapeResult*> worst = worst_choices(results);
  if (worst.empty()) return "";
  std::string text = fmt::format("\n{}\n{:<19} {:>6}  {:>9} {:<52}  {:>9} {}\n", title, "m x n x k", "loss", "us", "chosen", "us", "best");
  for (const ShapeResult* result : worst) {
    const KernelTiming &chosen = *chosen_of(*result), &best = result->kernels.front();
    text += fmt::format("{:<19} {:>5.1f}%  {:>9.2f} {:<52}  {:>9.2f} {}\n", to_string(result->shape), 100 * planner_loss(*result),
                        chosen.timing.us, describe(chosen), best.timing.us, describe(best));
  }
  return text;
}

// For each suite, and for all of them if there are several.
std::vector<std::pair<std::string, std::vector<ShapeResult>>> by_suite(const BenchReport& report) {
  std::vector<std::pair<std::string, std::vector<ShapeResult>>> suites;
  for (const ShapeResult& result : report.results) {
    auto found = std::find_if(suites.begin(), suites.end(), [&](const auto& suite) { return suite.first == result.shape.suite; });
    if (found == suites.end()) found = suites.insert(suites.end(), {result.shape.suite, {}});
    found->second.push_back(result);
  }
  if (suites.size() > 1) suites.emplace_back("all", report.results);
  return suites;
}

Json result_json(const ShapeResult& result, bool planner) {
  const Shape& shape = result.shape;
  Json json = {{"suite", shape.suite},
               {"m", shape.m},
               {"n", shape.n},
               {"k", shape.k},
               {"type", to_string(shape.type)},
               {"type_a", to_string(type_of_a(shape))},
               {"kernel", result.kernel},
               {"scheduler", result.scheduler},
               {"predicted", to_json(result.predicted)},
               {"correct", result.wrong.empty()},
               {"rotating_sets", result.rotating_sets},
               {"sluice", to_json(result.sluice, shape)},
               {"rivals", Json::object()}};
  if (!result.wrong.empty()) json["wrong"] = result.wrong;
  if (floor_us(result) > 0)
    json["floor"] = {{"us", floor_us(result)},
                     {"ratio", floor_ratio(result)},
                     {"stream_us", result.stream.us},
                     {"stream_relative_spread", result.stream.spread}};
  for (const RivalTiming& rival : result.rivals) {
    Json one = to_json(rival.timing, with_dense_weights(shape));
    one["detail"] = rival.detail;
    one["ratio"] = ratio(result, rival);
    json["rivals"][rival.name] = one;
  }
  if (planner) {
    json["planner_loss"] = planner_loss(result);
    json["kernels"] = Json::array();
    for (const KernelTiming& kernel : result.kernels) json["kernels"].push_back(to_json(kernel, shape));
  }
  return json;
}

}  // namespace

nlohmann::ordered_json to_json(const Environment& e) {
  return {{"gpu", e.gpu},
          {"sm_count", e.sm_count},
          {"driver", e.driver},
          {"cuda", e.cuda},
          {"cublaslt", e.cublaslt},
          {"sluice", e.sluice},
          {"commit", e.commit},
          {"date", e.date},
          {"before", to_json(e.before)},
          {"after", to_json(e.after)}};
}

double ratio(const ShapeResult& result, const RivalTiming& rival) {
  return result.sluice.us > 0 && rival.timing.us > 0 ? rival.timing.us / result.sluice.us : 0;
}

double floor_us(const ShapeResult& result) {
  // What the tensor cores of an H200 sustain under its power limit (docs/h200.md).
  constexpr double kFlopsPerUs = 869e6, kFp8FlopsPerUs = 1666e6;
  const double flops_per_us = is_fp8(type_of_a(result.shape)) ? kFp8FlopsPerUs : kFlopsPerUs;
  return result.stream.us > 0 ? std::max(result.stream.us, flops(result.shape) / flops_per_us) : 0;
}

double planner_loss(const ShapeResult& result) {
  if (result.kernels.empty() || result.sluice.us <= 0 || !result.kernels.front().wrong.empty()) return -1;
  return result.sluice.us / result.kernels.front().timing.us - 1;
}

std::string describe(const KernelTiming& kernel) {
  const SchedulerParams& s = kernel.candidate.scheduler;
  return fmt::format("{}, {}{}", kernel.kernel, to_string(s.kind),
                     s.kind == SchedulerKind::split_k ? fmt::format(" {}", s.splits) : std::string());
}

std::vector<const ShapeResult*> worst_choices(const std::vector<ShapeResult>& results, std::size_t most) {
  std::vector<const ShapeResult*> worst;
  for (const ShapeResult& result : results)
    if (planner_loss(result) > 0 && chosen_of(result) != nullptr) worst.push_back(&result);
  std::stable_sort(worst.begin(), worst.end(),
                   [](const ShapeResult* x, const ShapeResult* y) { return planner_loss(*x) > planner_loss(*y); });
  worst.resize(std::min(worst.size(), most));
  return worst;
}

std::string table_header(const BenchReport& report) {
  std::string line = fmt::format("{:<8} {:<19} {:>10} {:>9}  {:<{}}", "suite", "m x n x k", "Sluice us", "rate", "kernel", kKernelWidth);
  if (report.planner) return line + fmt::format(" {:>9} {:>6}  {:<{}}\n", "best us", "loss", "best kernel", kKernelWidth);
  for (const std::string& rival : report.rivals) line += fmt::format(" {:>13} {:>6}", rival, "ratio");
  line += fmt::format(" {:>8}", "model");
  if (report.floor) line += fmt::format(" {:>9} {:>6}", "floor us", "ratio");
  return line + '\n';
}

std::string table_row(const ShapeResult& result, bool planner) {
  const Shape& shape = result.shape;
  std::string line = fmt::format("{:<8} {:<19} {:>10.2f} {:>9}  {:<{}}", shape.suite, to_string(shape), result.sluice.us,
                                 rate(shape, result.sluice.us), result.kernel, kKernelWidth);
  if (planner && planner_loss(result) >= 0) {
    const KernelTiming& best = result.kernels.front();
    line += fmt::format(" {:>9.2f} {:>5.1f}%  {:<{}}", best.timing.us, 100 * planner_loss(result), best.kernel, kKernelWidth);
  }
  if (!planner) {
    for (const RivalTiming& rival : result.rivals)
      line += rival.timing.us > 0 ? fmt::format(" {:>13.2f} {:>6.3f}", rival.timing.us, ratio(result, rival))
                                  : fmt::format(" {:>13} {:>6}", "-", "-");
    if (result.sluice.us > 0) line += fmt::format(" {:>7.2f}x", result.predicted.total_us / result.sluice.us);
    if (floor_us(result) > 0) line += fmt::format(" {:>9.2f} {:>6.3f}", floor_us(result), floor_ratio(result));
  }
  line += '\n';
  if (!planner && !result.rivals.empty() && result.rivals.front().timing.us <= 0 && result.wrong.empty())
    line += fmt::format("  no rival: {}\n", result.rivals.front().detail);
  if (!result.wrong.empty()) line += fmt::format("  WRONG: {}: {}\n", to_string(shape), result.wrong);
  for (const KernelTiming& kernel : result.kernels)
    if (!kernel.wrong.empty()) line += fmt::format("  WRONG: {}: {}: {}\n", to_string(shape), kernel.kernel, kernel.wrong);
  return line;
}

std::string table_footer(const BenchReport& report) {
  const Environment& e = report.environment;
  std::string text;
  if (!measures(report).empty())
    text = fmt::format("\n{:<22} {:<32} {:>6} {:>10} {:>8}  {}\n", "", "", "shapes", "geo. mean", "minimum", "at");
  for (const Group& group : groups(report))
    for (const Measure& measure : measures(report)) {
      const Summary s = summarise(group, measure.value);
      text += fmt::format("{:<22} {:<32} {:>6} {:>10.3f} {:>8.3f}  {}\n", group.name, measure.name, s.count, s.geometric_mean, s.minimum,
                          s.worst_shape);
    }
  if (report.planner)
    for (const auto& [suite, results] : by_suite(report)) text += worst_table(results, suite + ": furthest from the best");
  const auto wrong = std::count_if(report.results.begin(), report.results.end(), [](const ShapeResult& r) {
    return !r.wrong.empty() || std::any_of(r.kernels.begin(), r.kernels.end(), [](const KernelTiming& k) { return !k.wrong.empty(); });
  });
  if (wrong > 0)
    text += fmt::format("\n*** WRONG RESULTS for {} of {} shapes: see the lines marked WRONG ***\n", wrong, report.results.size());
  if (report.turn_seconds > 0) text += fmt::format("\nin turns of {:g} s, of which the last third is timed\n", report.turn_seconds);
  return text + fmt::format("\n{}, driver {}, CUDA {}, cuBLASLt {}, Sluice {} ({}), {}\n", e.gpu, e.driver, e.cuda, e.cublaslt, e.sluice,
                            e.commit, e.date);
}

std::string to_json(const BenchReport& report) {
  Json json = {{"environment", to_json(report.environment)},
               {"rivals", report.rivals},
               {"constant_b", report.constant_b},
               {"turn_seconds", report.turn_seconds},
               {"ratio", "rival's (or floor's) time over Sluice's: above 1, Sluice is faster"},
               {"summary", summary_json(report)},
               {"results", Json::array()}};
  if (report.planner) {
    json["worst_choices"] = Json::object();
    for (const auto& [suite, results] : by_suite(report)) json["worst_choices"][suite] = worst_json(results);
  }
  for (const ShapeResult& result : report.results) json["results"].push_back(result_json(result, report.planner));
  return json.dump(2) + "\n";
}

std::string error_to_json(const Error& error, int exit_code) {
  const Json json = {{"error", {{"code", to_string(error.code)}, {"message", error.message}, {"exit_code", exit_code}}}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace sluice::bench
