// Coordinate descent on the constants and the kernels' factors. What is made small is the squared logarithm of predicted over measured
// time, candidates near the fastest counting most, plus what a choice by these predictions would lose, made smooth.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <thread>
#include <vector>

#include "sluice/calibration.hpp"
#include "sluice/plan.hpp"

#include "planner/calibration/constants.hpp"
#include "planner/calibration/kernel_factor.hpp"
#include "planner/calibration/learnt.hpp"
#include "planner/cost_model.hpp"
#include "planner/workers.hpp"

namespace sluice {
namespace {

// The timings that can be used, by problem and by kernel.
struct Samples {
  struct Sample {
    std::size_t timing;  // in the caller's list
    std::size_t shape, kernel;
    const Candidate* candidate;
    int workers;
    double us;
    double weight;
  };
  struct Shape {
    GemmProblem problem;
    std::vector<std::size_t> samples;
    double best_us;
  };
  struct Kernel {
    KernelConfig config;
    std::string key;
    std::vector<std::size_t> samples;
  };
  std::vector<Sample> samples;
  std::vector<Shape> shapes;
  std::vector<Kernel> kernels;
};

std::size_t find_or_add_shape(std::vector<Samples::Shape>& shapes, const GemmProblem& problem) {
  const auto found = std::find_if(shapes.rbegin(), shapes.rend(), [&](const auto& shape) { return shape.problem == problem; });
  if (found != shapes.rend()) return static_cast<std::size_t>(shapes.rend() - found) - 1;
  shapes.push_back({.problem = problem, .samples = {}, .best_us = HUGE_VAL});
  return shapes.size() - 1;
}

// Kernels that differ in type and layout alone are one.
std::size_t find_or_add_kernel(std::vector<Samples::Kernel>& kernels, const KernelConfig& config) {
  const auto same_config = [&](const auto& kernel) { return kernel.config == config; };
  if (const auto found = std::find_if(kernels.begin(), kernels.end(), same_config); found != kernels.end())
    return static_cast<std::size_t>(found - kernels.begin());
  const std::string key = kernel_key(config);
  const auto found = std::find_if(kernels.begin(), kernels.end(), [&](const auto& kernel) { return kernel.key == key; });
  if (found != kernels.end()) return static_cast<std::size_t>(found - kernels.begin());
  kernels.push_back({.config = config, .key = key, .samples = {}});
  return kernels.size() - 1;
}

// A candidate twice as slow as the fastest counts for little: its time need not be right, as long as it is not chosen.
double weight_of(double us, double best_us) {
  constexpr double kDecay = 5, kLeast = 0.02;
  return std::exp(-kDecay * (us / best_us - 1)) + kLeast;
}

Samples samples_of(std::span<const CandidateTiming> timings, const DeviceSpec& device) {
  Samples all;
  for (std::size_t i = 0; i < timings.size(); ++i) {
    const CandidateTiming& timing = timings[i];
    if (!(timing.measured_us > 0) || !std::isfinite(timing.measured_us)) continue;
    const Result<GemmProblem> problem = validate(timing.problem);
    if (!problem) continue;
    const std::size_t shape = find_or_add_shape(all.shapes, *problem);
    const std::size_t kernel = find_or_add_kernel(all.kernels, timing.candidate.kernel);
    all.shapes[shape].samples.push_back(all.samples.size());
    all.shapes[shape].best_us = std::min(all.shapes[shape].best_us, timing.measured_us);
    all.kernels[kernel].samples.push_back(all.samples.size());
    all.samples.push_back({.timing = i,
                           .shape = shape,
                           .kernel = kernel,
                           .candidate = &timing.candidate,
                           .workers = worker_count(timing.candidate.scheduler, device, timing.candidate.kernel),
                           .us = timing.measured_us,
                           .weight = 1});
  }
  for (Samples::Sample& sample : all.samples) sample.weight = weight_of(sample.us, all.shapes[sample.shape].best_us);
  return all;
}

PredictedTime prediction(const Samples& all, const Samples::Sample& sample, const DeviceSpec& device, const Calibration& calibration,
                         double factor) {
  const Candidate& candidate = *sample.candidate;
  return predict(all.shapes[sample.shape].problem, device, candidate.kernel, candidate.scheduler, sample.workers, calibration, factor);
}

double rounded(double value, int digits) {
  if (value == 0) return 0;
  const double scale = std::pow(10.0, digits - 1 - std::floor(std::log10(std::abs(value))));
  return scale >= 1 ? std::round(value * scale) / scale : value;
}

class Fit {
 public:
  Fit(const Samples& samples, const DeviceSpec& device, const Calibration& start) : all_(samples), device_(device), calibration_(start) {
    for (const Samples::Kernel& kernel : all_.kernels) factors_.push_back(kernel_factor(start, kernel.config));
    predicted_.resize(all_.samples.size());
    predict_all(predicted_);
    objective_ = objective(predicted_);
  }

  Calibration run() {
    constexpr int kRounds = 12, kWideRounds = 3;
    constexpr double kFirstStep = 0.15, kNarrower = 0.7;
    double step = kFirstStep;
    for (int round = 0; round < kRounds; ++round) {
      for (const Constant& constant : kConstants)
        if (constant.fitted) move_constant(constant, step);
      move_factors_to_mean();
      if (round >= kWideRounds) step_factors();
      if (round + 1 >= kWideRounds) step *= kNarrower;
    }
    return result();
  }

 private:
  void predict_all(std::vector<double>& predicted) const {
    constexpr std::size_t kLeastPerThread = 500, kMostThreads = 16;
    const auto predict_some = [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) predicted[i] = predict_one(i, factors_[all_.samples[i].kernel]);
    };
    const std::size_t cores = std::clamp<std::size_t>(std::thread::hardware_concurrency(), 1, kMostThreads);
    const std::size_t count = predicted.size(), parts = std::clamp<std::size_t>(count / kLeastPerThread, 1, cores);
    std::vector<std::thread> threads;
    for (std::size_t part = 1; part < parts; ++part) threads.emplace_back(predict_some, count * part / parts, count * (part + 1) / parts);
    predict_some(0, count / parts);
    for (std::thread& thread : threads) thread.join();
  }
  double predict_one(std::size_t i, double factor) const {
    return prediction(all_, all_.samples[i], device_, calibration_, factor).total_us;
  }

  // What the choice among candidates loses, each counting as much as its prediction is near the best prediction: about 2% behind, a third.
  double loss_of_choice(const Samples::Shape& shape, const std::vector<double>& predicted) const {
    constexpr double kSharpness = 60, kMostRatio = 2, kSquareWeight = 3;
    double best = HUGE_VAL, sum = 0, ratios = 0;
    for (const std::size_t i : shape.samples) best = std::min(best, predicted[i]);
    for (const std::size_t i : shape.samples) {
      const double share = std::exp(-kSharpness * (predicted[i] / best - 1));
      sum += share;
      ratios += share * std::min(kMostRatio, all_.samples[i].us / shape.best_us);
    }
    const double loss = ratios / sum - 1;
    return loss + kSquareWeight * loss * loss;  // one bad choice is worse than many that are a little off
  }

  double objective(const std::vector<double>& predicted) const {
    constexpr double kChoiceWeight = 10;
    double errors = 0, choices = 0;
    for (std::size_t i = 0; i < predicted.size(); ++i) {
      const double error = std::log(predicted[i] / all_.samples[i].us);
      errors += all_.samples[i].weight * error * error;
    }
    for (const Samples::Shape& shape : all_.shapes) choices += loss_of_choice(shape, predicted);
    return errors + kChoiceWeight * choices;
  }

  // Keeps what trial_ was predicted with if it is better than all before.
  bool keep_if_better() {
    const double value = objective(trial_);
    if (!(value < objective_)) return false;
    objective_ = value;
    predicted_.swap(trial_);
    return true;
  }

  bool try_constant(const Constant& constant, double value) {
    double& current = calibration_.*constant.value;
    const double before = current;
    current = std::clamp(value, constant.least, constant.most);
    if (current == before) return false;
    trial_.resize(predicted_.size());
    predict_all(trial_);
    if (keep_if_better()) return true;
    current = before;
    return false;
  }

  void move_constant(const Constant& constant, double step) {
    constexpr int kMostMoves = 3;
    const auto moves = [&](auto next) {
      int made = 0;
      while (made < kMostMoves && try_constant(constant, next(calibration_.*constant.value))) ++made;
      return made > 0;
    };
    if (!moves([&](double value) { return value == 0 ? step : value * (1 + step); }))
      moves([&](double value) { return value / (1 + step); });
  }

  // Each kernel's factor towards what its own times ask for; few times move it less.
  void move_factors_to_mean() {
    constexpr double kPart = 0.7, kPriorWeight = 1;
    const std::vector<double> before = factors_;
    for (std::size_t k = 0; k < factors_.size(); ++k) {
      double errors = 0, weights = kPriorWeight;
      for (const std::size_t i : all_.kernels[k].samples) {
        errors += all_.samples[i].weight * std::log(all_.samples[i].us / predicted_[i]);
        weights += all_.samples[i].weight;
      }
      factors_[k] = std::clamp(factors_[k] * std::exp(kPart * errors / weights), kLeastKernelFactor, kMostKernelFactor);
    }
    trial_.resize(predicted_.size());
    predict_all(trial_);
    if (!keep_if_better()) factors_ = before;
  }

  // One by one, for the choice.
  void step_factors() {
    constexpr double kStep = 1.01;
    for (std::size_t k = 0; k < factors_.size(); ++k)
      for (const double times : {kStep, 1 / kStep}) {
        const double factor = std::clamp(factors_[k] * times, kLeastKernelFactor, kMostKernelFactor);
        trial_ = predicted_;
        for (const std::size_t i : all_.kernels[k].samples) trial_[i] = predict_one(i, factor);
        if (!keep_if_better()) continue;
        factors_[k] = factor;
        break;
      }
  }

  // With as many digits as mean something. Factors of kernels that nothing was measured for stay.
  Calibration result() const {
    constexpr int kDigits = 4;
    Calibration fitted = calibration_;
    for (const Constant& constant : kConstants)
      if (constant.fitted) fitted.*constant.value = rounded(fitted.*constant.value, kDigits);
    for (std::size_t k = 0; k < factors_.size(); ++k) {
      const std::string& key = all_.kernels[k].key;
      const auto found = std::find_if(fitted.kernel_factors.begin(), fitted.kernel_factors.end(),
                                      [&](const KernelFactor& known) { return known.kernel == key; });
      KernelFactor& factor =
          found != fitted.kernel_factors.end() ? *found : fitted.kernel_factors.emplace_back(KernelFactor{.kernel = key});
      factor.factor = rounded(factors_[k], kDigits);
    }
    std::sort(fitted.kernel_factors.begin(), fitted.kernel_factors.end(),
              [](const KernelFactor& x, const KernelFactor& y) { return x.kernel < y.kernel; });
    return fitted;
  }

  const Samples& all_;
  const DeviceSpec& device_;
  Calibration calibration_;
  std::vector<double> factors_;    // one for each of Samples::kernels
  std::vector<double> predicted_;  // with these, one for each sample
  std::vector<double> trial_;
  double objective_ = 0;
};

std::vector<JudgedChoice> judge(const Samples& all, const DeviceSpec& device, const Calibration& calibration) {
  std::vector<double> factors;
  for (const Samples::Kernel& kernel : all.kernels) factors.push_back(kernel_factor(calibration, kernel.config));
  std::vector<JudgedChoice> judged;
  for (const Samples::Shape& shape : all.shapes) {
    JudgedChoice choice{.problem = shape.problem, .predicted_us = HUGE_VAL};
    double chosen_us = 0, fastest_us = HUGE_VAL;
    std::vector<Candidate> candidates;
    for (const std::size_t i : shape.samples) {
      const Samples::Sample& sample = all.samples[i];
      candidates.push_back(*sample.candidate);
      candidates.back().verdict = CandidateVerdict::slower;
      candidates.back().predicted = prediction(all, sample, device, calibration, factors[sample.kernel]);
    }
    compare_as_learnt(calibration, shape.problem, device, candidates);
    for (std::size_t place = 0; place < shape.samples.size(); ++place) {
      const Samples::Sample& sample = all.samples[shape.samples[place]];
      const double us = candidates[place].predicted.total_us;
      if (us < choice.predicted_us) choice.predicted_us = us, choice.chosen = sample.timing, chosen_us = sample.us;
      if (sample.us < fastest_us) choice.fastest = sample.timing, fastest_us = sample.us;
    }
    choice.ratio = chosen_us / fastest_us;
    judged.push_back(choice);
  }
  return judged;
}

}  // namespace

std::vector<JudgedChoice> judge_choices(std::span<const CandidateTiming> timings, const DeviceSpec& device,
                                        const Calibration& calibration) {
  return judge(samples_of(timings, device), device, calibration);
}

Calibration fit_calibration(std::span<const CandidateTiming> timings, const DeviceSpec& device, const Calibration& start) {
  const Samples all = samples_of(timings, device);
  Calibration here = start;  // factors of kernels will be those on this device's memory
  here.learnt.clear();
  here.measured_hbm_gb_per_s_per_sm = device.hbm_gb_per_s / device.sm_count;
  Calibration fitted = all.samples.empty() ? start : Fit(all, device, here).run();
  double logarithms = 0, worst = 0;
  const std::vector<JudgedChoice> judged = judge(all, device, fitted);
  for (const JudgedChoice& choice : judged) {
    logarithms += std::log(choice.ratio);
    worst = std::max(worst, choice.ratio);
  }
  constexpr int kDigits = 4;
  fitted.provenance = {.device = device.name,
                       .shapes = static_cast<int>(judged.size()),
                       .timings = static_cast<int>(all.samples.size()),
                       .choice_mean = judged.empty() ? 0 : rounded(std::exp(logarithms / static_cast<double>(judged.size())), kDigits),
                       .choice_worst = rounded(worst, kDigits)};
  return fitted;
}

}  // namespace sluice
