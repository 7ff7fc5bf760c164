#include "bench/recorded_timings.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "sluice/plan.hpp"

namespace sluice::bench {
namespace {

using Json = nlohmann::json;

Result<Shape> shape_of(const Json& json) {
  const auto type_a = json.at("type_a").get<std::string>(), type_b = json.at("type").get<std::string>();
  const std::optional<DataType> a = parse_data_type(type_a), b = parse_data_type(type_b);
  if (!a || !b)
    return Error{ErrorCode::bad_format,
                 fmt::format("has a product of {} beside {}, and {} is no type of this library", type_a, type_b, a ? type_b : type_a)};
  return Shape{.suite = json.at("suite").get<std::string>(),
               .m = json.at("m").get<std::int64_t>(),
               .n = json.at("n").get<std::int64_t>(),
               .k = json.at("k").get<std::int64_t>(),
               .type = *b,
               .activations = *a};
}

bool is_of(const Json& kernel, const Candidate& candidate) {
  const Json& scheduler = kernel.at("scheduler");
  return kernel.at("kernel").get<std::string>() == name(candidate.kernel) && scheduler.at("kind") == to_string(candidate.scheduler.kind) &&
         scheduler.at("splits") == candidate.scheduler.splits && scheduler.at("reduction") == to_string(candidate.scheduler.reduction);
}

Status add_product(const Json& json, bool constant_b, const DeviceSpec& device, CalibrationTimings& measured) {
  const Result<Shape> shape = shape_of(json);
  if (!shape) return shape.error();
  const CalibrationCase one{.shape = *shape, .constant_b = constant_b};
  const Result<Plan> plan = sluice::plan(problem_of(one), device);
  if (!plan) return Nothing{};
  ShapeResult result;
  for (const Json& kernel : json.at("kernels")) {
    const auto found = std::find_if(plan->candidates.begin(), plan->candidates.end(),
                                    [&](const Candidate& candidate) { return is_of(kernel, candidate); });
    if (found == plan->candidates.end()) continue;
    KernelTiming& timing =
        result.kernels.emplace_back(KernelTiming{.candidate = *found, .kernel = name(found->kernel), .timing = {}, .wrong = {}});
    timing.timing.us = kernel.at("us").get<double>();
    timing.timing.rounds = kernel.at("rounds").get<int>();
    if (!kernel.at("correct").get<bool>()) timing.wrong = "was wrong when it was timed";
  }
  measured.add(one, result);
  return Nothing{};
}

double mean_of_logarithms(const std::vector<JudgedChoice>& choices) {
  double sum = 0;
  for (const JudgedChoice& choice : choices) sum += std::log(choice.ratio);
  return sum;
}

}  // namespace

Status add_recorded(const std::string& text, const DeviceSpec& device, CalibrationTimings& measured) try {
  const Json json = Json::parse(text);
  for (const Json& product : json.at("results")) {
    if (!product.contains("kernels")) continue;
    if (Status s = add_product(product, json.at("constant_b").get<bool>(), device, measured); !s) return s;
  }
  return Nothing{};
} catch (const nlohmann::json::exception& e) {
  return Error{ErrorCode::bad_format, fmt::format("is not what `sluice bench --planner --out` writes: {}", e.what())};
}

LeftOut judge_left_out(const CalibrationTimings& measured, const DeviceSpec& device, const Calibration& start, int folds) {
  LeftOut out;
  double before = 0, after = 0;
  // A product that was measured twice is left out as a whole.
  const auto fold_of = [&](const GemmProblem& p) { return (p.m * 31 + p.n * 17 + p.k * 7) / 8 % folds; };
  for (int fold = 0; fold < folds; ++fold) {
    std::vector<CandidateTiming> learnt_from, left_out;
    for (const CandidateTiming& timing : measured.timings) (fold_of(timing.problem) == fold ? left_out : learnt_from).push_back(timing);
    const std::vector<JudgedChoice> without = judge_choices(left_out, device, start),
                                    with = judge_choices(left_out, device, learn_comparisons(learnt_from, device, start));
    before += mean_of_logarithms(without);
    after += mean_of_logarithms(with);
    out.products += with.size();
  }
  const auto count = static_cast<double>(std::max<std::size_t>(1, out.products));
  out.before = std::exp(before / count);
  out.after = std::exp(after / count);
  return out;
}

}  // namespace sluice::bench
