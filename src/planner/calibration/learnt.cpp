#include "planner/calibration/learnt.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "core/groups.hpp"
#include "core/kernel_layout.hpp"
#include "core/promotion.hpp"
#include "scheduler/tile_order.hpp"

namespace sluice {
namespace {

constexpr std::size_t kMostUnits = 256;
constexpr double kMostSpreads = 3;

float log2_of(double value) { return static_cast<float>(std::log2(std::max(value, 0.5))); }

const LearntComparison* learnt_for(const Calibration& calibration, const GemmProblem& problem, const DeviceSpec& device) {
  constexpr double kAsFast = 0.1;
  if (calibration.learnt.empty()) return nullptr;
  const std::string operands = learnt_operands(problem);
  for (const LearntComparison& learnt : calibration.learnt)
    if (learnt.operands == operands && learnt.sm_count == device.sm_count &&
        std::abs(device.hbm_gb_per_s / learnt.hbm_gb_per_s - 1) <= kAsFast)
      return &learnt;
  return nullptr;
}

double answer(const LearntComparison& learnt, const LearntInputs& inputs) {
  std::array<double, kMostUnits> sums;
  const std::size_t units = learnt.bias.size();
  std::copy(learnt.bias.begin(), learnt.bias.end(), sums.begin());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const LearntInput& input = learnt.inputs[i];
    const double x = std::clamp((static_cast<double>(inputs[i]) - input.mean) / input.spread, -kMostSpreads, kMostSpreads);
    for (std::size_t unit = 0; unit < units; ++unit) sums[unit] += x * input.weights[unit];
  }
  double value = 0;
  for (std::size_t unit = 0; unit < units; ++unit)
    value += learnt.out[unit] * static_cast<double>(squashed(static_cast<float>(sums[unit])));
  return value;
}

Status wrong(const std::string& path, const std::string& what) { return Error{ErrorCode::invalid_argument, path + " " + what}; }

Status check_numbers(const std::string& path, const std::vector<double>& numbers, std::size_t count) {
  constexpr double kMost = 1e4;
  if (numbers.size() != count) return wrong(path, fmt::format("has {} numbers, and the bias {}, one for each unit", numbers.size(), count));
  for (const double number : numbers)
    if (!(std::abs(number) <= kMost)) return wrong(path, fmt::format("has {}, which must be from -{} to {}", number, kMost, kMost));
  return Nothing{};
}

Status check_one(const std::string& path, const LearntComparison& learnt) {
  constexpr double kMost = 1e6;
  if (learnt.operands != "16-bit" && learnt.operands != "fp8" && learnt.operands != "w4")
    return wrong(path + ".operands", fmt::format("= \"{}\" must be 16-bit, fp8 or w4", learnt.operands));
  if (learnt.sm_count < 1) return wrong(path + ".sm_count", fmt::format("= {} must be above 0", learnt.sm_count));
  if (!(learnt.hbm_gb_per_s > 0 && learnt.hbm_gb_per_s <= kMost))
    return wrong(path + ".hbm_gb_per_s", fmt::format("= {} must be above 0, and at most {}", learnt.hbm_gb_per_s, kMost));
  if (learnt.bias.empty() || learnt.bias.size() > kMostUnits)
    return wrong(path + ".bias", fmt::format("has {} numbers; there must be 1 to {} units", learnt.bias.size(), kMostUnits));
  if (Status s = check_numbers(path + ".bias", learnt.bias, learnt.bias.size()); !s) return s;
  if (Status s = check_numbers(path + ".out", learnt.out, learnt.bias.size()); !s) return s;
  if (learnt.inputs.size() != kLearntInputs.size())
    return wrong(path + ".inputs",
                 fmt::format("are {}, and this library knows {}; learn again with it", learnt.inputs.size(), kLearntInputs.size()));
  for (std::size_t i = 0; i < kLearntInputs.size(); ++i) {
    const LearntInput& input = learnt.inputs[i];
    const std::string here = fmt::format("{}.inputs[{}]", path, i);
    if (input.name != kLearntInputs[i])
      return wrong(here + ".name", fmt::format("= \"{}\" must be \"{}\"; learn again with this library", input.name, kLearntInputs[i]));
    if (!(std::abs(input.mean) <= kMost) || !(input.spread > 0 && input.spread <= kMost))
      return wrong(
          here, fmt::format("has a mean of {} and a spread of {}; they must be finite, and the spread above 0", input.mean, input.spread));
    if (Status s = check_numbers(here + ".weights", input.weights, learnt.bias.size()); !s) return s;
  }
  return Nothing{};
}

}  // namespace

LearntInputs learnt_inputs(const GemmProblem& problem, const DeviceSpec& device, const Candidate& candidate) {
  constexpr int kLineBytes = 128;
  const KernelConfig& kernel = candidate.kernel;
  const SchedulerParams& s = candidate.scheduler;
  const PredictedTime& t = candidate.predicted;
  const double rounds = static_cast<double>(s.tiles_m) * s.tiles_n * s.splits / device.sm_count, whole = std::floor(rounds);
  const auto is = [](bool yes) { return yes ? 1.0f : 0.0f; };
  const auto share = [&](double us) { return static_cast<float>(us / t.total_us); };
  const auto used = [](std::int64_t size, std::int32_t tiles, int tile) {
    return static_cast<float>(static_cast<double>(size) / (static_cast<double>(tiles) * tile));
  };
  return {is(kernel.schedule == KernelSchedule::pingpong),
          is(kernel.schedule == KernelSchedule::streaming),
          is(kernel.schedule == KernelSchedule::sliced_k),
          is(kernel.order == OperandOrder::columns_of_b),
          static_cast<float>(kernel.tile_m),
          static_cast<float>(kernel.tile_n),
          static_cast<float>(kernel.tile_k),
          static_cast<float>(kernel.cluster_m),
          static_cast<float>(kernel.cluster_n),
          log2_of(static_cast<double>(problem.m)),
          log2_of(static_cast<double>(problem.n)),
          log2_of(static_cast<double>(problem.k)),
          log2_of(static_cast<double>(s.k_tiles) / s.splits),
          is(s.stream_k_tiles > 0),
          is(s.kind == SchedulerKind::hybrid),
          static_cast<float>(s.reduction),
          static_cast<float>(rounds),
          static_cast<float>(rounds - whole),
          static_cast<float>(rounds / std::ceil(rounds)),
          share(t.matrix_us),
          share(t.hbm_us),
          share(t.l2_us),
          share(t.reduction_us),
          share(t.ramp_us + t.launch_us),
          share(t.exposed_epilogue_us),
          log2_of(t.total_us),
          used(problem.m, s.tiles_m, kernel.tile_m),
          used(problem.n, s.tiles_n, kernel.tile_n),
          static_cast<float>(t.busy_share),
          is(problem.k * size_bytes(problem.type_a) % kLineBytes != 0),
          is(problem.n * size_bytes(problem.type_d) % kLineBytes != 0)};
}

std::string learnt_operands(const GemmProblem& p) {
  const bool plain = !is_grouped(p) && !is_grouped_along_k(p) && !is_general(p) && p.batch == 1;
  if (!plain || p.layout_a != Layout::row_major || p.layout_b != Layout::column_major) return "";
  if (is_fp8(p.type_a) && is_fp8(p.type_b)) return "fp8";
  if (size_bytes(p.type_a) != 2) return "";
  if (p.type_b == DataType::int4) return "w4";
  return size_bytes(p.type_b) == 2 ? "16-bit" : "";
}

void compare_as_learnt(const Calibration& calibration, const GemmProblem& problem, const DeviceSpec& device,
                       std::span<Candidate> candidates) {
  constexpr double kMostLogarithm = 0.4;
  const LearntComparison* const learnt = learnt_for(calibration, problem, device);
  if (learnt == nullptr) return;
  const auto runs = [](const Candidate& c) { return c.verdict == CandidateVerdict::slower || c.verdict == CandidateVerdict::chosen; };
  Candidate* first = nullptr;
  for (Candidate& candidate : candidates)
    if (runs(candidate) && (first == nullptr || candidate.predicted.total_us < first->predicted.total_us)) first = &candidate;
  if (first == nullptr || first->kernel.load != LoadPath::tma) return;
  const double most = kLearntWithin * first->predicted.total_us, of_first = answer(*learnt, learnt_inputs(problem, device, *first));
  for (Candidate& candidate : candidates) {
    if (!runs(candidate) || candidate.predicted.total_us > most || &candidate == first) continue;
    const double logarithm = answer(*learnt, learnt_inputs(problem, device, candidate)) - of_first;
    candidate.predicted.learnt_us = candidate.predicted.total_us * std::expm1(std::clamp(logarithm, -kMostLogarithm, kMostLogarithm));
    candidate.predicted.total_us += candidate.predicted.learnt_us;
  }
}

Status check_learnt(const Calibration& calibration) {
  for (std::size_t i = 0; i < calibration.learnt.size(); ++i) {
    const std::string path = fmt::format("learnt[{}]", i);
    if (Status s = check_one(path, calibration.learnt[i]); !s) return s;
    for (std::size_t j = 0; j < i; ++j)
      if (calibration.learnt[j].operands == calibration.learnt[i].operands)
        return wrong(path + ".operands", fmt::format("= \"{}\" was named before, by learnt[{}]", calibration.learnt[i].operands, j));
  }
  return Nothing{};
}

}  // namespace sluice
