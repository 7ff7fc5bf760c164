// Learning LearntComparison from measured times: four small networks, each from weights of its own, by Adam (Kingma and Ba, 2015,
// algorithm 1) over all candidates at once; together they are one with all their units, whose answer is the mean.
//
// What is made small: the squared error of the logarithm of measured over predicted time, less the median of it among a product's
// candidates, since what all have in common moves no choice; and what a soft choice by the corrected predictions loses.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <numbers>
#include <random>
#include <thread>
#include <vector>

#include "sluice/calibration.hpp"
#include "sluice/plan.hpp"

#include "core/kernel_layout.hpp"
#include "planner/calibration/kernel_factor.hpp"
#include "planner/calibration/learnt.hpp"
#include "planner/cost_model.hpp"
#include "planner/workers.hpp"

namespace sluice {
namespace {

constexpr std::size_t kInputs = kLearntInputs.size(), kUnits = 32, kNetworks = 4;
constexpr std::size_t kLeastProducts = 8;  // fewer say too little

struct Sample {
  LearntInputs inputs{};  // less their means, in spreads
  double predicted_log = 0;
  double target = 0;  // the logarithm to find
  double weight = 1;
  double loss = 0;  // of choosing it: logarithm of its time over the product's least
};

struct Products {
  std::vector<Sample> samples;     // a product's are neighbours
  std::vector<std::size_t> begin;  // of each product, and the end
  std::array<double, kInputs> mean{}, spread{};

  std::size_t count() const { return begin.empty() ? 0 : begin.size() - 1; }
};

// A chain of layers through rings takes less than its parts, and must not have other kernels in between (docs/calibration.md): where
// weights are as large as those of such layers, only what is faster by more than chains gain is asked for. (No chain of weights of 4 bits
// has been timed: theirs count as they took.)
double counted_us(const GemmProblem& p, const Candidate& candidate, double us) {
  constexpr double kInChains = 0.9, kWeightsOfLayers = 32e6;
  const bool in_chains =
      streams(candidate.kernel) && !dequantises(candidate.kernel) && static_cast<double>(matrix_bytes_b(p)) >= kWeightsOfLayers;
  return in_chains ? kInChains * us : us;
}

struct Timed {
  Candidate candidate;
  double us;
};

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

void add_product(const GemmProblem& problem, const DeviceSpec& device, const std::vector<Timed>& all, Products& products) {
  constexpr double kNear = 1.2, kWeightOfOthers = 0.15, kMostLogarithm = 0.4, kMostLoss = 0.5;
  double least_us = HUGE_VAL, least_predicted = HUGE_VAL;
  for (const Timed& timed : all) {
    least_us = std::min(least_us, timed.us);
    least_predicted = std::min(least_predicted, timed.candidate.predicted.total_us);
  }
  std::vector<Sample> samples;
  std::vector<double> near;
  for (const auto& [candidate, us] : all) {
    const double predicted = candidate.predicted.total_us;
    if (predicted > kLearntWithin * least_predicted) continue;
    const bool matters = us < kNear * least_us || predicted < kNear * least_predicted;
    samples.push_back({.inputs = learnt_inputs(problem, device, candidate),
                       .predicted_log = std::log(predicted),
                       .target = std::log(us / predicted),
                       .weight = matters ? 1 : kWeightOfOthers,
                       .loss = std::min(std::log(us / least_us), kMostLoss)});
    if (matters) near.push_back(samples.back().target);
  }
  if (samples.size() < 2) return;
  const double common = median(near);
  for (Sample& sample : samples) sample.target = std::clamp(sample.target - common, -kMostLogarithm, kMostLogarithm);
  if (products.begin.empty()) products.begin.push_back(0);
  products.samples.insert(products.samples.end(), samples.begin(), samples.end());
  products.begin.push_back(products.samples.size());
}

void standardise(Products& products) {
  constexpr float kMost = 3;
  constexpr double kLeastSpread = 1e-6;
  const auto count = static_cast<double>(products.samples.size());
  for (std::size_t i = 0; i < kInputs; ++i) {
    double sum = 0, squares = 0;
    for (const Sample& sample : products.samples) sum += static_cast<double>(sample.inputs[i]);
    const double mean = sum / count;
    for (const Sample& sample : products.samples) squares += std::pow(static_cast<double>(sample.inputs[i]) - mean, 2);
    products.mean[i] = mean;
    products.spread[i] = std::sqrt(squares / count) + kLeastSpread;
    for (Sample& sample : products.samples)
      sample.inputs[i] = std::clamp(static_cast<float>((static_cast<double>(sample.inputs[i]) - mean) / products.spread[i]), -kMost, kMost);
  }
}

// Uniform bits to the normal distribution (Box and Muller, 1958): std::normal_distribution differs between libraries.
float normal(std::mt19937& bits) {
  const auto uniform = [&] { return (static_cast<double>(bits()) + 0.5) / 4294967296.0; };
  const double radius = std::sqrt(-2 * std::log(uniform()));
  return static_cast<float>(radius * std::cos(2 * std::numbers::pi * uniform()));
}

// The derivative of squashed().
float slope(float x) {
  const float square = std::min(x * x, 9.0f), root = (9.0f - square) / (3.0f * (3.0f + square));
  return root * root;
}

// Weights of the inputs, input by input, then the bias, then what comes out of each unit.
struct Network {
  static constexpr std::size_t kBias = kInputs * kUnits, kOut = kBias + kUnits, kCount = kOut + kUnits;
  std::vector<float> values = std::vector<float>(kCount);

  explicit Network(std::uint32_t seed) {
    constexpr float kSmall = 0.1f;
    std::mt19937 bits(seed);
    for (std::size_t i = 0; i < kBias; ++i) values[i] = normal(bits) / std::sqrt(static_cast<float>(kInputs));
    for (std::size_t i = kOut; i < kCount; ++i) values[i] = kSmall * normal(bits) / std::sqrt(static_cast<float>(kUnits));
  }
};

class Training {
 public:
  Training(const Products& products, std::uint32_t seed)
      : products_(products),
        network_(seed),
        sums_(products.samples.size() * kUnits),
        answers_(products.samples.size()),
        wanted_(products.samples.size()) {}

  Network run() {
    constexpr int kSteps = 800;
    constexpr double kRate = 0.01, kLeastRate = 1e-5;
    std::vector<float> gradient(Network::kCount);
    std::vector<double> first(Network::kCount), second(Network::kCount);
    for (int step = 1; step <= kSteps; ++step) {
      answer();
      ask();
      gradients(gradient);
      const double rate = kRate * 0.5 * (1 + std::cos(std::numbers::pi * step / kSteps)) + kLeastRate;
      move(gradient, step, rate, first, second);
    }
    return network_;
  }

 private:
  void answer() {
    const float* const w = network_.values.data();
    for (std::size_t n = 0; n < answers_.size(); ++n) {
      float* const sums = &sums_[n * kUnits];
      std::copy(w + Network::kBias, w + Network::kBias + kUnits, sums);
      for (std::size_t i = 0; i < kInputs; ++i)
        for (std::size_t unit = 0; unit < kUnits; ++unit) sums[unit] += products_.samples[n].inputs[i] * w[i * kUnits + unit];
      float value = 0;
      for (std::size_t unit = 0; unit < kUnits; ++unit) value += squashed(sums[unit]) * w[Network::kOut + unit];
      answers_[n] = value;
    }
  }

  // How the objective changes with each answer.
  void ask() {
    constexpr double kChoiceWeight = 4, kSharpness = 80;
    double weights = 0;
    for (const Sample& sample : products_.samples) weights += sample.weight;
    for (std::size_t product = 0; product < products_.count(); ++product) {
      const std::size_t begin = products_.begin[product], end = products_.begin[product + 1];
      const auto score = [&](std::size_t n) { return products_.samples[n].predicted_log + static_cast<double>(answers_[n]); };
      const auto share = [&](std::size_t n, double least) { return std::exp(-kSharpness * (score(n) - least)); };
      double least = HUGE_VAL, shares = 0, losses = 0;
      for (std::size_t n = begin; n < end; ++n) least = std::min(least, score(n));
      for (std::size_t n = begin; n < end; ++n) {
        shares += share(n, least);
        losses += share(n, least) * products_.samples[n].loss;
      }
      const double mean_loss = losses / shares;
      for (std::size_t n = begin; n < end; ++n) {
        const Sample& sample = products_.samples[n];
        const double of_error = 2 * sample.weight * (static_cast<double>(answers_[n]) - sample.target) / weights;
        const double of_choice = -kSharpness * share(n, least) / shares * (sample.loss - mean_loss);
        wanted_[n] = static_cast<float>(of_error + kChoiceWeight * of_choice / static_cast<double>(products_.count()));
      }
    }
  }

  void gradients(std::vector<float>& gradient) const {
    constexpr float kDecay = 3e-4f;
    const float* const w = network_.values.data();
    float* const g = gradient.data();
    for (std::size_t i = 0; i < Network::kCount; ++i) g[i] = i >= Network::kBias && i < Network::kOut ? 0 : kDecay * w[i];
    for (std::size_t n = 0; n < wanted_.size(); ++n) {
      const float* const sums = &sums_[n * kUnits];
      std::array<float, kUnits> back;
      for (std::size_t unit = 0; unit < kUnits; ++unit) {
        g[Network::kOut + unit] += wanted_[n] * squashed(sums[unit]);
        back[unit] = wanted_[n] * w[Network::kOut + unit] * slope(sums[unit]);
        g[Network::kBias + unit] += back[unit];
      }
      for (std::size_t i = 0; i < kInputs; ++i)
        for (std::size_t unit = 0; unit < kUnits; ++unit) g[i * kUnits + unit] += products_.samples[n].inputs[i] * back[unit];
    }
  }

  void move(const std::vector<float>& gradient, int step, double rate, std::vector<double>& first, std::vector<double>& second) {
    constexpr double kFirst = 0.9, kSecond = 0.999, kTiny = 1e-8;
    const double of_first = 1 - std::pow(kFirst, step), of_second = 1 - std::pow(kSecond, step);
    for (std::size_t i = 0; i < Network::kCount; ++i) {
      const auto g = static_cast<double>(gradient[i]);
      first[i] = kFirst * first[i] + (1 - kFirst) * g;
      second[i] = kSecond * second[i] + (1 - kSecond) * g * g;
      network_.values[i] -= static_cast<float>(rate * first[i] / of_first / (std::sqrt(second[i] / of_second) + kTiny));
    }
  }

  const Products& products_;
  Network network_;
  std::vector<float> sums_, answers_, wanted_;
};

double rounded(double value) {
  constexpr double kDigits = 1e4;
  return std::round(value * kDigits) / kDigits;
}

LearntComparison learn(Products& products, const std::string& operands, const DeviceSpec& device) {
  standardise(products);
  std::vector<Network> networks;
  for (std::uint32_t seed = 1; seed <= kNetworks; ++seed) networks.emplace_back(seed);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < kNetworks; ++i)
    threads.emplace_back([&, i] { networks[i] = Training(products, static_cast<std::uint32_t>(i + 1)).run(); });
  for (std::thread& thread : threads) thread.join();

  LearntComparison learnt{
      .operands = operands, .sm_count = device.sm_count, .hbm_gb_per_s = device.hbm_gb_per_s, .inputs = {}, .bias = {}, .out = {}};
  const auto together = [&](std::size_t first, double share) {
    std::vector<double> values;
    for (const Network& network : networks)
      for (std::size_t unit = 0; unit < kUnits; ++unit)
        values.push_back(rounded(share * static_cast<double>(network.values[first + unit])));
    return values;
  };
  for (std::size_t i = 0; i < kInputs; ++i)
    learnt.inputs.push_back({.name = std::string(kLearntInputs[i]),
                             .mean = rounded(products.mean[i]),
                             .spread = std::max(rounded(products.spread[i]), 1e-4),
                             .weights = together(i * kUnits, 1)});
  learnt.bias = together(Network::kBias, 1);
  learnt.out = together(Network::kOut, 1.0 / kNetworks);
  return learnt;
}

}  // namespace

Calibration learn_comparisons(std::span<const CandidateTiming> timings, const DeviceSpec& device, const Calibration& start) {
  struct Product {
    GemmProblem problem;
    std::vector<Timed> timed;
  };
  std::vector<Product> all;
  for (const CandidateTiming& timing : timings) {
    if (!(timing.measured_us > 0) || !std::isfinite(timing.measured_us) || timing.candidate.kernel.load != LoadPath::tma) continue;
    const Result<GemmProblem> problem = validate(timing.problem);
    if (!problem || learnt_operands(*problem).empty()) continue;
    const auto same = [&](const Product& product) { return product.problem == *problem; };
    auto found = std::find_if(all.rbegin(), all.rend(), same);
    if (found == all.rend()) {
      all.push_back({.problem = *problem, .timed = {}});
      found = all.rbegin();
    }
    Candidate candidate = timing.candidate;
    const int workers = worker_count(candidate.scheduler, device, candidate.kernel);
    candidate.predicted =
        predict(*problem, device, candidate.kernel, candidate.scheduler, workers, start, kernel_factor(start, candidate.kernel));
    found->timed.push_back({.candidate = candidate, .us = counted_us(*problem, candidate, timing.measured_us)});
  }
  std::map<std::string, Products> by_operands;
  for (const Product& product : all) add_product(product.problem, device, product.timed, by_operands[learnt_operands(product.problem)]);

  Calibration result = start;
  for (auto& entry : by_operands) {
    if (entry.second.count() < kLeastProducts) continue;
    std::erase_if(result.learnt, [&](const LearntComparison& learnt) { return learnt.operands == entry.first; });
    result.learnt.push_back(learn(entry.second, entry.first, device));
  }
  return result;
}

}  // namespace sluice
