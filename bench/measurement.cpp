#include "bench/measurement.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "bench/sizing.hpp"
#include "bench/stream.hpp"
#include "bench/tuning.hpp"
#include "sluice/plan.hpp"
#include "sluice/run.hpp"

namespace sluice::bench {
namespace {

constexpr double kKernelGraphUs = 700;  // of one kernel among all
constexpr int kKernelRounds = 3;
constexpr std::size_t kFinalists = 10;
constexpr double kFinalistWithin = 1.2;  // of the best
constexpr std::int64_t kSamples = 4096;

bool wants(const BenchOptions& options, const std::string& rival) {
  return std::find(options.rivals.begin(), options.rivals.end(), rival) != options.rivals.end();
}

}  // namespace

struct Measurement::Product {
  Shape shape;
  RotatingOperands operands;
  std::unique_ptr<CublasLtMatmul> cublaslt;  // null without the library, or where it has no algorithm
  std::string no_cublaslt;                   // why
  std::size_t weight_bytes = 0;              // of B as Sluice reads it

  int sets() const { return static_cast<int>(operands.sets.size()); }
};

Measurement::Measurement(const BenchOptions& options, const std::vector<Shape>& shapes, const DeviceSpec& device,
                         std::shared_ptr<const CublasLt> cublaslt)
    : options_(options),
      device_(device),
      cublaslt_(std::move(cublaslt)),
      arena_(shapes, static_cast<std::size_t>(device.l2_bytes), stream_),
      cublaslt_workspace_(cublaslt_ ? CublasLtMatmul::kWorkspaceBytes : 0),
      check_(stream_) {}

Enqueue Measurement::sluice_enqueue(const Product& product, const Plan& plan) {
  if (plan.workspace_bytes > workspace_.size_bytes()) {
    workspace_ = DeviceBuffer(plan.workspace_bytes);
    check(cudaMemsetAsync(workspace_.data(), 0, workspace_.size_bytes(), stream_), "clearing the workspace");
  }
  return [this, &product, &plan](int set, cudaStream_t stream) {
    const OperandSet& operands = product.operands.sets[static_cast<std::size_t>(set)];
    const Status status = run(plan, operands.arguments(), workspace_.data(), workspace_.size_bytes(), stream);
    if (!status) throw DeviceFailure(status.error().message);
  };
}

void Measurement::compute_reference(const Product& product) {
  check(cudaMemsetAsync(product.operands.reference_d, kPoisonByte, product.operands.d_bytes, stream_), "poisoning the reference");
  OperandSet set = product.operands.sets.front();
  set.d = product.operands.reference_d;
  const auto algorithm = product.cublaslt->heuristics(1, CublasLtReduction::in_fp32).front();
  product.cublaslt->enqueue(algorithm, set, cublaslt_workspace_.data(), stream_);
  stream_.synchronize("waiting for cuBLASLt's " + to_string(product.shape));
}

// Every element against cuBLASLt's, some against the reference in double precision. Two bf16 results of sums in fp32 differ by a unit in
// the last place, 2^-7 of the value at most; around zero by what the sums differ by, far below 2^-7 sqrt(k) for k products of variance 1
// (of FP8, too, though the tensor cores cut off what is below 2^-13 of the largest product).
std::string Measurement::verify(const Product& product, const Plan& plan) {
  const OperandSet& set = product.operands.sets.front();
  check(cudaMemsetAsync(set.d, kPoisonByte, product.operands.d_bytes, stream_), "poisoning an output");
  sluice_enqueue(product, plan)(0, stream_);
  check_.reset();
  check_.against_reference(with_dense_weights(plan.problem), set.dense_arguments(), nullptr, Exactness::bounded, kSamples);
  if (product.cublaslt)
    check_.against_result(set.d, product.operands.reference_d, product.shape.m, product.shape.n, 0x1p-7f,
                          0x1p-7f * std::sqrt(static_cast<float>(product.shape.k)));
  const CheckReport report = check_.fetch();
  return report.ok() ? "" : to_string(report);
}

cublasLtMatmulAlgo_t Measurement::fastest_of(const Product& product, const std::vector<cublasLtMatmulAlgo_t>& algorithms) {
  std::vector<Enqueue> ways;
  for (const cublasLtMatmulAlgo_t& algorithm : algorithms)
    ways.push_back([this, &product, algorithm](int set, cudaStream_t stream) {
      product.cublaslt->enqueue(algorithm, product.operands.sets[static_cast<std::size_t>(set)], cublaslt_workspace_.data(), stream);
    });
  return algorithms[fastest(ways, product.sets(), stream_)];
}

// An idle GPU has lowered its clocks: the first shape would be timed while they rise.
void Measurement::warm_up(const std::vector<Graph>& graphs) {
  constexpr int kReplays = 50;
  for (int i = 0; i < kReplays && !warm_; ++i) graphs.front().launch(stream_);
  warm_ = true;
}

void Measurement::time_rivals(const Product& product, const Plan& plan, ShapeResult& result) {
  struct Rival {
    std::string name;
    cublasLtMatmulAlgo_t algorithm;
  };
  std::vector<Rival> rivals;
  if (!options_.rivals.empty() && product.cublaslt) {
    const auto algorithms = product.cublaslt->heuristics(CublasLtMatmul::kAnswers);
    if (wants(options_, "cublaslt")) rivals.push_back({"cublaslt", algorithms.front()});
    if (wants(options_, "cublaslt-best")) rivals.push_back({"cublaslt-best", fastest_of(product, algorithms)});
  }
  std::vector<Enqueue> enqueues = {sluice_enqueue(product, plan)};
  for (const Rival& rival : rivals)
    enqueues.push_back([this, &product, algorithm = rival.algorithm](int set, cudaStream_t stream) {
      product.cublaslt->enqueue(algorithm, product.operands.sets[static_cast<std::size_t>(set)], cublaslt_workspace_.data(), stream);
    });

  // Behind the rivals, and in turn with them: clocks are the same for all.
  const bool floor = has_w4(product.shape);
  if (floor)
    enqueues.push_back([&product](int set, cudaStream_t stream) {
      stream_through(product.operands.sets[static_cast<std::size_t>(set)].b, product.weight_bytes, stream);
    });

  std::vector<double> estimates;
  for (const Enqueue& enqueue : enqueues) estimates.push_back(estimate_us(enqueue, product.sets(), stream_));
  const int launches = launches_for(*std::min_element(estimates.begin(), estimates.end()), product.sets(), kGraphUs);
  std::vector<Graph> graphs;
  for (const Enqueue& enqueue : enqueues) graphs.push_back(make_graph(enqueue, product.sets(), launches, stream_));
  warm_up(graphs);
  const double round_us = launches * std::accumulate(estimates.begin(), estimates.end(), 0.0);
  const double turn_us = options_.turn_seconds * 1e6;
  const int rounds = rounds_within(kTimedShare * options_.seconds_per_shape, round_us, options_.rounds, turn_us);
  const std::vector<Timing> timings = time_in_turns(pointers(graphs), launches, rounds, stream_, turn_us);
  result.sluice = timings.front();
  if (floor) result.stream = timings.back();
  for (std::size_t i = 0; i < rivals.size(); ++i)
    result.rivals.push_back({rivals[i].name, product.cublaslt->describe(rivals[i].algorithm), timings[i + 1]});
  if (!product.cublaslt)
    for (const std::string& name : options_.rivals) result.rivals.push_back({name, product.no_cublaslt, {}});
}

// The candidates nearest to the best and the chosen one, for as long as rivals are timed: within 0.1 s a GPU at its power limit lowers its
// clocks by a fifth, and not all kernels lose as much. The others' times are those of the short turns, as much longer as these became.
void Measurement::time_finalists(const Product& product, const std::vector<Plan>& plans, ShapeResult& result) {
  const auto us = [&](std::size_t i) { return result.kernels[i].timing.us; };
  std::vector<std::size_t> ranking;  // of those that are right
  for (std::size_t i = 0; i < plans.size(); ++i)
    if (result.kernels[i].wrong.empty() && us(i) > 0) ranking.push_back(i);
  std::stable_sort(ranking.begin(), ranking.end(), [&](std::size_t x, std::size_t y) { return us(x) < us(y); });
  std::vector<Enqueue> ways;
  std::vector<std::size_t> finalists;
  double short_us = 0, long_us = 0;
  for (std::size_t rank = 0; rank < ranking.size(); ++rank) {
    const std::size_t i = ranking[rank];
    const bool near = rank < kFinalists && us(i) < kFinalistWithin * us(ranking.front());
    if (!near && result.kernels[i].candidate.verdict != CandidateVerdict::chosen) continue;
    ways.push_back(sluice_enqueue(product, plans[i]));
    finalists.push_back(i);
    short_us += us(i);
  }
  if (ways.size() < 2) return;
  const std::vector<Timing> timings =
      time_all_beside(ways, product.sets(), kTimedShare * options_.seconds_per_shape, stream_, 0, options_.turn_seconds * 1e6);
  for (const Timing& timing : timings) long_us += timing.us;
  for (KernelTiming& kernel : result.kernels) kernel.timing.us *= long_us / short_us;
  for (std::size_t i = 0; i < finalists.size(); ++i) result.kernels[finalists[i]].timing = timings[i];
}

// Every candidate of the plan that can run, or those predicted to be near enough. Those far behind are not worth a graph: their estimate
// stands, with 0 rounds.
void Measurement::time_kernels(const Product& product, const Plan& plan, ShapeResult& result) {
  std::vector<Plan> plans;
  std::vector<double> estimates;
  for (const Candidate& candidate : plan.candidates) {
    if (candidate.verdict != CandidateVerdict::chosen && candidate.verdict != CandidateVerdict::slower) continue;
    if (options_.kernels_within > 0 && candidate.predicted.total_us > options_.kernels_within * plan.predicted.total_us) continue;
    const PlanOptions forced = only(candidate, options_.plan_options);
    Result<Plan> made = sluice::plan(plan.problem, device_, forced);
    KernelTiming kernel{.candidate = candidate, .kernel = forced.kernel_name};
    if (made) {
      try {
        kernel.wrong = verify(product, *made);
        kernel.timing.us = estimate_us(sluice_enqueue(product, *made), product.sets(), stream_);
      } catch (const DeviceFailure& failure) {
        kernel.wrong = failure.what();
        check(cudaDeviceSynchronize(), kernel.kernel + " broke the GPU");
      }
    } else {
      kernel.wrong = made.error().message;
    }
    plans.push_back(made ? std::move(*made) : Plan{});
    estimates.push_back(kernel.timing.us > 0 ? kernel.timing.us : HUGE_VAL);
    result.kernels.push_back(std::move(kernel));
  }
  const double best = estimates.empty() ? HUGE_VAL : *std::min_element(estimates.begin(), estimates.end());
  if (best == HUGE_VAL) return;

  const int launches = launches_for(best, product.sets(), kKernelGraphUs);
  std::vector<Graph> graphs;
  std::vector<std::size_t> timed;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    if (estimates[i] > std::max(200.0, 1.5 * best)) continue;
    graphs.push_back(make_graph(sluice_enqueue(product, plans[i]), product.sets(), launches, stream_));
    timed.push_back(i);
  }
  warm_up(graphs);
  const std::vector<Timing> timings =
      time_in_turns(pointers(graphs), launches, options_.rounds > 0 ? options_.rounds : kKernelRounds, stream_);
  for (std::size_t i = 0; i < timed.size(); ++i) result.kernels[timed[i]].timing = timings[i];
  if (options_.kernels_within <= 0) time_finalists(product, plans, result);  // a calibration asks for more shapes in its time instead
  for (const KernelTiming& kernel : result.kernels)
    if (kernel.candidate.verdict == CandidateVerdict::chosen) result.sluice = kernel.timing;
  std::stable_sort(result.kernels.begin(), result.kernels.end(), [](const KernelTiming& x, const KernelTiming& y) {
    const auto rank = [](const KernelTiming& k) { return k.wrong.empty() ? k.timing.us : HUGE_VAL; };  // a wrong kernel is no best one
    return rank(x) < rank(y);
  });
}

ShapeResult Measurement::measure(const Shape& shape, const GemmProblem& problem) {
  ShapeResult result{.shape = shape};
  Result<Plan> plan = sluice::plan(problem, device_, options_.plan_options);
  if (!plan) {
    result.wrong = plan.error().message;
    return result;
  }
  result.kernel = name(plan->kernel);
  result.scheduler = to_string(plan->scheduler.kind);
  result.predicted = plan->predicted;

  Product product{
      .shape = shape, .operands = arena_.operands(shape), .weight_bytes = static_cast<std::size_t>(matrix_bytes_b(plan->problem))};
  result.rotating_sets = product.sets();
  if (cublaslt_) {
    try {
      product.cublaslt = std::make_unique<CublasLtMatmul>(cublaslt_, with_dense_weights(plan->problem));
      compute_reference(product);
    } catch (const NoAlgorithm& none) {
      product.cublaslt.reset();
      product.no_cublaslt = none.what();
    }
  }
  try {
    result.wrong = verify(product, *plan);
  } catch (const DeviceFailure& failure) {
    result.wrong = failure.what();
    check(cudaDeviceSynchronize(), result.kernel + " broke the GPU at " + to_string(shape));
    return result;
  }
  if (options_.planner)
    time_kernels(product, *plan, result);
  else
    time_rivals(product, *plan, result);
  return result;
}

}  // namespace sluice::bench
