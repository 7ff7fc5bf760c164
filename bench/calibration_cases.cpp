#include "bench/calibration_cases.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>

#include <fmt/format.h>

#include "bench/statistics.hpp"

namespace sluice::bench {
namespace {

constexpr std::int64_t kMostRowsWithConstant = 128;  // beyond, launches are too long for an early fetch to show

void take_every(std::size_t step, std::size_t first, const std::vector<Shape>& from, std::vector<Shape>& into) {
  for (std::size_t i = first; i < from.size(); i += step) into.push_back(from[i]);
}

// Some of every suite: one weight matrix in three for each M, others for the next M.
Result<std::vector<Shape>> shapes_of_all_kinds(std::uint64_t seed) {
  constexpr std::size_t kRandomShapes = 20;
  constexpr std::int64_t kMostSquare = 4096;
  const Result<std::vector<Shape>> llm = find_shapes("llm"), wave = find_shapes("wave"), splitk = find_shapes("splitk"),
                                   square = find_shapes("square"), random = find_shapes("random", seed);
  for (const Result<std::vector<Shape>>* suite : {&llm, &wave, &splitk, &square, &random})
    if (!*suite) return *suite;
  std::vector<Shape> shapes;
  std::size_t first = 0;
  for (const std::int64_t m : {1, 16, 64, 128, 512, 2048}) {
    std::vector<Shape> rows = *llm;
    std::erase_if(rows, [m](const Shape& shape) { return shape.m != m; });
    take_every(3, first++ % 3, rows, shapes);
  }
  take_every(2, 0, *wave, shapes);
  take_every(1, 0, *splitk, shapes);
  for (const Shape& shape : *square)
    if (shape.m <= kMostSquare) shapes.push_back(shape);
  shapes.insert(shapes.end(), random->begin(), random->begin() + std::min(kRandomShapes, random->size()));
  return shapes;
}

// By the golden section neighbours in the list come far apart, and every part of the new order has some of every part of the old.
std::vector<CalibrationCase> mixed(const std::vector<CalibrationCase>& cases) {
  constexpr double kGoldenSection = 0.6180339887498949;
  std::vector<std::pair<double, std::size_t>> order;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const double turns = kGoldenSection * static_cast<double>(i);
    order.emplace_back(turns - std::floor(turns), i);
  }
  std::sort(order.begin(), order.end());
  std::vector<CalibrationCase> mixed;
  mixed.reserve(order.size());
  for (const auto& [unused, i] : order) mixed.push_back(cases[i]);
  return mixed;
}

std::string describe(const Candidate& candidate) {
  return bench::describe(KernelTiming{.candidate = candidate, .kernel = name(candidate.kernel), .timing = {}, .wrong = {}});
}

struct Group {
  std::string name;
  std::vector<std::size_t> choices;
};

std::string mean_and_worst(const std::vector<JudgedChoice>& choices, const std::vector<std::size_t>& which) {
  double logarithms = 0, worst = 1;
  for (const std::size_t i : which) {
    logarithms += std::log(choices[i].ratio);
    worst = std::max(worst, choices[i].ratio);
  }
  return fmt::format("{:>8.4f} {:>7.3f}", std::exp(logarithms / static_cast<double>(which.size())), worst);
}

}  // namespace

std::string to_string(const CalibrationCase& one) { return to_string(one.shape) + (one.constant_b ? ", B constant" : ""); }

GemmProblem problem_of(const CalibrationCase& one) {
  BenchOptions options;
  options.constant_b = one.constant_b;
  return problem_of(one.shape, options);
}

Result<std::vector<CalibrationCase>> calibration_cases(const std::string& suites, std::uint64_t seed) {
  const Result<std::vector<Shape>> shapes = suites.empty() ? shapes_of_all_kinds(seed) : find_shapes(suites, seed);
  if (!shapes) return shapes.error();
  std::vector<CalibrationCase> cases;
  for (const Shape& shape : *shapes) {
    if (shape.type != DataType::bf16)
      return Error{ErrorCode::unsupported,
                   fmt::format("suite {} is of {}; constants are fitted to times of bf16", shape.suite, to_string(shape.type))};
    cases.push_back({.shape = shape});
    if (shape.m <= kMostRowsWithConstant) cases.push_back({.shape = shape, .constant_b = true});
  }
  return mixed(cases);
}

void CalibrationTimings::add(const CalibrationCase& one, const ShapeResult& result) {
  if (!result.wrong.empty()) wrong.push_back(fmt::format("{}: {}", to_string(one), result.wrong));
  std::vector<const KernelTiming*> timed;
  for (const KernelTiming& kernel : result.kernels) {
    if (!kernel.wrong.empty()) wrong.push_back(fmt::format("{}: {}: {}", to_string(one), bench::describe(kernel), kernel.wrong));
    if (kernel.wrong.empty() && kernel.timing.rounds > 0) timed.push_back(&kernel);  // 0 rounds: an estimate of one that is far behind
  }
  const GemmProblem problem = problem_of(one);
  const auto same = [&](const CalibrationCase& other) { return problem_of(other) == problem; };
  const auto at = static_cast<std::size_t>(std::find_if(cases.begin(), cases.end(), same) - cases.begin());
  std::vector<std::size_t> of_product;
  if (at == cases.size()) cases.push_back(one);
  for (std::size_t i = 0; i < timings.size(); ++i)
    if (case_of[i] == at) of_product.push_back(i);

  constexpr std::size_t kNever = SIZE_MAX;
  std::vector<std::size_t> before;  // where each stands that is timed now
  std::vector<double> ratios;
  for (const KernelTiming* kernel : timed) {
    const auto found = std::find_if(of_product.begin(), of_product.end(), [&](std::size_t i) {
      return timings[i].candidate.kernel == kernel->candidate.kernel && timings[i].candidate.scheduler == kernel->candidate.scheduler;
    });
    before.push_back(found == of_product.end() ? kNever : *found);
    if (before.back() != kNever) ratios.push_back(timings[before.back()].measured_us / kernel->timing.us);
  }
  const double scale = ratios.empty() ? 1 : median(ratios);
  for (std::size_t i = 0; i < timed.size(); ++i) {
    const double us = timed[i]->timing.us * scale;
    if (before[i] != kNever) {
      const int runs = times[before[i]]++;
      double& mean = timings[before[i]].measured_us;
      mean *= std::pow(us / mean, 1.0 / (runs + 1));
    } else {
      timings.push_back({.problem = problem, .candidate = timed[i]->candidate, .measured_us = us});
      case_of.push_back(at);
      times.push_back(1);
    }
  }
}

std::string calibration_report(const CalibrationTimings& measured, const DeviceSpec& device, const Calibration& before,
                               const Calibration& after) {
  const std::vector<JudgedChoice> old_choices = judge_choices(measured.timings, device, before);
  const std::vector<JudgedChoice> new_choices = judge_choices(measured.timings, device, after);
  const auto case_of = [&](const JudgedChoice& choice) -> const CalibrationCase& {
    return measured.cases[measured.case_of[choice.chosen]];
  };
  std::vector<Group> groups;
  const auto add = [&](const std::string& name, std::size_t i) {
    auto found = std::find_if(groups.begin(), groups.end(), [&](const Group& group) { return group.name == name; });
    if (found == groups.end()) found = groups.insert(found, Group{.name = name, .choices = {}});
    found->choices.push_back(i);
  };
  for (std::size_t i = 0; i < new_choices.size(); ++i)
    add(case_of(new_choices[i]).shape.suite + (case_of(new_choices[i]).constant_b ? ", B constant" : ""), i);
  std::sort(groups.begin(), groups.end(), [](const Group& x, const Group& y) { return x.name < y.name; });
  for (std::size_t i = 0; i < new_choices.size(); ++i) add("all", i);

  std::string out = fmt::format("{} timings; the choice's time over the fastest candidate's\n", measured.timings.size());
  out += fmt::format("{:<24} {:>6}  {:>16}  {:>16}\n{:<24} {:>6}  {:>8} {:>7}  {:>8} {:>7}\n", "", "", "before", "after", "suite", "shapes",
                     "mean", "worst", "mean", "worst");
  for (const Group& group : groups)
    out += fmt::format("{:<24} {:>6}  {}  {}\n", group.name, group.choices.size(), mean_and_worst(old_choices, group.choices),
                       mean_and_worst(new_choices, group.choices));

  constexpr std::size_t kMostWorst = 10;
  std::vector<JudgedChoice> worst = new_choices;
  std::stable_sort(worst.begin(), worst.end(), [](const JudgedChoice& x, const JudgedChoice& y) { return x.ratio > y.ratio; });
  for (std::size_t i = 0; i < std::min(kMostWorst, worst.size()) && worst[i].ratio > 1; ++i) {
    const CandidateTiming &chosen = measured.timings[worst[i].chosen], &fastest = measured.timings[worst[i].fastest];
    out += fmt::format("{}{:>6.3f}  {}: {} took {:.2f} us ({:.2f} predicted), {} {:.2f} us\n", i == 0 ? "the worst choices after\n" : "",
                       worst[i].ratio, to_string(case_of(worst[i])), describe(chosen.candidate), chosen.measured_us, worst[i].predicted_us,
                       describe(fastest.candidate), fastest.measured_us);
  }
  return out;
}

}  // namespace sluice::bench
